// The official TypeScript clients, of SDK 1 and of SDK 2, use the server at STONE_URL in their default
// settings. Each prints its results on lines.
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client'

const url = new URL(process.env.STONE_URL)
const filledIn = { verdict: 'accept', score: 7, public: true, reasons: 'plain\nshort', where: '{"line":3}', answer: 'yes' }

const modern = { versionNegotiation: { mode: 'auto' } } // protocol 2026-07-28

for (const [sdk, Client, Transport, elicitation, options] of [
	['sdk 1', Client1, Transport1, ElicitRequestSchema, {}],
	['sdk 2', Client2, Transport2, 'elicitation/create', {}],
	['sdk 2 modern', Client2, Transport2, 'elicitation/create', modern],
]) {
	const say = (name, value) => console.log(`${sdk} ${name}: ${JSON.stringify(value)}`)
	let action = 'accept'
	const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} }, ...options })
	client.setRequestHandler(elicitation, async ({ params }) => {
		const names = Object.keys(params.requestedSchema.properties)
		say('asked', [params.message, names])
		return action === 'accept' ? { action, content: Object.fromEntries(names.map(n => [n, filledIn[n]])) } : { action }
	})
	await client.connect(new Transport(url))
	const tools = (await client.listTools()).tools
	say('hints', ['draft', 'guess', 'remove'].map(n => tools.find(t => t.name === n).annotations))
	const call = async (name, input) => {
		const r = await client.callTool({ name, arguments: input })
		return [r.content[0].text.split('\n')[0].replaceAll(/\b[a-z0-9]{26}\b/g, '…'), r.structuredContent?.state, r.isError ?? false]
	}
	say('page', await call('page', { text: 'slate' }))
	say('again', await call('page', { text: 'marble' }))
	say('review', await call('review', { text: 'slate' }))
	say('parallel', await Promise.all(['a', 'b', 'c'].map(text => call('draft', { text }))))
	// Tasks of 2025-11-25, which the server does not declare: a stream of the client is a plain call. A client that
	// asks for a task nonetheless gets the result of a plain call, as that version says, and does not take it.
	if (sdk === 'sdk 1') for (const [name, options] of [['streamed', {}], ['streamed as a task', { task: {} }]]) {
		const got = []
		for await (const m of client.experimental.tasks.callToolStream({ name: 'draft', arguments: { text: 'a' } }, undefined, options)) got.push([m.type, m.result?.content[0].text ?? m.error.message.includes('"task"')])
		say(name, got)
	}
	say('failed', await call('draft', { text: 'bad' }))
	say('wrong', await call('draft', { text: 7 }))
	action = 'decline'
	say('declined', await call('page', { text: 'slate' }))
	const abort = new AbortController()
	setTimeout(() => abort.abort('enough'), 300)
	say('cancelled', await client.callTool({ name: 'slow', arguments: { text: 'x' } }, ...(sdk === 'sdk 1' ? [undefined] : []), { signal: abort.signal }).then(() => 'no', e => /enough/.test(String(e?.message ?? e))))
	await client.close()
}
