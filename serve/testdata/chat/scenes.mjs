// Uses pages of chat libraries in Chromium against the server at STONE_URL. Each line of the output is what a page shows at the
// end of a scene, and how many requests it sent. SCENE selects scenes by their names.
import { createRequire } from 'node:module'

const { STONE_URL: base, MODULES, CHROMIUM, SCENE = '', SHOTS } = process.env
const require = createRequire(MODULES + '/')
const { chromium } = require('playwright-core')
const esbuild = require('esbuild')

const control = what => fetch(base + '/control/' + what, { method: 'POST' }).then(r => r.text())
const sleep = ms => new Promise(r => setTimeout(r, ms))

// A driver uses one page.
class Driver {
	constructor(page) { this.page = page, this.posts = [], this.errors = [] }
	async open(file, settings) {
		await this.page.goto(`${base}/${file}?` + new URLSearchParams(settings))
		await this.idle()
	}
	// idle waits until the page is done: it sends nothing more.
	async idle() {
		let text = ''
		for (let same = 0, posts; same < 4 && this.posts.length < 50; await sleep(25)) {
			text = await this.page.locator('output').textContent()
			same = /^(ready|error)/.test(text) && posts === this.posts.length ? same + 1 : 0
			posts = this.posts.length
		}
		if (text.startsWith('error')) this.errors.push(text.replace(/.*"detail":"|"}\s*$/g, ''))
	}
	async send(text, wait = true) {
		await this.page.fill('form input, .new', text)
		await this.page.click('text=Send')
		if (wait) await this.idle()
	}
	async click(text, wait = true) {
		await this.page.locator(`button:text-is("${text}")`).first().click()
		if (wait) await this.idle()
	}
	sees(text) { return this.page.getByText(text).last().waitFor({ timeout: 10_000 }) }
	async shot(name) { if (SHOTS) await this.page.screenshot({ path: `${SHOTS}/${name}.png` }) }
	shown() {
		return this.page.evaluate(() => [...document.querySelectorAll('#root p, output')].map(e => e.firstElementChild?.matches('button') ? e.innerText.replace(/Approve|Deny/g, b => `[${b}]`) : e.innerText).map(t => t.replace(/\s+/g, ' ').trim()).filter(t => t && !/^(ready|error)/.test(t)))
	}
}

const runs = async prefix => (await (await fetch(base + '/v1/runs?limit=50')).json()).runs.filter(r => r.id.startsWith(prefix)).map(r => r.state).reverse()

