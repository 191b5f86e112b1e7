// Uses the page in Chromium, with the program at WEB, which it starts, kills and starts again.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import assert from 'node:assert/strict'

const { chromium } = createRequire(process.env.MODULES + '/page.js')('playwright-core')
const url = 'http://' + process.env.ADDRESS
let log = ''

function start({ modules = process.env.MODULES, pause = '150ms' } = {}) {
	const program = spawn(process.env.WEB, ['-address', process.env.ADDRESS, '-db', process.env.DB, '-modules', modules, '-pause', pause])
	program.stderr.on('data', text => { log += text })
	return program
}
const until = async (what, ready) => {
	for (const end = Date.now() + 60_000; !await ready(); await new Promise(r => setTimeout(r, 50)))
		if (Date.now() > end) throw new Error(`${what} did not happen; the page shows:\n${await shown()}\nthe program said:\n${log}`)
}
async function restart(options) {
	program.kill('SIGKILL')
	await new Promise(r => program.on('exit', r))
	log = ''
	program = start(options)
	await until('the start', () => log.includes('listening'))
}
let program = start()
await until('the start', () => log.includes('listening'))
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] })
const page = await browser.newPage()
page.on('pageerror', e => { log += e.stack })
const shown = () => page.evaluate(() => document.getElementById('messages').innerText.replace(/\n+/g, '\n').trim())
const see = text => until(`"${text}"`, async () => (await shown()).endsWith(text))
const ready = () => until('the end', () => page.evaluate(() => document.getElementById('status').value === 'ready'))
const send = async text => { await page.fill('#text', text); await page.click('text=Send') }
const asked = () => log.split('asked with').length - 1
const whole = 'One two three four five six seven eight nine ten eleven twelve.'
const part = /\nOne two three[^.\n]*$/

try {
	await page.goto(url + '/web#talk')
	await ready()
	await send('hello')
	await see('hello\nYou said: hello')
	await ready()
	await send('and slate')
	await see('You said: and slate')
	assert.match(log, /asked with 3 messages\n$/, 'a second turn knows the first')
	await ready()

	await send('count')
	await until('the middle of the answer', async () => part.test(await shown()))
	await page.reload()
	await see(whole)
	assert.equal(asked(), 3, 'a reload asks nobody again')
	assert.equal((await shown()).split('One two').length, 2)
	await ready()

	await send('order')
	await page.waitForSelector('text=Approve')
	await ready()
	await page.reload()
	await page.click('text=Approve')
	await see('Done. It arrives on Monday.')
	assert.equal(log.split('ordered 2 t').length, 2, 'ordered once')
	await ready()

	// Another device has the conversation, with the question, and answers it.
	await send('order more')
	await page.waitForSelector('text=Deny')
	const other = await (await browser.newContext()).newPage()
	await other.goto(url + '/web')
	await other.click('nav a')
	await other.click('text=Deny')
	const denied = "Done. order did not run: it needs a person's approval, which was not given. Continue without it, or say why it is needed."
	await until('the answer', async () => (await other.innerText('#messages')).endsWith(denied))
	await other.close()
	await page.reload()
	await see(denied)
	assert.equal(log.split('ordered 2 t').length, 2, 'ordered nothing more')
	await ready()

	await restart({ pause: '2s' }) // slow enough to be stopped and killed in the middle of an answer
	await send('count again')
	await until('the middle of the answer', async () => part.test(await shown()))
	await page.click('#stop')
	const run = (await (await fetch(url + '/v1/ui/mason')).json()).threads[0].newest
	await until('the cancellation', async () => (await (await fetch(`${url}/v1/runs/${run}`)).json()).state === 'canceled')
	await ready()
	await send('hello again')
	await see('You said: hello again')
	await ready()

	await send('count to the end')
	await until('the middle of the answer', async () => part.test(await shown()))
	program.kill('SIGKILL')
	await new Promise(r => program.on('exit', r))
	await until('the error', () => page.evaluate(() => document.getElementById('status').value !== 'streaming'))
	log = ''
	program = start()
	await see(whole)
	await ready()
	assert.equal((await shown()).split('count to the end').length, 2)
	assert.equal((await shown()).split('count to the end')[1].trim(), whole, 'the answer once')
	await send('bye')
	await see('You said: bye')

	await restart({ modules: '/nowhere' })
	assert.match(log, /npm ci/)
	await page.goto(url + '/web')
	await until('the hint', async () => (await page.innerText('#status')).includes('npm ci'))
} finally {
	await browser.close()
	program.kill('SIGKILL')
}
