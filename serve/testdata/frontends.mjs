// Front ends of others talk with the server at STONE_URL. Each line of the output is what one of them shows.
const base = process.env.STONE_URL
const say = (name, value) => console.log(name + ': ' + JSON.stringify(value))
const control = what => fetch(base + '/control/' + what, { method: 'POST' }).then(r => r.text())
const errors = []

function aiSDK({ AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses: approvals, lastAssistantMessageIsCompleteWithToolCalls: calls }) {
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
		sendAutomaticallyWhen: m => approvals(m) || calls(m),
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
	await open('mason', 'no\u0000id').sendMessage({ text: 'slate' })
	await open('mason', id('any/id ü')).sendMessage({ text: 'slate' })
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

	// A message before the end of a turn that was stopped waits for it.
	const stopped = open('slow', id('stop'), { changed: state => early = state.messages })
	early = undefined
	const running = stopped.sendMessage({ text: 'hello' })
	await until(() => early?.at(-1)?.parts?.at(-1)?.text === 'One ')
	await stopped.stop()
	await running
	const next = stopped.sendMessage({ text: 'and now' })
	await control('open')
	await next
	say(name + ' after it', [shown(stopped.messages.slice(-1)), stopped.lastMessage.id])
	await control('close')

	// A client that sends only its last message.
	const brief = open('mason', id('brief'), { transport: { prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({ body: { id, messages: messages.slice(-1), trigger, messageId } }) } })
	await brief.sendMessage({ text: 'hello' })
	await brief.sendMessage({ text: 'hello' })
	say(name + ' brief', shown(brief.messages))
}

// AG-UI
const text = m => [m.role, typeof m.content === 'string' ? m.content : '', ...(m.toolCalls ?? []).map(c => c.function.name + JSON.stringify(JSON.parse(c.function.arguments)))].join(' ')
const agents = HttpAgent => (pipeline, threadId, more = {}) => {
	const a = new HttpAgent({ url: base + '/v1/agui/' + pipeline, threadId, ...more })
	a.events = []
	a.subscribe({ onEvent: ({ event }) => { a.events.push(event) }, onRunErrorEvent: ({ event }) => { errors.push(event.code + ': ' + event.message) } })
	a.send = (content, parameters) => {
		if (content) a.addMessage({ id: crypto.randomUUID(), role: 'user', content })
		return a.runAgent(parameters).catch(e => errors.push(e.message))
	}
	return a
}
for (const [name, module] of [['agui', '@ag-ui/client'], ['agui0', 'agui0']]) {
	const agent = agents((await import(module)).HttpAgent)
	const talk = agent('mason', name + '-talk')
	await talk.send('hello')
	await talk.send('look')
	say(name + ' turns', talk.messages.map(text))
	const twice = agent('mason', name + '-talk', { initialMessages: talk.messages.slice(0, 3) }) // the reply was lost
	await twice.send('')
	say(name + ' once', [twice.messages.map(text).slice(3), twice.messages.at(-1).id === talk.messages.at(-1).id])
	const buyer = agent('mason', name + '-buyer')
	await buyer.send('buy')
	const [interrupt] = buyer.pendingInterrupts
	say(name + ' asks', [interrupt.reason, interrupt.toolCallId === buyer.messages.at(-1).toolCalls[0].id, interrupt.message.split('\n')[0]])
	await buyer.send('', { resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: true } }] })
	say(name + ' approved', buyer.messages.map(text))
	await buyer.send('', { resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: false } }] })
	await buyer.send('', { resume: [{ interruptId: 'nothing', status: 'resolved', payload: 'yes' }] })
	const painter = agent('painter', name + '-painter')
	const tools = [{ name: 'paint', description: 'Paints.', parameters: { type: 'object', properties: { stone: { type: 'string' } } } }]
	await painter.send('paint', { tools })
	const calls = painter.messages.at(-1).toolCalls
	say(name + ' calls', [painter.messages.map(text), painter.events.at(-1).outcome])
	for (const c of calls) painter.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: c.id, content: 'painted ' + JSON.parse(c.function.arguments).stone })
	await painter.send('', { tools })
	await painter.send('tools', { tools })
	say(name + ' painted', painter.messages.map(text))
	const page = agent('page', name + '-page')
	await page.send('slate')
	await page.send('', { resume: [{ interruptId: page.pendingInterrupts[0].id, status: 'resolved', payload: 'perhaps' }] })
	await page.send('', { resume: [{ interruptId: page.pendingInterrupts[0].id, status: 'resolved', payload: 'yes' }] })
	say(name + ' answered', [page.messages.map(text), page.events.at(-1).result])
	const polite = agent('polite', name + '-polite')
	const judged = polite.send('hello')
	await until(() => polite.messages.some(m => m.content === 'Bad.'))
	await control('open')
	await judged
	say(name + ' taken back', polite.messages.map(text))
	const typed = agent('typed', name + '-typed')
	await typed.send('slate')
	say(name + ' state', [typed.state, typed.messages.map(text)])
	await agent('broken', name + '-broken').send('slate')
	const without = agent('mason', name + '-tools')
	await without.send('hello', { tools: [{ name: 'mine', description: '' }] })
	say(name + ' without tools', [without.messages.map(text), without.events[0].metadata?.notice ?? without.events[0].rawEvent?.metadata.notice])
	say(name + ' errors', errors.splice(0))
	const two = agent('painter', name + '-two')
	await two.send('buy')
	const approve = async () => two.send('', { resume: [{ interruptId: two.pendingInterrupts[0].id, status: 'resolved', payload: { approved: true } }] })
	await approve()
	await approve()
	say(name + ' two approvals', two.messages.map(text))
	await two.send('buy around look')
	const instead = text => two.send(text, { resume: two.pendingInterrupts.map(i => ({ interruptId: i.id, status: 'cancelled' })) })
	await instead('never mind')
	await instead('not that one')
	say(name + ' a message instead of an approval', two.messages.slice(5).map(text))
	await control('close')
	const gone = agent('slow', name + '-gone')
	const canceled = gone.send('hello')
	await until(() => gone.events.some(e => e.delta === 'One '))
	await fetch(`${base}/v1/runs/${name}-gone-turn-1/cancel`, { method: 'POST' })
	await canceled
	say(name + ' canceled', errors.splice(0))
	const slow = agent('slow', name + '-slow')
	const half = slow.send('hello')
	await until(() => slow.events.some(e => e.delta === 'One '))
	slow.abortRun()
	await half
	errors.splice(0)
	const back = agent('slow', name + '-slow', { initialMessages: slow.messages.slice(0, 1) })
	const whole = back.send('')
	await control('open')
	await whole
	say(name + ' resumed', [back.messages.map(text), errors])
	await control('close')
}
