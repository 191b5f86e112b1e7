// Real clients ask the server at STONE_URL. Each line of the output is what one of them got.
import OpenAI from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { generateText, streamText, tool, stepCountIs, Output } from 'ai'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool as agentTool } from '@openai/agents'
import { z } from 'zod'

const baseURL = process.env.STONE_URL + '/v1'
const client = new OpenAI({ baseURL, apiKey: 'none' })
const say = (name, value) => console.log(name + ': ' + JSON.stringify(value))
const model = 'stone/chat/answer'

// openai
say('models', (await client.models.list()).data.map(m => m.id).includes(model))
say('model', (await client.models.retrieve(model)).id)
const response = await client.responses.create({ model: 'stone/upper', input: 'marble' })
say('responses', [response.status, response.output_text, response.usage.total_tokens])
let pieces = ''
for await (const e of await client.responses.create({ model: 'stone/upper', input: 'slate', stream: true })) {
	if (e.type === 'response.output_text.delta') pieces += e.delta
	if (e.type === 'response.completed') pieces += '.'
}
say('responses stream', pieces)
const events = client.responses.stream({ model: 'stone/upper', input: 'chalk' })
say('responses helper', (await events.finalResponse()).output_text)
const chat = await client.chat.completions.create({ model: 'stone/upper', messages: [{ role: 'user', content: 'marble' }] })
say('chat', [chat.choices[0].message.content, chat.choices[0].finish_reason])
const chunks = client.chat.completions.stream({ model: 'stone/upper', messages: [{ role: 'user', content: 'slate' }], stream_options: { include_usage: true } })
say('chat stream', (await chunks.finalChatCompletion()).choices[0].message.content)
const background = await client.responses.create({ model: 'stone/slow', input: 'x', background: true })
say('background', background.status)
say('cancel', (await client.responses.cancel(background.id)).status)
say('retrieve', (await client.responses.retrieve(background.id)).status)
for (const [name, body] of Object.entries({ unknown: { model: 'gpt-5', input: 'x' }, refused: { model: 'stone/upper', input: 'bad' } })) {
	try {
		await client.responses.create(body)
	} catch (e) {
		say('error ' + name, [e.constructor.name, e.status, e.code])
	}
}

const town = z.object({ town: z.string() })
const asked = { model, messages: [{ role: 'user', content: 'Where?' }] }
say('format', (await client.chat.completions.parse({ ...asked, response_format: zodResponseFormat(town, 'town') })).choices[0].message.parsed.town)
const format = { format: zodTextFormat(town, 'town') }
const first = await client.responses.parse({ model, input: 'Where?', text: format })
const then = await client.responses.parse({ model, input: 'Really?', text: format, previous_response_id: first.id })
say('format responses', [first.output_parsed.town, then.output_parsed.town])
try {
	await client.chat.completions.create({ ...asked, response_format: zodResponseFormat(z.object({ river: z.string() }), 'river') })
} catch (e) {
	say('format refused', [e.constructor.name, e.status, e.code])
}

// ai
const openAI = createOpenAI({ baseURL, apiKey: 'none' })
const provider = createOpenAICompatible({ name: 'stone', baseURL, includeUsage: true })
const look = tool({ description: 'Looks', inputSchema: z.object({ at: z.string() }), execute: async ({ at }) => 'seen ' + at })
say('ai', (await generateText({ model: provider('stone/upper'), prompt: 'marble' })).text)
const streamed = streamText({ model: provider('stone/upper'), prompt: 'slate' })
let text = ''
for await (const part of streamed.textStream) text += part
say('ai stream', text)
const stepped = await generateText({ model: provider(model), prompt: 'look', tools: { look }, stopWhen: stepCountIs(3) })
say('ai tools', [stepped.text, stepped.steps.length])
say('ai object', (await generateText({ model: openAI(model), prompt: 'Where?', output: Output.object({ schema: town }) })).output.town)

// @openai/agents
setTracingDisabled(true)
const looks = agentTool({ name: 'look', description: 'Looks', parameters: z.object({ at: z.string() }), execute: async ({ at }) => 'seen ' + at })
for (const [name, Model] of Object.entries({ responses: OpenAIResponsesModel, chat: OpenAIChatCompletionsModel })) {
	const agent = new Agent({ name: 'looker', instructions: 'Look.', tools: [looks], model: new Model(client, model) })
	say('agents ' + name, (await run(agent, 'look')).finalOutput)
	const live = await run(agent, 'look', { stream: true })
	await live.completed
	say('agents stream ' + name, live.finalOutput)
}
