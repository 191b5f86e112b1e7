// The default clients of large SDKs ask the server at STONE_URL. Each line of the output is what one of
// them got.
import OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { generateObject, generateText, stepCountIs, streamText, tool } from 'ai'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, applyPatchTool, run, setTracingDisabled, tool as agentTool, webSearchTool } from '@openai/agents'
import { z } from 'zod'

const baseURL = process.env.STONE_URL + '/v1'
const name = 'stone/chat/answer'
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64')
const pdf = Buffer.from('%PDF-1.4\n%%EOF\n')
const dataURL = (type, bytes) => `data:${type};base64,${bytes.toString('base64')}`
const say = async (client, feature, ask) => {
	let got
	try {
		got = await ask()
	} catch (e) {
		got = { status: e.statusCode ?? e.status ?? e.lastError?.statusCode, param: e.param ?? undefined, message: e.status ? undefined : e.message?.slice(0, 80) }
	}
	console.log(`${client}, ${feature}: ${typeof got === 'string' ? got : JSON.stringify(got)}`)
}

// aborted asks for an answer that takes long, and gives up once the run has begun.
const aborted = ask => async () => {
	const stop = new AbortController()
	const asked = ask(stop.signal).then(() => 'answered', e => /abort/i.test(e.name + e.message) ? 'aborted' : String(e))
	const waits = async () => (await (await fetch(process.env.STONE_URL + '/v1/runs?state=running')).json()).runs.length > 0
	while (!await waits());
	stop.abort()
	while (await waits());
	return asked
}

// ai
const ai = createOpenAI({ baseURL, apiKey: 'none' })
const look = tool({ description: 'Looks', inputSchema: z.object({ at: z.string() }), execute: async ({ at }) => 'seen ' + at })
for (const [client, model] of Object.entries({
	'ai responses': ai(name), 'ai chat': ai.chat(name),
	'ai compatible': createOpenAICompatible({ name: 'stone', baseURL, includeUsage: true, supportsStructuredOutputs: true })(name),
})) {
	const see = content => async () => (await generateText({ model, messages: [{ role: 'user', content: [content] }] })).text
	let first
	await say(client, 'text', async () => (first = await generateText({ model, prompt: 'marble' })).text)
	await say(client, 'reasoning', async () => [first.reasoningText, first.usage.reasoningTokens])
	await say(client, 'stream', async () => {
		let text = ''
		for await (const part of streamText({ model, prompt: 'slate' }).textStream) text += part
		return text
	})
	await say(client, 'second turn', async () =>
		(await generateText({ model, messages: [{ role: 'user', content: 'marble' }, ...first.response.messages, { role: 'user', content: 'again' }] })).text)
	await say(client, 'typed', async () => (await generateObject({ model, schema: z.object({ name: z.string() }), prompt: 'type' })).object)
	await say(client, 'two tools', async () => {
		const all = await generateText({ model, prompt: 'tools', tools: { look }, stopWhen: stepCountIs(3) })
		return [all.text, all.steps.length]
	})
	if (client !== 'ai compatible') { // which fetches it itself
		await say(client, 'image by URL', see({ type: 'image', image: new URL('https://a.example/x') }))
	}
	await say(client, 'image', see({ type: 'image', image: png }))
	await say(client, 'PDF', see({ type: 'file', mediaType: 'application/pdf', data: pdf, filename: 'a.pdf' }))
	if (client === 'ai responses') { // the others fetch it themselves
		await say(client, 'PDF by URL', see({ type: 'file', mediaType: 'application/pdf', data: new URL('https://a.example/x.pdf') }))
	}
	await say(client, 'abort', aborted(abortSignal => generateText({ model, prompt: 'wait', abortSignal, maxRetries: 3 })))
	await say(client, 'failure', async () => (await generateText({ model, prompt: 'refuse ' + client, maxRetries: 3 })).text)
	await say(client, 'failure in a stream', async () => {
		let text = ''
		for await (const part of streamText({ model, prompt: 'refuse stream ' + client, maxRetries: 3, onError() { } }).fullStream) {
			if (part.type === 'error') text += 'error'
		}
		return text
	})
}

