// Front ends of others talk with the server at STONE_URL. Each line of the output is what one of them shows.
import { HttpAgent } from '@ag-ui/client'

const base = process.env.STONE_URL
const say = (name, value) => console.log(name + ': ' + JSON.stringify(value))
const control = what => fetch(base + '/control/' + what, { method: 'POST' }).then(r => r.text())
const errors = []

function aiSDK({ AbstractChat, DefaultChatTransport, isToolUIPart }) {
	class Chat extends AbstractChat {
		constructor(init) {
			const state = {
				messages: init.messages ?? [], status: 'ready', error: undefined, snapshot: m => structuredClone(m),
				pushMessage: m => { state.messages = [...state.messages, m]; init.changed?.(state) }, popMessage: () => { state.messages = state.messages.slice(0, -1) },
				replaceMessage: (i, m) => { state.messages = state.messages.with(i, structuredClone(m)); init.changed?.(state) },
			}
			super({ ...init, state })
		}
	}
	return (pipeline, id, more = {}) => new Chat({
		...more, id, transport: new DefaultChatTransport({ api: base + '/v1/ui/' + pipeline, ...more.transport }), onError: e => errors.push(e.message),
		sendAutomaticallyWhen: ({ messages }) => {
			const all = messages.at(-1).parts
			const parts = all.slice(all.findLastIndex(p => p.type === 'step-start') + 1).filter(isToolUIPart)
			return parts.some(p => p.state === 'approval-responded' || p.state === 'output-available' && !p.providerExecuted) && !parts.some(p => p.state === 'input-available' && !p.providerExecuted) && !parts.some(p => p.state === 'approval-requested')
		},
	})
}

// shown is what a page shows of messages.
const shown = messages => messages.map(m => m.parts.map(p => {
	switch (p.type) {
	case 'text': return p.providerMetadata?.stone?.retracted ? '-' + p.text : p.text
	case 'step-start': return '/'
	case 'reasoning': return '(' + p.text + ')'
	case 'data-question': return p.data.text + ' ' + p.data.choices
	case 'data-result': return p.data
	case 'data-answer': return p.data.response
	}
	return [p.type, p.state, p.output ?? p.errorText ?? p.input].join(' ')
}))
const until = async ready => { while (!ready()) await new Promise(r => setTimeout(r, 5)) }
const settled = async chat => { for (let same = 0; same < 5; same = chat.status === 'ready' || chat.status === 'error' ? same + 1 : 0) await new Promise(r => setTimeout(r, 20)) }

