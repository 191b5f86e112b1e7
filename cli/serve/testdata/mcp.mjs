// The official TypeScript client starts the command in STONE_COMMAND and prints each result on a
// line.
import { execFileSync } from 'node:child_process'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const [command, ...args] = JSON.parse(process.env.STONE_COMMAND)
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' })
const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
const say = (name, value) => console.log(name + ': ' + JSON.stringify(value))
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
	say('asked', [params.message, params.requestedSchema.properties.answer.enum])
	return { action: 'accept', content: { answer: 'yes' } }
})
await client.connect(transport)
say('tools', (await client.listTools()).tools.map(t => t.name))
const steps = []
const page = await client.callTool({ name: 'page', arguments: { input: 'slate' } }, undefined, { onprogress: p => steps.push(p.message) })
say('page', [page.content[0].text, page.structuredContent.state])
say('progress', steps.slice(0, 2)) // the client drops those that arrive together with the result
say('node', (await client.readResource({ uri: page.structuredContent.node })).contents[0].text)
const abort = new AbortController()
const slow = client.callTool({ name: 'page', arguments: { input: 'wait' } }, undefined, { signal: abort.signal, onprogress: () => abort.abort('enough') })
say('cancelled', await slow.then(() => 'no', e => e.message.includes('enough')))
const bad = await client.callTool({ name: 'page', arguments: { input: 7 } })
say('bad', bad.isError)
// On a slow machine close kills the command before it has written how the cancelled run ended.
while (!/canceled/.test(execFileSync(command, ['runs', ...args.slice(1)], { encoding: 'utf8' })));
await client.close()
