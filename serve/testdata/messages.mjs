// Anthropic's clients ask the server at STONE_URL. Each line of the output is what one of them got.
import Anthropic from '@anthropic-ai/sdk'
import { createAnthropic } from '@ai-sdk/anthropic'
import { generateText, streamText, tool, stepCountIs, Output } from 'ai7'
import { z } from 'zod'

const baseURL = process.env.STONE_URL
const client = new Anthropic({ baseURL, apiKey: 'none' })
const say = (name, value) => console.log(name + ': ' + JSON.stringify(value))
const model = 'stone/chat/answer'
const user = content => ({ model, max_tokens: 100, messages: [{ role: 'user', content }] })
const texts = m => m.content.map(b => b.type + ' ' + (b.text ?? b.thinking ?? b.name ?? '')).join(', ')

// @anthropic-ai/sdk
const models = await client.models.list()
say('models', [models.data.map(m => m.id).includes(model), models.data[0].type])
say('model', (await client.models.retrieve(model)).display_name)
const m = await client.messages.create({ ...user('marble'), model: 'stone/upper' })
say('message', [texts(m), m.stop_reason, m.type, m.role, m.model, m._request_id === m.id])
say('usage', (await client.messages.create(user('cached'))).usage)
let events = []
for await (const e of await client.messages.create({ ...user('slate'), model: 'stone/upper', stream: true })) events.push(e.type)
say('events', events)
const helper = client.messages.stream({ ...user('chalk'), model: 'stone/upper' })
let pieces = ''
helper.on('text', t => pieces += t)
say('stream', [texts(await helper.finalMessage()), pieces])
say('system', texts(await client.messages.create({ ...user('system?'), system: [{ type: 'text', text: 'Be' }, { type: 'text', text: 'brief.', cache_control: { type: 'ephemeral' } }] })))
const picture = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' }
say('media', texts(await client.messages.create(user([{ type: 'image', source: picture }, { type: 'image', source: { type: 'url', url: 'https://a.example/x.png' } },
	{ type: 'document', title: 'A', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } }, { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'of text' } }, { type: 'text', text: 'media?' }]))))
const look = { name: 'look', description: 'Looks', input_schema: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] } }
for (const stream of [false, true]) {
	const thinking = { type: 'enabled', budget_tokens: 1024 }
	const params = { ...user('look'), tools: [look], thinking }
	const ask = async p => stream ? await client.messages.stream(p).finalMessage() : await client.messages.create(p)
	const called = await ask(params)
	const call = called.content.find(b => b.type === 'tool_use')
	say('tools', [texts(called), called.stop_reason, call.input])
	const answered = await ask({ ...params, messages: [...params.messages, { role: 'assistant', content: called.content },
		{ role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, is_error: true, content: [{ type: 'text', text: 'seen it' }, { type: 'image', source: picture }] }, { type: 'text', text: 'Well?' }] }] })
	say('result', texts(answered))
}
const runner = client.beta.messages.toolRunner({ ...user('look'), tools: [{ ...look, run: async ({ at }) => 'seen ' + at }] })
say('runner', texts(await runner.runUntilDone()))
say('cut', (await client.messages.create(user('long'))).stop_reason)
say('refusal', (await client.messages.create(user('refuse'))).stop_reason)
const town = { type: 'json_schema', schema: { type: 'object', properties: { town: { type: 'string' } }, required: ['town'], additionalProperties: false } }
say('format', texts(await client.messages.create({ ...user('Where?'), output_config: { format: town } })))
say('count', (await client.messages.countTokens({ model, messages: user('0123456789012345').messages })).input_tokens)
for (const [name, params] of Object.entries({ unknown: { ...user('x'), model: 'claude' }, refused: user('impolite'), stream: { ...user('impolite'), stream: true }, parameter: { ...user('x'), container: 'x' }, tool: { ...user('x'), tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, role: { ...user('x'), messages: [{ role: 'tool', content: 'x' }] } })) {
	try {
		await client.messages.create(params)
	} catch (e) {
		say('error ' + name, [e.constructor.name, e.status, e.type, e.error?.error?.message, e.requestID?.slice(0, 4)])
	}
}

// @ai-sdk/anthropic
const provider = createAnthropic({ baseURL: baseURL + '/v1', apiKey: 'none' })
const looks = tool({ description: 'Looks', inputSchema: z.object({ at: z.string() }), execute: async ({ at }) => 'seen ' + at })
say('ai', (await generateText({ model: provider('stone/upper'), prompt: 'marble' })).text)
let text = ''
const streamed = streamText({ model: provider('stone/upper'), prompt: 'slate' })
for await (const part of streamed.textStream) text += part
say('ai stream', [text, (await streamed.usage).totalTokens, await streamed.finishReason])
const thinking = { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } }
const steps = await generateText({ model: provider(model), prompt: 'look', tools: { look: looks }, stopWhen: stepCountIs(3), providerOptions: thinking })
say('ai tools', [steps.text, steps.steps.length, steps.steps[0].reasoningText])
const more = streamText({ model: provider(model), prompt: 'look', tools: { look: looks }, stopWhen: stepCountIs(3) })
say('ai stream tools', [await more.text, (await more.steps).length])
say('ai object', (await generateText({ model: provider(model), prompt: 'Where?', output: Output.object({ schema: z.object({ town: z.string() }) }) })).output)
try {
	await generateText({ model: provider(model), prompt: 'impolite' })
} catch (e) {
	say('ai refused', [e.statusCode, e.isRetryable, e.message])
}