// Each scene: the settings of the page, and what its user does. What it returns is shown too.
const scenes = {
	'two approvals': [{ when: 'approvals' }, async p => { await p.send('buy'); await p.shot('1-first'); await p.click('Approve'); await p.shot('2-second'); await p.click('Approve') }],
	'one denied': [{ when: 'approvals' }, async p => { await p.send('buy'); await p.click('Deny'); await p.click('Approve') }],
	'an approval after a client tool': [{ when: 'both' }, async p => { await p.send('scroll around buy'); await p.shot('3-client-tool'); await p.click('Approve') }],
	'a client tool after an approval': [{ when: 'both' }, async p => { await p.send('buy around scroll'); await p.click('Approve'); await p.click('Approve') }],
	'a client tool beside an approval': [{ when: 'calls' }, async p => { await p.send('scroll around buy'); await sleep(300) }],
	'a tool beside approvals': [{ when: 'approvals' }, async p => { await p.send('buy around look'); await p.click('Approve'); await p.click('Approve') }],
	'client tools': [{ when: 'calls' }, p => p.send('scroll')],
	'a message instead of an approval': [{ when: 'approvals' }, async p => { await p.send('buy around look'); await p.send('never mind'); await p.send('not that one'); await p.send('look') }],
	'regenerate during an approval': [{ when: 'approvals' }, async p => {
		await p.send('buy')
		const old = await p.page.evaluate(() => JSON.parse(sessionStorage[new URLSearchParams(location.search).get('id')]).at(-1))
		await p.shot('4-before-regenerate')
		await p.click('Regenerate')
		await p.shot('5-regenerated')
		for (const part of old.parts) if (part.approval) part.approval.approved = true, part.state = 'approval-responded'
		const late = await fetch(`${base}/v1/ui/painter`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ id: p.id, messages: [old] }) })
		return [late.status, await runs(p.id)]
	}],
	'edit during an approval': [{ when: 'approvals' }, async p => {
		await p.send('buy')
		await p.page.fill('form input', 'look')
		await p.click('Edit')
		return runs(p.id)
	}],
	'stop with its run': [{ pipeline: 'slow', stop: 'cancel' }, async p => {
		await p.send('hello', false)
		await p.sees('One')
		await p.click('Stop')
		await p.send('and now', false)
		await p.page.waitForFunction(() => document.querySelectorAll('li').length === 4)
		await control('open')
		await p.idle()
		await control('close')
		return runs(p.id)
	}],
	'stop, and a message before the end': [{ pipeline: 'slow' }, async p => {
		await p.send('hello', false)
		await p.sees('One')
		await p.click('Stop')
		await p.send('and now', false)
		await sleep(200)
		await control('open')
		await p.idle()
		await control('close')
		return runs(p.id)
	}],
	'reload with an open approval': [{ when: 'approvals' }, async p => { await p.send('buy'); await p.page.reload(); await p.idle(); await p.click('Approve'); await p.page.reload(); await p.idle(); await p.click('Approve') }],
	'a second device': [{ when: 'approvals' }, async p => {
		await p.send('buy around look')
		await p.send('never mind')
		await p.page.evaluate(() => sessionStorage.clear())
		await p.open('usechat', { pipeline: 'painter', id: p.id, when: 'approvals', device: 2 })
		const at = await p.shown()
		await p.shot('6-second-device')
		await p.click('Approve')
		await p.shot('7-second-device-approved')
		return at
	}],
	'reload in the middle': [{ pipeline: 'slow' }, async p => {
		await p.send('hello', false)
		await p.sees('One')
		await p.page.reload()
		await p.sees('One')
		await control('open')
		await p.idle()
		await control('close')
	}],
	'a reply that was completed while the page was away': [{ pipeline: 'slow' }, async p => {
		await p.send('hello', false)
		await p.sees('One')
		await p.page.goto('about:blank')
		await control('open')
		while ((await runs(p.id)).some(state => state !== 'done')) await sleep(25)
		await p.open('usechat', { pipeline: 'slow', id: p.id })
		await p.sees('One two.')
		await control('close')
	}],
	'a page that always sends': [{ when: 'always' }, p => p.send('look')],
	'a page that always sends a result': [{ when: 'always' }, p => p.send('scroll around buy')],
	'the last message alone': [{ when: 'approvals', brief: 1 }, async p => { await p.send('look'); await p.send('buy around look'); await p.click('Approve'); await p.click('Deny') }],
	'any id': [{ when: 'approvals', id: '__LOCALID_ü/x:' + 'y'.repeat(150) }, async p => { await p.send('buy around look'); await p.page.reload(); await p.idle(); await p.click('Approve'); await p.click('Approve'); await p.send('look') }],
	'assistant-ui': [{ file: 'assistantui' }, async p => { await p.send('look'); await p.send('tools') }],
	'assistant-ui asks': [{ file: 'assistantui' }, async p => { await p.send('buy'); await p.click('Approve'); await p.click('Approve') }],
	'assistant-ui paints': [{ file: 'assistantui' }, p => p.send('paint around buy').then(() => p.click('Approve'))],
	'assistant-ui without tools': [{ file: 'assistantui', pipeline: 'mason' }, p => p.send('hello')],
	'assistant-ui again': [{ file: 'assistantui' }, async p => { await p.send('look'); await p.send('buy'); await p.click('Regenerate') }],
	'assistant-ui edits during an approval': [{ file: 'assistantui' }, async p => {
		await p.send('look')
		await p.send('buy')
		await p.page.locator('button:text-is("Edit")').last().click()
		await p.page.fill('.edit', 'hello')
		await p.click('Update')
		return (await runs('chat-')).slice(-3)
	}],
}

const bundles = {}
for (const file of ['usechat', 'assistantui']) {
	const out = await esbuild.build({
		entryPoints: [new URL(file + '.jsx', 'file://' + process.cwd() + '/testdata/chat/').pathname], bundle: true, write: false, format: 'esm', jsx: 'automatic', logLevel: 'error',
		nodePaths: [MODULES], alias: { 'ai-of-react': MODULES + '/@ai-sdk/react/node_modules/ai' }, define: { 'process.env.NODE_ENV': '"development"' },
	})
	bundles[file] = out.outputFiles[0].text
}
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
let n = 0
for (const [name, [settings, play]] of Object.entries(scenes)) {
	n++
	if (!name.includes(SCENE)) continue
	const context = await browser.newContext({ viewport: { width: 700, height: 640 } })
	await context.addInitScript(() => { globalThis.process = { env: {} } })
	const page = await context.newPage()
	page.setDefaultTimeout(10_000)
	const p = new Driver(page)
	page.on('request', r => { if (r.method() === 'POST') p.posts.push(r.url()) })
	page.on('pageerror', e => p.errors.push(String(e)))
	for (const [file, text] of Object.entries(bundles)) {
		await page.route(`${base}/${file}?*`, r => r.fulfill({ contentType: 'text/html', body: `<!doctype html><meta charset=utf-8><div id=root></div><script type=module src=/${file}.js></script>` }))
		await page.route(`${base}/${file}.js`, r => r.fulfill({ contentType: 'text/javascript', body: text }))
	}
	const { file = 'usechat', ...rest } = { pipeline: 'painter', id: 'scene-' + n, ...settings }
	p.id = rest.id
	let more
	try {
		await p.open(file, rest)
		more = await play(p)
	} catch (e) { more = String(e) }
	console.log(JSON.stringify([name, await p.shown(), ...more ? [more] : [], p.posts.length, ...p.errors]))
	await context.close()
}
await browser.close()
