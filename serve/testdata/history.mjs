// A second device reads the conversations of a first one from the server at STONE_URL, and continues them.
import assert from 'node:assert/strict'
import { HttpAgent } from '@ag-ui/client'

const base = process.env.STONE_URL
const control = what => fetch(base + '/control/' + what, { method: 'POST' })
const get = async path => (await fetch(base + '/v1/ui/' + path)).json()
const until = async ready => { while (!ready()) await new Promise(r => setTimeout(r, 5)) }

async function aiSDK(name) {
	const { AbstractChat, DefaultChatTransport, isToolUIPart, validateUIMessages, lastAssistantMessageIsCompleteWithApprovalResponses: approvals, lastAssistantMessageIsCompleteWithToolCalls: calls } = await import(name)
	class Chat extends AbstractChat {
		constructor(init) {
			super({ ...init, state: {
				messages: init.messages ?? [], status: 'ready', error: undefined, snapshot: m => structuredClone(m),
				pushMessage(m) { this.messages = [...this.messages, m]; init.changed?.(this) }, popMessage() { this.messages = this.messages.slice(0, -1) },
				replaceMessage(i, m) { this.messages = this.messages.with(i, structuredClone(m)); init.changed?.(this) },
			} })
		}
	}
	const open = (pipeline, id, more = {}) => new Chat({ ...more, id, transport: new DefaultChatTransport({ api: base + '/v1/ui/' + pipeline }), onError: () => {},
		sendAutomaticallyWhen: m => approvals(m) || calls(m) })
	const settled = async chat => { for (let same = 0; same < 5; same = chat.status === 'ready' || chat.status === 'error' ? same + 1 : 0) await new Promise(r => setTimeout(r, 20)) }

	// What a page shows. The record has no text that was taken back and no step of it alone, and the SDK keeps what it was told of an approval.
	const shown = messages => messages.map(m => [m.id, m.role, m.parts.filter(p => !p.providerMetadata?.stone?.retracted && p.type !== 'data-retracted').filter((p, i, all) => p.type !== 'step-start' || all[i + 1]?.type !== 'step-start').map(p => JSON.stringify(
		['type', 'text', 'toolCallId', 'state', 'input', 'output', 'errorText', 'id', 'data', 'url', 'mediaType', 'filename'].map(f => f === 'state' && !isToolUIPart(p) ? undefined : p[f])))])
	const other = async (pipeline, id, chat) => {
		const { messages } = await get(pipeline + '/' + id)
		await validateUIMessages({ messages })
		if (chat) assert.deepEqual(shown(messages), shown(chat.messages), pipeline)
		return open(pipeline, id, { messages })
	}

	const id = what => name + '-' + what
	let chat = open('mason', id('talk'))
	await chat.sendMessage({ text: 'hello' })
	await chat.sendMessage({ text: 'look' })
	await chat.regenerate()
	chat = await other('mason', id('talk'), chat)
	await chat.sendMessage({ text: 'hello again' })
	chat = await other('mason', id('talk'), chat)
	assert.match(chat.lastMessage.parts.at(-1).text, /^7: hello again/, 'it continues the conversation')
	await chat.sendMessage({ text: 'edited', messageId: chat.messages[2].id })
	await other('mason', id('talk'), chat)

	// An open approval is answered at the other device, and so is what it leads to at the first one.
	for (const approved of [true, false]) {
		const first = open('mason', id('buy' + approved))
		await first.sendMessage({ text: 'buy' })
		const second = await other('mason', id('buy' + approved), first)
		const part = second.lastMessage.parts.at(-1)
		assert.equal(part.state, 'approval-requested')
		await second.addToolApprovalResponse({ id: part.approval.id, approved, reason: approved ? undefined : 'too dear' })
		await settled(second)
		assert.match(second.lastMessage.parts.at(-1).text, approved ? /So bought/ : /too dear/)
		await other('mason', id('buy' + approved), second)
	}

	// A call of the client's waits for its result: any device may send it.
	const painter = open('painter', id('painter'))
	await painter.sendMessage({ text: 'scroll' })
	const scrolls = await other('painter', id('painter'), painter)
	for (const part of scrolls.lastMessage.parts.filter(isToolUIPart)) await scrolls.addToolOutput({ tool: 'scroll', toolCallId: part.toolCallId, output: 'seen ' + part.input.stone })
	await settled(scrolls)
	assert.equal(scrolls.lastMessage.parts.at(-1).text, 'So seen slate and seen chalk.')
	await other('painter', id('painter'), scrolls)

	// A question, and the messages that answer it.
	const asked = open('page', id('asked'))
	await asked.sendMessage({ text: 'slate' })
	const answers = await other('page', id('asked'), asked)
	await answers.sendMessage({ text: 'yes' })
	await other('page', id('asked'), answers)

	await control('open')
	for (const pipeline of ['polite', 'typed', 'broken']) {
		const chat = open(pipeline, id(pipeline))
		await chat.sendMessage({ text: 'slate' })
		const back = await other(pipeline, id(pipeline), chat)
		if (pipeline === 'broken') assert.deepEqual([back.lastMessage.metadata.state, back.lastMessage.metadata.error], ['failed', 'broken: no slate'])
	}
	await control('close')

	// A reply that is being written comes from its start, once.
	let early
	const slow = open('slow', id('slow'), { changed: state => { early = state.messages } })
	const sent = slow.sendMessage({ text: 'hello' })
	await until(() => early?.at(-1)?.parts?.at(-1)?.text === 'One ')
	const late = await other('slow', id('slow'))
	assert.deepEqual(late.messages.map(m => m.role), ['user'])
	const whole = late.resumeStream()
	await until(() => late.status !== 'ready')
	await control('open')
	await Promise.all([sent, whole])
	assert.deepEqual(shown(late.messages), shown(slow.messages))
	await other('slow', id('slow'), late)
	await control('close')

	assert.deepEqual(await get('mason/' + id('none')), { messages: [] })
	assert.deepEqual((await get('mason')).threads.filter(t => t.id.startsWith(name + '-')).map(t => t.id).sort(), ['buyfalse', 'buytrue', 'talk'].map(id))
}
await aiSDK('ai')
await aiSDK('ai7')