// openai
const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 3 })
const see = content => async () => (await client.responses.create({ model: name, input: [{ role: 'user', content: [content] }] })).output_text
const seeChat = content => async () => (await client.chat.completions.create({ model: name, messages: [{ role: 'user', content: [content] }] })).choices[0].message.content
const functions = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } }, strict: false }]
await say('openai', 'typed', async () => (await client.responses.parse({ model: name, input: 'type', text: { format: zodTextFormat(z.object({ name: z.string() }), 'stone') } })).output_parsed)
await say('openai', 'second turn by id', async () => {
	const first = await client.responses.create({ model: name, input: 'tools', tools: functions })
	const calls = first.output.filter(o => o.type === 'function_call')
	return (await client.responses.create({ model: name, previous_response_id: first.id, tools: functions, input: calls.map(c => ({ type: 'function_call_output', call_id: c.call_id, output: 'found' })) })).output_text
})
await say('openai', 'custom tool', async () => {
	const tools = [{ type: 'custom', name: 'look', description: 'Looks', format: { type: 'grammar', syntax: 'regex', definition: '.*' } }]
	const first = await client.responses.create({ model: name, input: 'tools', tools })
	const calls = first.output.filter(o => o.type === 'custom_tool_call')
	const back = [...first.output, ...calls.map(c => ({ type: 'custom_tool_call_output', call_id: c.call_id, output: c.input + '!' }))]
	return (await client.responses.create({ model: name, tools, input: [{ role: 'user', content: 'tools' }, ...back] })).output_text
})
await say('openai', 'custom tool of a chat', async () => {
	const tools = [{ type: 'custom', custom: { name: 'look', description: 'Looks' } }]
	const messages = [{ role: 'user', content: 'tools' }]
	const first = (await client.chat.completions.create({ model: name, messages, tools })).choices[0].message
	messages.push(first, ...first.tool_calls.map(c => ({ role: 'tool', tool_call_id: c.id, content: c.custom.input + '?' })))
	return (await client.chat.completions.create({ model: name, messages, tools })).choices[0].message.content
})
await say('openai', 'allowed tools', async () => {
	const tools = [...functions, { ...functions[0], name: 'touch' }]
	const r = await client.responses.create({ model: name, input: 'tools', tools, tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'touch' }] } })
	return r.output.filter(o => o.type === 'function_call').map(o => o.name)
})
await say('openai', 'image by URL', see({ type: 'input_image', image_url: 'https://a.example/x' }))
await say('openai', 'PDF', see({ type: 'input_file', filename: 'a.pdf', file_data: dataURL('application/pdf', pdf) }))
await say('openai', 'PDF by URL', see({ type: 'input_file', file_url: 'https://a.example/x.pdf' }))
await say('openai', 'abort', aborted(signal => client.responses.create({ model: name, input: 'wait' }, { signal })))
await say('openai', 'abort of a chat', aborted(signal => client.chat.completions.create({ model: name, messages: [{ role: 'user', content: 'wait' }] }, { signal })))
await say('openai', 'abort of a stream', aborted(async signal => {
	for await (const _ of await client.responses.create({ model: name, input: 'wait', stream: true }, { signal }));
	throw new Error(signal.aborted ? 'aborted' : 'ended') // the client ends an aborted stream quietly
}))
await say('openai', 'image by URL in a chat', seeChat({ type: 'image_url', image_url: { url: 'https://a.example/x' } }))
await say('openai', 'PDF in a chat', seeChat({ type: 'file', file: { filename: 'a.pdf', file_data: dataURL('application/pdf', pdf) } }))
await say('openai', 'sound in a chat', seeChat({ type: 'input_audio', input_audio: { data: png.toString('base64'), format: 'wav' } }))
await say('openai', 'reasoning tokens of a chat', async () => (await client.chat.completions.create({ model: name, messages: [{ role: 'user', content: 'x' }] })).usage.completion_tokens_details)
await say('openai', 'failure', async () => (await client.responses.create({ model: name, input: 'refuse openai' })).status)
await say('openai', 'unknown tool', async () => (await client.responses.create({ model: name, input: 'x', tools: [{ type: 'mcp', server_label: 'a', server_url: 'https://a.example' }] })).status)
await say('openai', 'unknown item', async () => (await client.responses.create({ model: name, input: [{ type: 'item_reference', id: 'msg_none' }, { role: 'user', content: 'x' }] })).status)
await say('openai', 'embeddings', async () => client.embeddings.create({ model: name, input: 'x' }))
await say('openai', 'request id', async () => (await client.responses.create({ model: name, input: 'x' }))._request_id.slice(0, 5))

// @openai/agents
setTracingDisabled(true)
const looks = agentTool({ name: 'look', description: 'Looks', parameters: z.object({ at: z.string() }), execute: async ({ at }) => 'seen ' + at })
for (const [client2, Model] of Object.entries({ 'agents responses': OpenAIResponsesModel, 'agents chat': OpenAIChatCompletionsModel })) {
	const with_ = tools => new Agent({ name: 'looker', instructions: 'Look.', tools, model: new Model(client, name) })
	await say(client2, 'two tools', async () => (await run(with_([looks]), 'tools')).finalOutput)
	await say(client2, 'second turn', async () => {
		const first = await run(with_([looks]), 'tools')
		return (await run(with_([looks]), first.history.concat({ role: 'user', content: 'again' }))).finalOutput
	})
	await say(client2, 'failure', async () => (await run(with_([]), 'refuse ' + client2)).finalOutput)
}
const hosted = tool => async () => (await run(new Agent({ name: 'h', tools: [tool], model: new OpenAIResponsesModel(client, name) }), 'x')).finalOutput
await say('agents', 'web search', hosted(webSearchTool()))
await say('agents', 'apply patch', hosted(applyPatchTool({ editor: { createFile() { }, updateFile() { }, deleteFile() { } } })))
