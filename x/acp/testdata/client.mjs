// Clients of other projects start the agent STONE_AGENT and talk to it. Each line of the output is what one got.
import * as sdk from '@agentclientprotocol/sdk'
import * as zed from '@zed-industries/agent-client-protocol'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'

// open starts an agent whose journal is in a folder. The user chooses the option of a kind, or cancels the turn for an empty one.
async function open(connect, folder, kind) {
	const child = spawn(process.env.STONE_AGENT, { env: { ...process.env, STONE_TEST_ACP: folder }, stdio: ['pipe', 'pipe', 'inherit'] })
	const heard = { said: '', thought: '', asked: [] }, calls = {}
	let chunk = () => {}
	const update = ({ update: { sessionUpdate, content, toolCallId, ...more } }) => {
		switch (sessionUpdate) {
			case 'agent_message_chunk': heard.said += content.text; chunk(); break
			case 'agent_thought_chunk': heard.thought += content.text; break
			case 'user_message_chunk': heard.said += '<' + (content.text ?? content.mimeType ?? content.resource.uri) + '>'; break
			case 'tool_call': calls[toolCallId] = more; break
			case 'tool_call_update': Object.assign(calls[toolCallId], more, content && { content: content.map(c => c.content.text) })
		}
	}
	const permit = async ({ sessionId, toolCall, options }) => {
		heard.asked.push([toolCall.title.split('\n', 1)[0], 'about ' + calls[toolCall.toolCallId]?.title, options.map(o => o.kind)])
		if (!kind) {
			await call('session/cancel', { sessionId })
			return { outcome: { outcome: 'cancelled' } }
		}
		return { outcome: { outcome: 'selected', optionId: (options.find(o => o.kind === kind) ?? options[0]).optionId } }
	}
	const call = connect(update, permit, [Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)])
	const { protocolVersion, agentCapabilities: { loadSession, promptCapabilities } } = await call('initialize', { protocolVersion: 1, clientCapabilities: {} })
	const take = (over = false) => {
		const told = { ...heard, calls: Object.values(calls).map(c => [c.title, c.status, c.rawInput, c.rawOutput, c.content]) }
		Object.assign(heard, { said: '', thought: '', asked: [] })
		for (const [id, c] of Object.entries(calls)) if (over || c.status !== 'in_progress') delete calls[id]
		return told
	}
	return {
		about: [protocolVersion, loadSession, promptCapabilities], call, take,
		session: async modeId => {
			const { sessionId } = await call('session/new', { cwd: '/tmp', mcpServers: [] })
			await call('session/set_mode', { sessionId, modeId })
			return sessionId
		},
		prompt: async (sessionId, text, ...more) => {
			const { stopReason } = await call('session/prompt', { sessionId, prompt: [{ type: 'text', text }, ...more] })
			return [stopReason, take(stopReason === 'cancelled')]
		},
		spoken: () => new Promise(r => { chunk = r }),
		close: () => { child.stdin.end(); return once(child, 'exit') },
	}
}

// The older client logs each notification that it does not know. The one that withdraws a request may be ignored.
const { error } = console
console.error = (...args) => args[1]?.method === '$/cancel_request' || error(...args)

const clients = {
	sdk: (update, permit, stdio) => {
		const { agent } = sdk.client({ name: 'test' })
			.onRequest('session/request_permission', c => permit(c.params)).onNotification('session/update', c => update(c.params))
			.connect(sdk.ndJsonStream(...stdio))
		return (method, params) => method === 'session/cancel' ? agent.notify(method, params) : agent.request(method, params)
	},
	zed: (update, permit, stdio) => {
		const agent = new zed.ClientSideConnection(() => ({ requestPermission: permit, sessionUpdate: async n => update(n) }), zed.ndJsonStream(...stdio))
		const methods = { initialize: 'initialize', 'session/new': 'newSession', 'session/load': 'loadSession', 'session/set_mode': 'setSessionMode', 'session/prompt': 'prompt', 'session/cancel': 'cancel' }
		return (method, params) => agent[methods[method]](params)
	},
}

for (const [name, connect] of Object.entries(clients)) {
	const say = (what, value) => console.log(name + ' ' + what + ': ' + JSON.stringify(value))
	const folder = process.env.STONE_TEST_FOLDER + '/' + name
	let e = await open(connect, folder, 'allow_always')
	say('about', e.about)
	const chat = await e.session('chat')
	say('turn', await e.prompt(chat, 'Hello'))
	say('second turn', await e.prompt(chat, 'And now?'))
	const pick = await e.session('pick')
	say('question', await e.prompt(pick, 'stone'))
	say('answer', await e.prompt(pick, 'slate'))
	say('steps', await e.prompt(await e.session('page'), 'slate'))
	const eye = await e.session('eye')
	say('picture', await e.prompt(eye, 'What?', { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' },
		{ type: 'resource', resource: { uri: 'file:///tmp/a.pdf', mimeType: 'application/pdf', blob: 'JVBERi0=' } }, { type: 'resource_link', uri: 'file:///tmp/b.go', name: 'b.go' }))
	const mason = await e.session('mason')
	say('tool', await e.prompt(mason, 'buy'))
	say('always', await e.prompt(mason, 'buy'))
	const spoken = e.spoken(), waiting = e.prompt(mason, 'wait')
	await spoken
	await e.call('session/cancel', { sessionId: mason })
	say('cancel', await waiting)
	await e.close()

	e = await open(connect, folder, 'reject_once')
	const load = async sessionId => {
		await e.call('session/load', { sessionId, cwd: '/tmp', mcpServers: [] })
		return e.take()
	}
	say('loaded', await load(mason))
	say('loaded picture', await load(eye))
	say('after', await e.prompt(mason, 'second'))
	say('rejected', await e.prompt(await e.session('mason'), 'buy'))
	await e.close()

	e = await open(connect, folder, '')
	const page = await e.session('page')
	say('cancelled question', await e.prompt(page, 'slate'))
	say('cancelled permission', await e.prompt(await e.session('mason'), 'buy'))
	say('loaded cancelled', await load(page))
	await e.close()
}
