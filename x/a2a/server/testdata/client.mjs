// A client of another project talks to the agent at STONE_URL. Each line of the output is what it got.
import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client'
import { Role, TaskState, taskStateToJSON } from '@a2a-js/sdk'
import { randomUUID } from 'node:crypto'

const say = (name, value) => console.log(name + ': ' + JSON.stringify(value))
const text = parts => parts.map(p => p.content?.$case === 'text' ? p.content.value : '').join('')
const message = (skill, said, more = {}) => ({
	message: {
		messageId: randomUUID(), role: Role.ROLE_USER, parts: [{ content: { $case: 'text', value: said }, mediaType: 'text/plain', filename: '', metadata: {} }],
		metadata: { skill }, extensions: [], referenceTaskIds: [], contextId: '', taskId: '', ...more,
	}, metadata: {}, tenant: '', configuration: undefined,
})
const state = s => taskStateToJSON(s).replace('TASK_STATE_', '').toLowerCase()
const task = r => r.payload?.value ?? r

for (const [name, transport] of [['JSON-RPC', new JsonRpcTransportFactory()], ['REST', new RestTransportFactory()]]) {
	const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports: [transport] }))
	const client = await factory.createFromUrl(process.env.STONE_URL)
	const card = await client.getAgentCard()
	say(name + ' card', [card.skills.map(s => s.id), card.capabilities.streaming])
	const done = task(await client.sendMessage(message('draft', 'slate ' + name)))
	say(name + ' send', [state(done.status.state), text(done.artifacts[0].parts)])
	const waiting = task(await client.sendMessage(message('page', 'chalk ' + name)))
	say(name + ' asks', [state(waiting.status.state), text(waiting.status.message.parts)])
	const published = task(await client.sendMessage(message('page', 'yes', { taskId: waiting.id, contextId: waiting.contextId })))
	say(name + ' answered', [state(published.status.state), text(published.artifacts[0].parts)])
	say(name + ' get', state((await client.getTask({ id: published.id, tenant: '' })).status.state))
	const file = { content: { $case: 'raw', value: Buffer.from('scanned') }, mediaType: 'text/plain', filename: 'a.txt', metadata: { field: 'front' } }
	const sent = message('copy', '')
	sent.message.parts = [file]
	const [back] = task(await client.sendMessage(sent)).artifacts[0].parts
	say(name + ' file', [back.filename, back.mediaType, Buffer.from(back.content.value).toString()])
	let said = '', last = ''
	for await (const event of client.sendMessageStream(message('chat', 'Hello ' + name))) {
		const { $case, value } = event.payload
		if ($case === 'artifactUpdate') said = (value.append ? said : '') + text(value.artifact.parts)
		if ($case === 'statusUpdate') last = state(value.status.state)
	}
	say(name + ' stream', [said, last])
	try {
		await client.cancelTask({ id: published.id, tenant: '', metadata: {} })
	} catch (e) {
		say(name + ' cancel', e.name)
	}
}
