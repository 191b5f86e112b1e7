// Clients ask the server at STONE_URL for vectors, and LangChain for answers. Each line of the output is what one of them got.
import OpenAI from 'openai'
import { OpenAIEmbeddings, ChatOpenAI } from '@langchain/openai'
import { tool } from '@langchain/core/tools'
import { HumanMessage } from '@langchain/core/messages'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { embed, embedMany } from 'ai'
import { z } from 'zod'

const baseURL = process.env.STONE_URL + '/v1', apiKey = 'none', model = 'stone/embedder'
const say = (name, value) => console.log(name + ': ' + JSON.stringify(value))
const client = new OpenAI({ baseURL, apiKey })
const got = await client.embeddings.create({ model, input: ['granite', 'slate'] }) // as base64
const same = v => v.length === got.data[0].embedding.length && v.every((x, i) => Math.abs(x - got.data[0].embedding[i]) < 1e-6)
say('openai', [got.data.length, got.data[0].embedding.length, got.model, got.usage.prompt_tokens])
say('openai floats', same((await client.embeddings.create({ model, input: 'granite', encoding_format: 'float' })).data[0].embedding))
for (const [name, more] of Object.entries({ dimensions: { dimensions: 8 }, tokens: { input: [1, 2] }, blank: { input: ' ' }, model: { model: 'text-embedding-3-small' } })) {
	try {
		await client.embeddings.create({ model, input: 'granite', ...more })
	} catch (e) {
		say('error ' + name, [e.status, e.code, e.param])
	}
}
say('models', (await client.models.list()).data.map(m => m.id))

const configuration = { baseURL }
const embeddings = new OpenAIEmbeddings({ model, apiKey, configuration })
say('langchain', [same(await embeddings.embedQuery('granite')), (await embeddings.embedDocuments(['granite', 'slate', 'chalk'])).length])
const look = tool(async ({ at }) => 'seen ' + at, { name: 'look', description: 'Looks', schema: z.object({ at: z.string() }) })
for (const useResponsesApi of [false, true]) {
	const chat = new ChatOpenAI({ model: 'stone/chat/answer', apiKey, configuration, useResponsesApi })
	const name = 'langchain ' + (useResponsesApi ? 'responses' : 'chat')
	say(name, (await chat.invoke('Hi')).text)
	let text = ''
	for await (const chunk of await chat.stream('Hi')) text += chunk.text
	say(name + ' stream', text)
	const messages = [new HumanMessage('look')], tools = chat.bindTools([look])
	const called = await tools.invoke(messages)
	messages.push(called, await look.invoke(called.tool_calls[0]))
	say(name + ' tools', (await tools.invoke(messages)).text)
	say(name + ' object', await chat.withStructuredOutput(z.object({ town: z.string() }), { method: 'jsonSchema' }).invoke('Where?'))
}

say('ai', same((await embed({ model: createOpenAI({ baseURL, apiKey }).embedding(model), value: 'granite' })).embedding))
say('ai many', (await embedMany({ model: createOpenAICompatible({ name: 'stone', baseURL }).textEmbeddingModel(model), values: ['granite', 'slate'] })).embeddings.map(v => v.length))