for (const name of ['ai', 'ai7']) {
	const open = aiSDK(await import(name))
	const id = what => name + '-' + what
	const chat = open('mason', id('talk'))
	await chat.sendMessage({ text: 'hello' })
	await chat.sendMessage({ text: 'look' })
	say(name + ' turns', shown(chat.messages))
	await chat.regenerate()
	say(name + ' again', [shown(chat.messages.slice(-1)), chat.lastMessage.id])
	await chat.sendMessage({ text: 'edited', messageId: chat.messages[0].id })
	say(name + ' edited', shown(chat.messages))

	const buyer = open('mason', id('buyer'))
	await buyer.sendMessage({ text: 'buy' })
	say(name + ' asks', shown(buyer.messages.slice(-1)))
	const approval = () => buyer.lastMessage.parts.findLast(p => p.approval).approval.id
	const first = approval()
	await buyer.addToolApprovalResponse({ id: first, approved: true })
	await settled(buyer)
	say(name + ' approved', shown(buyer.messages.slice(-1)))
	await buyer.sendMessage({ text: 'buy' })
	await buyer.addToolApprovalResponse({ id: approval(), approved: false, reason: 'too dear' })
	await settled(buyer)
	say(name + ' denied', shown(buyer.messages.slice(-1)))
	say(name + ' bought', await control('bought'))

	const painter = open('painter', id('painter'), {
		onToolCall: ({ toolCall }) => { painter.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: { at: toolCall.input.stone } }) },
	})
	await painter.sendMessage({ text: 'scroll' })
	await settled(painter)
	say(name + ' scrolled', shown(painter.messages.slice(-1)))
	await painter.sendMessage({ text: 'look' })
	say(name + ' looked', [shown(painter.messages.slice(-1)), errors.splice(0)])
	await painter.sendMessage({ text: 'scroll around look' })
	await settled(painter)
	say(name + ' scrolled around', [shown(painter.messages.slice(-1)), errors.splice(0)])

	const asked = open('page', id('asked'))
	await asked.sendMessage({ text: 'slate' })
	await asked.sendMessage({ text: 'perhaps' })
	asked.messages = asked.messages.slice(0, -1)
	await asked.sendMessage({ text: 'yes' })
	say(name + ' answered', [shown(asked.messages), errors.splice(0)])
	asked.messages = asked.messages.slice(0, -1) // the reply was lost
	const again = open('page', id('asked'), { messages: asked.messages })
	await again.sendMessage()
	say(name + ' answered again', [shown(again.messages.slice(-1)), again.lastMessage.id.split('~')[0]])

	const data = open('page', id('data'))
	await data.sendMessage({ text: 'slate' })
	await data.sendMessage({ parts: [{ type: 'data-answer', data: { question: data.lastMessage.parts.at(-1).id, response: 'no' } }] })
	say(name + ' data', shown(data.messages))

	let early
	const polite = open('polite', id('polite'), { changed: state => { early = state.messages } })
	const judged = polite.sendMessage({ text: 'hello' })
	await until(() => early?.at(-1)?.parts?.at(-1)?.text === 'Bad.')
	await control('open')
	await judged
	await control('close')
	say(name + ' taken back', shown(polite.messages.slice(-1)))
	const typed = open('typed', id('typed'))
	await typed.sendMessage({ text: 'slate' })
	say(name + ' typed', shown(typed.messages.slice(-1)))
	await open('broken', id('broken')).sendMessage({ text: 'slate' })
	await open('mason', 'no/id').sendMessage({ text: 'slate' })
	await open('mesen', id('none')).sendMessage({ text: 'slate' })
	say(name + ' errors', errors.splice(0).map(e => e.startsWith('{') ? JSON.parse(e).detail : e))

	// A page goes away in the middle of an answer, and another one shows all of it.
	early = undefined
	const gone = open('slow', id('slow'), { changed: state => early = state.messages })
	const sent = gone.sendMessage({ text: 'hello' })
	await until(() => early?.at(-1)?.parts?.at(-1)?.text === 'One ')
	await gone.stop()
	await sent
	const back = open('slow', id('slow'), { messages: structuredClone(early) })
	const whole = back.resumeStream()
	await until(() => back.status !== 'ready')
	await control('open')
	await whole
	say(name + ' resumed', [shown(back.messages), back.status])
	const quiet = open('slow', id('slow'), { messages: back.messages })
	await quiet.resumeStream()
	say(name + ' nothing runs', [quiet.status, quiet.messages.length])
	await control('close')

	// Stop, with the run.
	const stopped = open('slow', id('stop'), { changed: state => early = state.messages })
	early = undefined
	const running = stopped.sendMessage({ text: 'hello' })
	await until(() => early?.at(-1)?.parts?.at(-1)?.text === 'One ')
	const run = stopped.lastMessage.metadata.run
	await stopped.stop()
	await running
	const busy = open('slow', id('stop'), { messages: stopped.messages })
	await busy.sendMessage({ text: 'too early' })
	say(name + ' busy', errors.splice(0).map(e => JSON.parse(e).detail))
	say(name + ' canceled', (await (await fetch(`${base}/v1/runs/${run}/cancel`, { method: 'POST' })).json()).state)
	await control('open')
	await stopped.sendMessage({ text: 'and now' })
	say(name + ' after it', shown(stopped.messages.slice(-1)))
	await control('close')

	// A client that sends only its last message.
	const brief = open('mason', id('brief'), { transport: { prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({ body: { id, messages: messages.slice(-1), trigger, messageId } }) } })
	await brief.sendMessage({ text: 'hello' })
	await brief.sendMessage({ text: 'hello' })
	say(name + ' brief', shown(brief.messages))
}

