// The official TypeScript client of the SDK in STONE_SDK starts the command in STONE_COMMAND and prints
// each result on a line.
import { execFileSync } from 'node:child_process'

const sdk1 = process.env.STONE_SDK === '1'
const { Client } = await import(sdk1 ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client')
const { StdioClientTransport } = await import(sdk1 ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio')
const elicitation = sdk1 ? (await import('@modelcontextprotocol/sdk/types.js')).ElicitRequestSchema : 'elicitation/create'
const options = o => sdk1 ? [undefined, o] : [o] // of callTool

const [command, ...args] = JSON.parse(process.env.STONE_COMMAND)
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' })
const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
const say = (name, value) => console.log(name + ': ' + JSON.stringify(value))
client.setRequestHandler(elicitation, async ({ params }) => {
	say('asked', [params.message, params.requestedSchema.properties.answer.enum])
	return { action: 'accept', content: { answer: 'yes' } }
})
await client.connect(transport)
say('tools', (await client.listTools()).tools.map(t => t.name))
const steps = []
const page = await client.callTool({ name: 'page', arguments: { input: 'slate' } }, ...options({ onprogress: p => steps.push(p.message) }))
say('page', [page.content[0].text, page.structuredContent.state])
say('progress', steps.slice(0, 2)) // the client drops those that arrive together with the result
say('node', (await client.readResource({ uri: page.structuredContent.node })).contents[0].text)
const abort = new AbortController()
const slow = client.callTool({ name: 'page', arguments: { input: 'wait' } }, ...options({ signal: abort.signal, onprogress: () => abort.abort('enough') }))
say('cancelled', await slow.then(() => 'no', e => String(e?.message ?? e).includes('enough')))
const bad = await client.callTool({ name: 'page', arguments: { input: 7 } })
say('bad', bad.isError)
// On a slow machine close kills the command before it has written how the cancelled run ended.
while (!/canceled/.test(execFileSync(command, ['runs', ...args.slice(1)], { encoding: 'utf8' })));
await client.close()
