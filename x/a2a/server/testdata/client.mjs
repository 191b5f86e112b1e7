// Clients of another project talk to the agent at STONE_URL. Each line of the output is what one got.
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client'
import { Role, TaskState, taskStateToJSON } from '@a2a-js/sdk'
import * as old from 'a2a03/client'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { once } from 'node:events'

const url = process.env.STONE_URL
const say = (name, value) => console.log(name + ': ' + JSON.stringify(value))
const text = parts => parts.map(p => p.content?.$case === 'text' ? p.content.value : '').join('')
const message = (skill, said, more = {}) => ({
	message: {
		messageId: randomUUID(), role: Role.ROLE_USER, parts: [{ content: { $case: 'text', value: said }, mediaType: 'text/plain', filename: '', metadata: {} }],
		metadata: skill ? { skill } : {}, extensions: [], referenceTaskIds: [], contextId: '', taskId: '', ...more,
	}, metadata: {}, tenant: '', configuration: undefined,
})
const state = s => taskStateToJSON(s).replace('TASK_STATE_', '').toLowerCase()
const task = r => r.payload?.value ?? r
const refused = promise => promise.then(() => 'accepted', e => e.name)

// A receiver of notifications.
const got = [], waits = []
const receiver = createServer((req, res) => {
	let body = ''
	req.on('data', d => body += d).on('end', () => {
		res.end()
		got.push([JSON.parse(body).task.status.state, req.headers['a2a-notification-token'] ?? '', req.headers.authorization ?? ''])
		waits.shift()?.()
	})
}).listen(0, '127.0.0.1')
await once(receiver, 'listening')
const hook = `http://127.0.0.1:${receiver.address().port}/`
const notice = async () => {
	if (!got.length) await new Promise(r => waits.push(r))
	return got.shift()
}

for (const [name, transport] of [['JSON-RPC', new JsonRpcTransportFactory()], ['REST', new RestTransportFactory()]]) {
	const factory = new ClientFactory({ transports: [transport] })
	const client = await factory.createFromUrl(url)
	const card = await client.getAgentCard()
	say(name + ' card', [card.skills.map(s => s.id), card.capabilities.streaming, client.transport.constructor.name])
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
	const picture = message('eye', 'What?')
	const png = { content: { $case: 'raw', value: Buffer.from('iVBORw0KGgo=', 'base64') }, mediaType: 'image/png', filename: '', metadata: {} }
	picture.message.parts.push(png, { ...file, metadata: {} })
	say(name + ' picture', text(task(await client.sendMessage(picture)).artifacts[0].parts))
	let said = '', last = ''
	for await (const event of client.sendMessageStream(message('chat', 'Hello ' + name))) {
		const { $case, value } = event.payload
		if ($case === 'artifactUpdate') said = (value.append ? said : '') + text(value.artifact.parts)
		if ($case === 'statusUpdate') last = state(value.status.state)
	}
	say(name + ' stream', [said, last])
	say(name + ' cancel', await refused(client.cancelTask({ id: published.id, tenant: '', metadata: {} })))

	// Each pipeline is an agent of its own, which needs no skill.
	const one = await factory.createFromUrl(url + '/a2a/draft/')
	const alone = task(await one.sendMessage(message('', 'slate alone')))
	say(name + ' alone', [(await one.getAgentCard()).name, state(alone.status.state), text(alone.artifacts[0].parts)])
	say(name + ' of another agent', await refused(one.getTask({ id: published.id, tenant: '' })))

	const config = { tenant: '', id: 'mine', taskId: '', url: hook, token: 't0ken', authentication: { scheme: 'Bearer', credentials: 's3cret' } }
	const pushed = message('page', 'push ' + name)
	pushed.configuration = { acceptedOutputModes: [], taskPushNotificationConfig: config, returnImmediately: true }
	const { id } = task(await client.sendMessage(pushed))
	say(name + ' push', await notice())
	const of = { tenant: '', taskId: id, id: 'mine' }
	await client.deleteTaskPushNotificationConfig(of)
	say(name + ' push deleted', await refused(client.getTaskPushNotificationConfig(of)))
	const created = await client.createTaskPushNotificationConfig({ ...config, taskId: id, id: 'again' })
	say(name + ' push created', [created.id, created.taskId === id, created.url === hook, created.token, created.authentication, await notice()])
	const read = await client.getTaskPushNotificationConfig({ ...of, id: 'again' })
	const { configs } = await client.listTaskPushNotificationConfig({ tenant: '', taskId: id, pageSize: 0, pageToken: '' })
	say(name + ' push list', [read.url === hook, configs.map(c => c.id)])
	say(name + ' push refused', await refused(client.createTaskPushNotificationConfig({ ...config, taskId: id, url: '' })))
}

for (const [name, transport] of [['0.3 JSON-RPC', new old.JsonRpcTransportFactory()], ['0.3 REST', new old.RestTransportFactory()]]) {
	const client = await new old.ClientFactory({ transports: [transport] }).createFromUrl(url + '/a2a/page/')
	const send = (said, more) => client.sendMessage({ message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text: said }], ...more } })
	const card = await client.getAgentCard()
	say(name + ' card', [card.name, card.skills.map(s => s.id)])
	const waiting = await send('chalk ' + name)
	say(name + ' asks', [waiting.kind, waiting.status.state, waiting.status.message.parts[0].text])
	const published = await send('yes', { taskId: waiting.id, contextId: waiting.contextId })
	say(name + ' answered', [published.status.state, published.artifacts[0].parts[0].text])
	say(name + ' get', (await client.getTask({ id: waiting.id })).status.state)
	const events = []
	for await (const event of client.sendMessageStream({ message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text: 'stream ' + name }] } })) events.push(event.kind)
	say(name + ' stream', [...new Set(events)])
	say(name + ' cancel', await refused(client.cancelTask({ id: waiting.id })))
	if (name === '0.3 REST') continue // the SDKs of 0.3 do not agree on the form of a configuration
	await client.setTaskPushNotificationConfig({ taskId: waiting.id, pushNotificationConfig: { id: 'mine', url: hook, token: 't0ken' } })
	say(name + ' push', await notice())
}
receiver.close()