// AG-UI
const text = m => [m.role, typeof m.content === 'string' ? m.content : '', ...(m.toolCalls ?? []).map(c => c.function.name + JSON.stringify(JSON.parse(c.function.arguments)))].join(' ')
function agent(pipeline, threadId, more = {}) {
	const a = new HttpAgent({ url: base + '/v1/agui/' + pipeline, threadId, ...more })
	a.events = []
	a.subscribe({ onEvent: ({ event }) => { a.events.push(event) }, onRunErrorEvent: ({ event }) => { errors.push(event.code + ': ' + event.message) } })
	a.send = (content, parameters) => {
		if (content) a.addMessage({ id: crypto.randomUUID(), role: 'user', content })
		return a.runAgent(parameters).catch(e => errors.push(e.message))
	}
	return a
}
const talk = agent('mason', 'ag-talk')
await talk.send('hello')
await talk.send('look')
say('agui turns', talk.messages.map(text))
const twice = agent('mason', 'ag-talk', { initialMessages: talk.messages.slice(0, 3) }) // the reply was lost
await twice.send('')
say('agui once', [twice.messages.map(text).slice(3), twice.messages.at(-1).id === talk.messages.at(-1).id])
const buyer = agent('mason', 'ag-buyer')
await buyer.send('buy')
const [interrupt] = buyer.pendingInterrupts
say('agui asks', [interrupt.reason, interrupt.toolCallId === buyer.messages.at(-1).toolCalls[0].id, interrupt.message.split('\n')[0]])
await buyer.send('', { resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: true } }] })
say('agui approved', buyer.messages.map(text))
await buyer.send('', { resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: false } }] })
await buyer.send('', { resume: [{ interruptId: 'nothing', status: 'resolved', payload: 'yes' }] })
const painter = agent('painter', 'ag-painter')
const tools = [{ name: 'paint', description: 'Paints.', parameters: { type: 'object', properties: { stone: { type: 'string' } } } }]
await painter.send('paint', { tools })
const calls = painter.messages.at(-1).toolCalls
say('agui calls', [painter.messages.map(text), painter.events.at(-1).outcome])
for (const c of calls) painter.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: c.id, content: 'painted ' + JSON.parse(c.function.arguments).stone })
await painter.send('', { tools })
await painter.send('tools', { tools })
say('agui painted', painter.messages.map(text))
const page = agent('page', 'ag-page')
await page.send('slate')
await page.send('', { resume: [{ interruptId: page.pendingInterrupts[0].id, status: 'resolved', payload: 'perhaps' }] })
await page.send('', { resume: [{ interruptId: page.pendingInterrupts[0].id, status: 'resolved', payload: 'yes' }] })
say('agui answered', [page.messages.map(text), page.events.at(-1).result])
const polite = agent('polite', 'ag-polite')
const judged = polite.send('hello')
await until(() => polite.messages.some(m => m.content === 'Bad.'))
await control('open')
await judged
say('agui taken back', polite.messages.map(text))
const typed = agent('typed', 'ag-typed')
await typed.send('slate')
say('agui state', [typed.state, typed.messages.map(text)])
await agent('broken', 'ag-broken').send('slate')
await agent('mason', 'ag-tools').send('hello', { tools: [{ name: 'mine', description: '' }] })
say('agui errors', errors.splice(0))
await control('close')
const slow = agent('slow', 'ag-slow')
const half = slow.send('hello')
await until(() => slow.events.some(e => e.delta === 'One '))
slow.abortRun()
await half
errors.splice(0)
const back = agent('slow', 'ag-slow', { initialMessages: slow.messages.slice(0, 1) })
const whole = back.send('')
await control('open')
await whole
say('agui resumed', [back.messages.map(text), errors])