// AG-UI
const shown = m => [m.id, m.role, m.content ?? '', m.toolCallId, (m.toolCalls ?? []).map(c => [c.id, c.function.name, JSON.parse(c.function.arguments)])]
const talker = (pipeline, threadId, initialMessages) => {
	const a = new HttpAgent({ url: base + '/v1/agui/' + pipeline, threadId, initialMessages })
	a.send = (content, parameters) => {
		if (content) a.addMessage({ id: crypto.randomUUID(), role: 'user', content })
		return a.runAgent(parameters)
	}
	return a
}
const join = async (pipeline, first) => {
	const second = talker(pipeline, first.threadId)
	await second.send('')
	assert.deepEqual(second.messages.map(shown), first.messages.map(shown), pipeline)
	assert.deepEqual(second.pendingInterrupts, first.pendingInterrupts, pipeline)
	return second
}
let talk = talker('mason', 'ag-talk')
await talk.send('hello')
await talk.send('look')
talk = await join('mason', talk)
await talk.send('buy')
talk = await join('mason', talk)
await talk.send('', { resume: [{ interruptId: talk.pendingInterrupts[0].id, status: 'resolved', payload: { approved: true } }] })
assert.match(talk.messages.at(-1).content, /^So bought/)
await join('mason', talk)
await join('mason', talker('mason', 'ag-none'))
await control('open')
const polite = talker('polite', 'ag-polite')
await polite.send('hello')
await join('polite', polite)
await control('close')
const events = []
const slow = talker('slow', 'ag-slow')
slow.subscribe({ onEvent: ({ event }) => { events.push(event) } })
const half = slow.send('hello')
await until(() => events.some(e => e.delta === 'One '))
const late = talker('slow', 'ag-slow')
const whole = late.send('')
await until(() => late.messages.length > 0)
await control('open')
await Promise.all([half, whole])
assert.deepEqual(late.messages.map(shown), slow.messages.map(shown))
console.log('done')
