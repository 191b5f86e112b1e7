// Specs of the pages. Run: node specs.mjs. Environment variables name the servers and the programs.
// Each line of output is one result in JSON. SPEC selects specs by name.
import { createRequire } from "node:module";
import { spawn } from "node:child_process";
import { strict as assert } from "node:assert";
import { readFileSync, writeFileSync } from "node:fs";
import { differences, faultsOf, mutations, shapeOf } from "./shape.mjs";

const { MODULES, CHROMIUM, INSPECT, ANSWER, SERVE, FAILS, SLOW, SPEAKS, PRICED, LIBRARY, CALLFILE, REPORT, HOUSE, DB, DESK, DESKSERVE, FILE, SPEC, LARGE, SIGNIN, GALLERY, DESIGN, VIEWS, SHAPES } = process.env;
const require = createRequire(MODULES + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });

// SIGNIN contains the addresses that the servers print, each with the token of its server.
const tokens = new Map(SIGNIN.split(" ").map((at) => [new URL(at).origin, new URL(at).searchParams.get("token")]));
const fetch = (at, options = {}) => globalThis.fetch(at, { ...options, headers: { Authorization: "Bearer " + tokens.get(new URL(at).origin), ...options.headers } });

// Three specs run at a time, in source order.
const specs = [];
function spec(name, options, test) {
	if (!test) [options, test] = [{}, options];
	if (new RegExp(SPEC || "").test(name)) specs.push(() => run(name, options, test));
}

async function run(name, options, test) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
	context.setDefaultTimeout(20000);
	for (const at of SIGNIN.split(" ")) await context.request.get(at);
	const page = await context.newPage();
	await page.addInitScript(() => {
		// Find what a person cannot see: elements beyond the right edge that cannot be scrolled into view.
		window.beyond = () => [...document.querySelectorAll("body *")].filter((e) => {
			if (!e.checkVisibility() || e.closest(".hidden, .skip, svg") || e.closest(".wide")) return false;
			const box = e.getBoundingClientRect();
			return box.width > 1 && box.right > innerWidth + 1;
		}).map((e) => e.outerHTML.slice(0, 120));
	});
	const errors = [];
	page.on("console", (m) => { if (m.type() === "error" && !m.text().includes("the server responded with a status")) errors.push(m.text()); });
	page.on("pageerror", (e) => errors.push(String(e)));
	page.on("dialog", (d) => { errors.push("a dialog: " + d.message()); d.dismiss(); });
	let error = "", figures;
	const began = performance.now();
	try {
		figures = await test(page, context);
		assert.deepEqual(errors, []);
	} catch (e) { error = String(e.stack || e); }
	await context.close();
	console.log(JSON.stringify({ name, error, figures, seconds: (performance.now() - began) / 1000 }));
}

const text = (page, selector) => page.locator(selector).first().innerText();
const elements = (page) => page.evaluate(() => document.querySelectorAll("*").length);
const start = (id, pipeline = "article", at = SERVE, labels) => fetch(`${at}/v1/runs/${id}`, { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ pipeline, labels }) });
const result = async (id, at = SERVE) => (await fetch(`${at}/v1/runs/${id}/result?wait=30s`)).json();
async function waiting(id) {
	await start(id);
	assert.equal((await result(id)).state, "waiting");
}

spec("the list has every run with its state", async (page) => {
	await page.goto(INSPECT);
	for (const [run, state] of [["fan", "done"], ["failing", "failed"], ["hostile", "waiting"]])
		assert.match(await text(page, `tr:has(a[href="/runs/${run}"])`), new RegExp(state));
});
spec("a filter is in the address, and its conditions are taken away one by one", async (page) => {
	await page.goto(INSPECT + "/?q=state:failed+pipeline:failing");
	assert.equal(await page.locator("tbody tr").count(), 2);
	assert.equal(await page.inputValue("#q"), "state:failed pipeline:failing");
	await page.click("[aria-label='Without state:failed']");
	await page.waitForURL(/q=pipeline/);
	assert.equal(await page.inputValue("#q"), "pipeline:failing");
});
spec("the filter searches failures", async (page) => {
	await page.goto(INSPECT);
	await page.keyboard.press("/");
	await page.keyboard.type('"NAMES NO SOURCE"');
	await page.keyboard.press("Enter");
	await page.waitForURL(/NAMES/);
	assert.equal(await page.locator("tbody tr").count(), 2);
	await page.click(".views a:text-is('all')");
	await page.waitForURL(INSPECT + "/");
	assert.ok(await page.locator("tbody tr").count() > 5);
});
spec("a filter that cannot be read is a page that says why", async (page) => {
	assert.equal((await page.goto(INSPECT + "/?q=usd>much")).status(), 400);
	assert.match(await text(page, "main"), /"much" is not an amount of USD/);
	assert.equal((await page.goto(INSPECT + "/?q=stat:failed")).status(), 400);
	assert.match(await text(page, "main"), /did you mean state/);
});
spec("a filter is saved in the browser, and forgotten", async (page) => {
	await page.goto(INSPECT + "/?q=pipeline:fan");
	await page.click("#saved button:text-is('Save')");
	await page.goto(INSPECT);
	await page.click("#saved a:text-is('pipeline:fan')");
	await page.waitForURL(/q=pipeline/);
	await page.click("#saved button:text-is('Forget')");
	assert.equal(await page.locator("#saved a").count(), 0);
});
spec("the overview counts runs by pipeline and day, and each number leads to its runs", async (page) => {
	await page.goto(INSPECT + "/overview");
	const row = "tr:has(a:text-is('failing'))";
	assert.match(await text(page, row), /2\s+2/);
	await page.click(row + " a.bad");
	await page.waitForURL(/q=state/);
	assert.deepEqual((await page.locator("tbody td.run").allInnerTexts()).sort(), ["failing", "failing2"]);
	await page.goBack();
	await page.locator(row + " .columns a").last().click();
	await page.waitForURL(/since/);
	assert.equal(await page.locator("tbody tr").count(), 2);
});
spec("the page of a pipeline has its runs and its graph, and starts no run without a server", async (page) => {
	await page.goto(INSPECT + "/pipelines/tickets");
	assert.match(await text(page, "main"), /cascade/);
	assert.ok(await page.locator(".graph").count() === 1);
	assert.equal(await page.locator(".start").count(), 0);
});
spec("a double click starts one run, also without JavaScript", { javaScriptEnabled: false }, async (page) => {
	await page.goto(SERVE + "/pipelines/article");
	if (!await page.locator(".start[open]").count()) await page.click(".start summary");
	const id = await page.getAttribute(".start input[name=id]", "value");
	await page.dblclick(".start button");
	await page.waitForURL(/runs/);
	assert.equal(page.url().split("/").pop(), id);
	assert.equal((await result(id)).state, "waiting");
});
spec("? shows the keys", async (page) => {
	await page.goto(INSPECT);
	await page.keyboard.press("?");
	assert.match(await text(page, "dialog[open]"), /next and previous row/);
	await page.keyboard.press("Escape");
	assert.equal(await page.locator("dialog[open]").count(), 0);
});
spec("evaluations have a trend", async (page) => {
	await page.goto(INSPECT + "/runs/new");
	const pipeline = (await text(page, "h1 small")).trim();
	await page.goto(INSPECT + "/pipelines/" + encodeURIComponent(pipeline));
	assert.equal(await page.locator("svg[aria-label^='Score of the last'] circle").count(), 2);
});
spec("a failed run says step, reason, input and what resume does", async (page) => {
	await page.goto(INSPECT + "/runs/failing");
	const failure = await text(page, ".failure");
	assert.match(failure, /Failed at failing\/check/);
	assert.match(failure, /names no source/);
	assert.match(failure, /stone resume failing retries failing\/check/);
	assert.match(await text(page, ".failure pre"), /A draft about this: Marble/);
});
spec("a run of 10,000 lanes is a small page", async (page) => {
	await page.goto(INSPECT + "/runs/fan");
	assert.match(await text(page, "#steps"), /9\s992 more/);
	assert.ok(await elements(page) < 2000);
});
spec("lanes are counted by state, and a page at a time", async (page) => {
	await page.goto(INSPECT + "/runs/fan?at=fan/things");
	assert.match(await text(page, ".counts"), /10 failed/);
	assert.ok(await elements(page) < 2000);
	const lane = async () => (await text(page, ".tree .branch a")).trim();
	const first = await lane();
	await page.click("text=more branches");
	await page.waitForURL(/from=/);
	assert.match(await lane(), /^\d+: /); // lanes are in the order in which they started
	assert.notEqual(await lane(), first);
});
spec("only the failed lanes are listed", async (page) => {
	await page.goto(INSPECT + "/runs/fan?at=fan/things");
	await page.click(".counts a.failed");
	await page.waitForURL(/only=failed/);
	assert.equal(await page.locator(".tree > .branch").count(), 10);
	assert.match(await text(page, ".tree"), /thing \d*999 cannot be measured/);
});
spec("a step has its content, its parents and its readers", async (page) => {
	await page.goto(INSPECT + "/runs/failing");
	await page.click("#steps a:text-is('write')");
	await page.waitForURL(/step/);
	assert.match(await text(page, "pre"), /A draft about this/);
	assert.match(await text(page, "[aria-labelledby=record]"), /Parents[^]*Read by/);
	await page.click("dt:text-is('Parents') + dd a");
	await page.waitForURL(/nodes/);
	assert.match(await text(page, "pre"), /Marble: what it is/);
});
spec("a step that failed says why", async (page) => {
	await page.goto(INSPECT + "/runs/failing/step?path=failing/check");
	assert.match(await text(page, ".failure"), /names no source/);
});
spec("the conversation of an agent is one, with its tool calls and a difference", async (page) => {
	await page.goto(INSPECT + "/runs/agent/step?path=repair");
	assert.deepEqual(await page.locator(".message h3").allInnerTexts(), ["system", "user", "assistant", "assistant", "assistant", "assistant"]);
	assert.match(await text(page, ".diff del"), /len\(v\)\+1/);
	assert.match(await text(page, ".diff ins"), /if len\(v\) == 0/);
	await page.click("summary:has-text('read_file')");
	assert.match(await text(page, "details[open] .answer"), /package mean/);
});
spec("a call says who was asked, what the checks said, who won and what it cost", async (page) => {
	await page.goto(INSPECT + "/runs/cascade");
	await page.click("#steps a:text-is('summarise')");
	await page.waitForURL(/step/);
	assert.match(await text(page, "[aria-labelledby=call] .lead"), /model\/large 2026-06 answered after 7 invocations of 4 capabilities. 6 answers were rejected or missing. 1 capability could not be asked./);
	const row = (n) => page.locator("tbody.attempt").nth(n).innerText();
	assert.match(await row(0), /model\/down[^]*runtime\/unavailable[^]*503 Service Unavailable/);
	assert.match(await row(2), /model\/tiny[^]*eval\/must-failed\s+0.5[^]*451\s+0.0002[^]*✗ must names-a-source\s+failed\s*: the field source is empty[^]*✗ should at-most-100\s+failed\s*: [^]*✓ should no-repetition\s+passed/);
	assert.match(await row(3), /attempt 2/);
	assert.match(await row(4), /model\/small[^]*eval\/low-score\s+0.355\s+0.21[^]*the score is 0.355, want 0.6\s[^]*· judge judge\/brevity 0.21: 158 characters/);
	assert.match(await row(6), /model\/large[^]*chosen\s+0.835\s+0.67[^]*0.0200[^]*✓ must names-a-source\s+passed/);
	assert.match(await text(page, ".facts"), /Strategy\s+cascade/);
	assert.match(await text(page, "[aria-labelledby=asked]"), /Input[^]*February's came late/);
	const node = await page.locator(".facts a[href*='/nodes/']").first().getAttribute("href");
	const record = JSON.parse((await (await fetch(INSPECT + "/v1" + node)).json()).meta.call);
	assert.equal(record.strategy, "cascade");
	assert.deepEqual(record.verdicts[6][0], { by: "names-a-source", as: "must", state: "passed" });
	assert.match(await text(page, "table.calls"), /solver\/words\s+not asked: intent\/not-supported/);
	assert.doesNotMatch(await text(page, "main"), /%!|0x/); // signs of a wrong format string
	assert.match(await text(page, "tbody.attempt details[open] pre >> nth=0"), /The customer writes at some length/);
	await page.click("a:has(code:text-is('model/small')) >> nth=0");
	await page.waitForURL(/small/);
	assert.match(await text(page, "pre.result"), /"source": "ticket 4711"/);
	assert.equal(await page.locator(".message").count(), 0);
	for (const href of await page.locator(".crumbs a, .facts a").evaluateAll((links) => links.map((l) => l.href)))
		assert.equal((await page.request.get(href)).status(), 200, href);
});
spec("a run says at a glance what was refused and why, what each model cost, and where the time went", async (page) => {
	await page.goto(INSPECT + "/runs/cascade");
	assert.match(await text(page, "[aria-labelledby=refusals]"), /model\/tiny\s*×2\s*names-a-source: the field source is empty: name the ticket[^]*model\/small\s*×2\s*the score is 0.355, want 0.6/);
	assert.match(await text(page, "[aria-labelledby=spent]"), /model\/large\s+1\s+428\s+0.0200[^]*judges\s+3/);
	assert.match(await text(page, "[aria-labelledby=slow]"), /summarise\/model\/large 1/);
	await page.click("[aria-labelledby=result] a:text-is('summarise')");
	assert.match(await text(page, "[aria-labelledby=asked]"), /February's came late/);
});
spec("what resuming pays is said", async (page) => {
	await page.goto(INSPECT + "/runs/refused");
	assert.match(await text(page, ".failure"), /results are kept and cost nothing again. What is retried cost 0.00020 USD before/);
});
spec("a run is searched in names, prompts and answers", async (page) => {
	await page.goto(INSPECT + "/runs/cascade");
	await page.keyboard.press("/");
	await page.keyboard.type("february");
	await page.keyboard.press("Enter");
	await page.waitForURL(/q=february/);
	assert.match(await text(page, "#steps"), /Steps with “february” · all steps[^]*prompt[^]*February/);
	assert.ok(await page.locator("#steps tbody tr").count() > 5);
	assert.equal((await page.locator("#steps mark").first().innerText()).toLowerCase(), "february");
	await page.keyboard.press("j");
	await page.keyboard.press("Enter");
	await page.waitForURL(/step\?path/);
	await page.goto(INSPECT + "/runs/cascade?q=nowhere+to+be+found");
	assert.match(await text(page, "#steps"), /No name, prompt or result in the run has/);
	await page.goto(INSPECT + "/runs/agent?q=you+repair");
	assert.match(await text(page, "#steps tbody"), /prompt[^]*You repair Go packages/);
	assert.equal((await page.goto(INSPECT + "/runs/agent?q=" + "x".repeat(300))).status(), 400);
});
spec("steps are walked, folded and opened by keys", async (page) => {
	await page.goto(INSPECT + "/runs/cascade");
	const rows = () => page.locator(".tree .row").evaluateAll((all) => all.filter((r) => r.checkVisibility()).length);
	assert.equal(await rows(), 13);
	for (const key of "jjjjjjj") { await page.keyboard.press(key); if (await page.evaluate(() => document.activeElement.innerText) === "summarise") break; }
	while (await page.evaluate(() => !document.activeElement.closest(".branch") || document.activeElement.innerText !== "summarise")) await page.keyboard.press("j");
	await page.keyboard.press("o");
	assert.equal(await rows(), 3);
	await page.keyboard.press("o");
	await page.keyboard.press("j");
	assert.equal(await page.evaluate(() => document.activeElement.innerText), "model/down");
	await page.keyboard.press("Enter");
	await page.waitForURL(/down/);
	await page.keyboard.press("u");
	await page.waitForURL(/at=/);
});
spec("the page of a pipeline says the most that a run may cost as the command does", async (page) => {
	await page.goto(PRICED + "/pipelines/tickets");
	assert.match(await text(page, "[aria-labelledby=price]"), /A run costs at most 0\.046 USD\.\s+0\.04 +tickets\/summarise: model\/large, asked up to 2 times[^]*0\.0002 +tickets\/summarise: model\/down/);
});
spec("the inbox is emptied by keys", async (page) => {
	for (const id of ["empty1", "empty2"]) await waiting(id);
	for (const id of ["empty1", "empty2"]) {
		await page.goto(SERVE + "/questions");
		while (await page.evaluate((id) => !document.activeElement.closest(".question")?.innerText.includes(id), id)) await page.keyboard.press("j");
		await page.keyboard.press("2");
		assert.equal(await page.evaluate(() => document.activeElement.innerText), "no");
		await page.keyboard.press("Enter");
		await page.waitForFunction((id) => document.querySelector("h1").innerText === "Questions" && !document.querySelector(`form[action='/runs/${id}/answers']`), id);
		assert.match((await result(id)).result.content, /^no:/);
	}
});
spec("answers that decide for later calls stand apart and say how long they last", async (page) => {
	await page.goto(ANSWER + "/runs/asksrefund");
	assert.deepEqual(await page.locator(".answer:not(.standing) .choices button").allInnerTexts(), ["yes", "no"]);
	assert.deepEqual(await page.locator(".standing button").allInnerTexts(), ["always", "never"]);
	assert.match(await text(page, ".standing"), /all later calls of refund too[^]*in this run/);
	await page.keyboard.press("4"); // after yes, no and no with a reason
	assert.equal(await page.evaluate(() => document.activeElement.innerText), "always");
});
spec("a question about a tool call shows what the model was asked and wants", async (page) => {
	await page.goto(INSPECT + "/runs/asksrefund");
	await page.click("summary:text-is('What the model saw and wants')");
	assert.match(await text(page, ".question details"), /Asked by the user\s+My cup arrived broken[^]*Wants to call refund[^]*"amount": "18.50"/i);
});
spec("the overview leads with what needs a person, and says which models cost what and which failures there were", async (page) => {
	await page.goto(INSPECT + "/overview");
	assert.match(await text(page, "[aria-labelledby=need]"), /failed\s+\w+|waiting/);
	assert.match(await text(page, "[aria-labelledby=spent]"), /model\/large/);
	assert.match(await text(page, "[aria-labelledby=kinds]"), /refused[^]*2/);
	assert.equal(await page.locator("svg[aria-label='Duration (p95) a day']").count(), 1);
});
spec("two evaluations are compared by what turned", async (page) => {
	await page.goto(INSPECT + "/compare?a=old&b=new");
	assert.match(await text(page, "[aria-labelledby=scores]"), /exact is perhaps worse than before[^]*exact\s+0.8293\s+0.6829\s+−0.1463[^]*29 \+ 45/);
	await page.goto(INSPECT + "/compare?a=new&b=old");
	assert.match(await text(page, "[aria-labelledby=scores]"), /\+0.1463/);
	assert.equal(await page.locator(".cases").count(), 0);
});
spec("a conversation has its turns on one page", async (page) => {
	await page.goto(INSPECT + "/?q=label:chat=cups");
	await page.click("a:text-is('conversation cups') >> nth=0");
	await page.waitForURL(/chats\/cups/);
	assert.equal(await page.locator(".message.user").count(), 2);
	assert.match(await text(page, "main"), /The test of package mean fails[^]*done · talk1[^]*tool calls[^]*Mean divided by one more/);
	assert.equal((await page.goto(INSPECT + "/chats/none")).status(), 404);
});
spec("a race tells the one that was first from the one that was stopped", async (page) => {
	await page.goto(INSPECT + "/runs/race/step?path=tickets/summarise");
	assert.match(await text(page, "tbody.attempt:has-text('chosen')"), /model\/large/);
	assert.match(await text(page, "tbody.attempt.canceled:has-text('model/slow')"), /another candidate was first/);
	const bar = (name) => page.locator(`tbody.attempt:has-text('${name}') rect`).first().evaluate((b) => [b.getAttribute("x"), b.getAttribute("width")].map(Number));
	const [slow, large] = [await bar("model/slow"), await bar("model/large")];
	assert.ok(large[0] < slow[0] + slow[1] && slow[0] < large[0] + large[1], [slow, large].join()); // at the same time
});
spec("a call that no one answered says why", async (page) => {
	await page.goto(INSPECT + "/runs/refused");
	assert.match(await text(page, ".failure .reason"), /^eval\/must-failed offers-a-refund: the text offers no refund/);
	await page.click(".failure h2 a");
	await page.waitForURL(/step/);
	assert.match(await text(page, "[aria-labelledby=call] .lead"), /^No answer passed after 8 invocations/);
	assert.equal(await page.locator("tbody.attempt.failed, tbody.attempt.rejected").count(), 8);
});
spec("a run whose process died says what is kept and what is possibly paid", async (page) => {
	for (let i = 0; i < 60 && (await page.goto(INSPECT + "/runs/killed"), !/interrupted/.test(await text(page, "h1"))); i++) await page.waitForTimeout(300);
	assert.match(await text(page, ".stopped"), /The process died without reporting[^]*3 results are kept[^]*2 steps had started without a result: they run again/);
	assert.match(await text(page, ".branch:has(> .row:has-text('model/slow'))"), /possibly paid, up to 0.0500 USD/);
	assert.match(await text(page, ".row:has-text('model/tiny 1')"), /451\s+tokens\s+0.0002/);
});
spec("a pause in which nothing ran is folded in the waterfall", async (page) => {
	await page.goto(INSPECT + "/runs/paused");
	const seconds = (text) => [...text.matchAll(/([\d.]+)(h|ms|m|s)/g)].reduce((sum, [, n, unit]) => sum + n * { h: 3600, m: 60, s: 1, ms: 0.001 }[unit], 0);
	const [, folded] = /(\S+) in which nothing ran are folded/.exec(await text(page, "#steps-title"));
	const axis = await text(page, ".heads .when .note");
	assert.ok(seconds(folded) > 1, folded);
	assert.ok(seconds(axis) < seconds(folded), `${axis} beside ${folded}`); // the pause does not occupy all the space
	assert.ok(await page.locator(".tree .bar path").count() >= 4);
	for (const [x, width] of await page.locator(".tree .bar rect").evaluateAll((all) => all.map((b) => [b.getAttribute("x"), b.getAttribute("width")].map(Number))))
		assert.ok(x >= 0 && x + width <= 160.001, `${x} + ${width}`);
});
spec("the rounds of a loop are counted from 1 in the tree", async (page) => {
	await page.goto(INSPECT + "/runs/improving");
	assert.deepEqual(await page.locator(".tree a.part, .tree .row a:text-matches('^round')").allInnerTexts().then((all) => all.filter((t) => /^round \d/.test(t))), ["round 1", "round 2", "round 3", "round 4"]);
	await page.click("a:text-is('round 3')");
	await page.waitForURL(/step|at=/);
});
spec("a long content is cut, and all of it is a link away", async (page) => {
	await page.goto(INSPECT + "/runs/long/step?path=long/lines");
	const cut = (await text(page, "pre.result")).length;
	assert.ok(cut <= 64 << 10 && cut > 60 << 10, String(cut));
	await page.click("text=more bytes");
	await page.waitForURL(/all=1/);
	assert.ok((await text(page, "pre.result")).length > 190000);
});
spec("large integers keep their digits", async (page) => {
	await page.goto(INSPECT + "/runs/long");
	assert.match(await text(page, "pre.result"), /12345678901234567890/);
});
spec("the graph counts the rounds of a loop, and the branches that ran", async (page) => {
	await page.goto(INSPECT + "/runs/improving?view=graph");
	assert.match(await page.locator("svg.graph").textContent(), /improve\s*loop, 4 of at most 6 rounds\s*✓ 16[^]*near\s*✓ 2[^]*far\s*✓ 2[^]*print\s*✗/);
});
spec("the graph folds a fan-out with its counts", async (page) => {
	await page.goto(INSPECT + "/runs/fan");
	await page.click("#steps a:text-is('graph')");
	await page.waitForURL(/view=graph/);
	assert.match(await page.locator("svg.graph").textContent(), /measure\s*✓ 9\s990\s+✗ 10/);
	assert.ok(await elements(page) < 150);
	await page.click("svg.graph a:has-text('sum')");
	await page.waitForURL(/step/);
});
spec("a run is exported for Perfetto", async (page) => {
	const trace = await page.request.get(INSPECT + "/runs/agent/trace");
	assert.ok((await trace.json()).traceEvents.length > 5);
	assert.match(trace.headers()["content-disposition"], /^attachment; filename="agent.trace.json"/);
});
spec("steps of agents and calls say what they did", async (page) => {
	const names = async (run) => {
		await page.goto(INSPECT + "/runs/" + run);
		return (await page.locator(".tree .row > :first-child > a:first-of-type").allInnerTexts()).map((t) => t.trim());
	};
	const agent = await names("agent");
	for (const name of ["calls read_file", "read_file mean.go", "edit_file mean.go", "answer"]) assert.ok(agent.includes(name), name + ": " + agent);
	const tried = await names("cascade");
	for (const name of ["model/large", "model/tiny 2", "model/down"]) assert.ok(tried.includes(name), name + ": " + tried);
	assert.equal(await page.locator(".branch.chosen .state.chosen").count(), 1); // it is never folded
	assert.ok(await page.locator(".branch.rejected").count() >= 2);
	assert.equal(await page.locator(".row:has-text('model/tiny') .state.done").count(), 0);
});
spec("lost lanes come before others", async (page) => {
	await page.goto(INSPECT + "/runs/fan");
	assert.match(await text(page, ".tree .row:has-text('cannot be measured')"), /999/);
	assert.ok(await page.locator(".tree .branch.failed").count() >= 5);
});
spec("a waiting run says what it asks, and the menu counts", async (page) => {
	await page.goto(INSPECT);
	assert.match(await text(page, "tr:has(a[href='/runs/asked'])"), /waiting[^]*Publish[^]*Answer/);
	assert.match(await text(page, "nav .badge"), /^[0-9]+/);
	assert.match(await text(page, "tr:has(a[href='/runs/asked']) time"), /ago|now/);
});
spec("on a phone nothing of the list is cut", async (page) => {
	await page.setViewportSize({ width: 390, height: 800 });
	await page.goto(INSPECT);
	assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
	// In one step, because the list is live and a row may be replaced at any time.
	const cut = await page.evaluate(() => [...document.querySelectorAll(".runs td")].filter((cell) => {
		const box = cell.getBoundingClientRect();
		return box.width && (box.left < 0 || box.right > 391);
	}).map((cell) => cell.innerText));
	assert.deepEqual(cut, []);
});
spec("two runs are compared", async (page) => {
	await page.goto(INSPECT);
	await page.check("input[name=run][value=long]");
	await page.click("text=Compare two runs");
	assert.match(await text(page, "main"), /1 is chosen/);
	await page.goBack();
	await page.check("input[name=run][value=long]");
	await page.check("input[name=run][value=failing]");
	await page.click("text=Compare two runs");
	await page.waitForURL(/compare/);
	assert.match(await text(page, "main"), /failing\/write[^]*the pipeline of run long has no such step/);
});
spec("the difference of a step is shown line by line", async (page) => {
	await page.goto(INSPECT + "/compare?a=cascade&b=refused");
	assert.match(await text(page, "tbody tr:has-text('summarise')"), /the settings of tickets\/summarise changed[^]*it failed in run refused/);
	await page.click("a:has-text('tickets/summarise')");
	await page.waitForURL(/step=/);
	assert.match(await page.locator(".diff del").allInnerTexts().then((l) => l.join("\n")), /- +"source": "ticket 4711"/);
	assert.match(await text(page, ".diff ins"), /the text offers no refund/);
	await page.click(".crumbs a:text-is('tickets')");
	assert.match(await text(page, "main"), /1 step differs/);
});
spec("a comparison is paged, and bounded", async (page) => {
	await page.goto(INSPECT + "/compare?a=fan&b=failing");
	assert.equal(await page.locator("[aria-label='Steps that differ'] tbody tr").count(), 100);
	assert.ok(await elements(page) < 2000);
	await page.click("a[rel=next]");
	await page.waitForURL(/from=100/);
	assert.equal((await page.goto(INSPECT + "/compare?a=fan&b=failing&from=-7&under=fan")).status(), 200);
});
spec("a comparison says who was asked and what it cost, and both failures", async (page) => {
	await page.goto(INSPECT + "/compare?a=cascade&b=race");
	assert.match(await text(page, ".works"), /cascade: model\/down 1 ✗ → [^]*model\/large 1 ✓[^]*0.0238[^]*race: [^]*~0.07/);
	await page.goto(INSPECT + "/compare?a=failing&b=refused");
	assert.match(await text(page, "main"), /A failed at failing\/check: [^]*names no source[^]*B failed at tickets\/summarise: [^]*offers no refund/);
});
spec("equal runs are equal", async (page) => {
	await page.goto(INSPECT + "/compare?a=failing&b=failing2");
	assert.match(await text(page, "main"), /same result in both/);
});
for (const path of ["/runs/none", "/runs/failing/step?path=none", "/runs/failing/nodes/0000", "/runs/failing?at=none", "/compare?a=failing&b=none", "/compare", "/compare?a=failing&b=long&step=none", "/?before=none", "/pipelines/none", "/none"])
	spec("a page that is not there: " + path, async (page) => {
		assert.equal((await page.goto(INSPECT + path)).status(), 404);
		assert.equal(await text(page, "h1"), "Not Found");
	});
for (const path of ["/", "/overview", "/runs/hostile", "/questions", "/runs/hostile/step?path=" + encodeURIComponent("hostile/" + "<script>document.title=\"owned\"<%2Fscript><img src=x onerror=\"document.title='owned'\">\"'><svg%2Fonload=alert(1)>{{.}}<%2Ftextarea><%2Fpre><%2Ftitle>javascript:alert(1)")])
	spec("script in texts and names is text: " + path.slice(0, 30), async (page) => {
		const reply = await page.goto(ANSWER + path);
		assert.equal(reply.status(), 200);
		await page.waitForLoadState("load");
		assert.doesNotMatch(await page.title(), /^owned/);
		assert.equal(await page.locator("main script, main img").count(), 0);
		const policy = reply.headers()["content-security-policy"];
		assert.match(policy, /default-src 'none'/);
		assert.doesNotMatch(policy, /unsafe/);
	});
spec("what a model writes is shown while it writes", async (page) => {
	await start("speaking", "speaking", SPEAKS);
	for (const path of ["/runs/speaking", "/runs/speaking/step?path=speaking/speak"]) {
		await page.goto(SPEAKS + path);
		await page.waitForSelector("#said pre:text('Marble is quarried in blocks of')");
		assert.match(await text(page, "#said h2"), /^speaking.speak is being written/);
		await page.evaluate(axe);
		assert.deepEqual((await page.evaluate("axe.run()")).violations.map((v) => v.id), []);
	}
	await page.goto(SPEAKS + "/runs/speaking");
	await page.click("summary:text-is('Cancel…')");
	await page.waitForSelector("#said pre");
	await page.click("button:text-is('Cancel the run')");
	await page.waitForSelector("h1:has-text('canceled')");
	assert.equal(await page.locator("#said").isVisible(), false);
});
spec("chosen runs are canceled, resumed and removed, each after a question", { javaScriptEnabled: false }, async (page) => {
	for (const id of ["many1", "many2", "many3"]) await waiting(id);
	const choose = async (deed, ...ids) => {
		await page.goto(SERVE + "/?q=pipeline:article");
		for (const id of ids) await page.check(`input[value=${id}]`);
		await page.click(`.foot button[value=${deed}]`);
	};
	const states = () => Promise.all(["many1", "many2", "many3"].map(async (id) => (await (await fetch(`${SERVE}/v1/runs/${id}`)).json()).state || "none"));
	await choose("cancel", "many1", "many2");
	assert.deepEqual(await states(), ["waiting", "waiting", "waiting"]);
	await page.click("button:text-is('Cancel 2 runs')");
	assert.match(page.url(), /q=pipeline/);
	assert.deepEqual(await states(), ["canceled", "canceled", "waiting"]);
	await choose("resume", "many1", "many3");
	assert.match(await text(page, "section:has-text('Left as they are')"), /many3/);
	await page.click("button:text-is('Resume 1 run')");
	assert.equal((await result("many1")).state, "waiting");
	await choose("remove", "many1", "many2", "many3");
	await page.click("button:text-is('Remove 3 runs')");
	await page.waitForURL(/q=pipeline/);
	assert.deepEqual(await states(), ["none", "none", "none"]);
	await page.goto(SERVE + "/");
});
spec("axe finds nothing on the question about chosen runs", async (page) => {
	await waiting("many4");
	await page.goto(SERVE + "/?q=pipeline:article");
	await page.check("input[value=many4]");
	await page.click(".foot button[value=cancel]");
	await page.waitForSelector("h1:text-is('Cancel 1 run?')");
	await page.evaluate(axe);
	assert.deepEqual((await page.evaluate("axe.run()")).violations.map((v) => v.id), []);
	await page.click("button:text-is('Cancel 1 run')");
	await page.waitForURL(/q=pipeline/);
});
spec("who may only read sees no form, and cannot answer", async (page) => {
	await page.goto(INSPECT + "/runs/asked");
	assert.equal(await page.locator("main form[method=post]").count(), 0);
	assert.match(await text(page, ".question"), /Publish this\?/);
	const reply = await page.request.post(INSPECT + "/runs/asked/answers", { form: { question: "article/approve", response: "yes" } });
	assert.equal(reply.status(), 403);
});
spec("who may only read sees no button, and cannot resume or cancel", async (page) => {
	for (const run of ["failing", "asked"]) {
		await page.goto(ANSWER + "/runs/" + run);
		assert.equal(await page.locator("form[action$='/resume'], form[action$='/cancel']").count(), 0);
		for (const what of ["resume", "cancel"]) assert.equal((await page.request.post(`${ANSWER}/runs/${run}/${what}`)).status(), 403);
	}
	assert.equal((await page.request.get(FAILS + "/runs/failing/resume")).status(), 405); // nothing changes on GET
});
spec("a choice with a blank is answered with a reason", async (page) => {
	await page.goto(ANSWER + "/questions");
	const blank = page.locator("form.blank[action='/runs/paying/answers']");
	assert.match(await text(page, ".question:has-text('support/refund')"), /order: 90071992547409931/);
	await blank.locator("input[name=blank]").fill("the order is too old");
	await page.keyboard.press("Enter");
	await page.waitForSelector("h1:text-is('Questions')");
	assert.equal(await page.locator("form.blank[action='/runs/paying/answers']").count(), 0);
	const { questions } = await (await fetch(ANSWER + "/v1/runs/paying/questions")).json();
	assert.equal(questions[0].response, "no: the order is too old");
	await page.goto(ANSWER + "/runs/paying");
	assert.match(await text(page, ".stopped"), /Every question has an answer[^]*stone resume paying continues/);
});
spec("the form is made from the schema, and its answer fits", async (page) => {
	await page.goto(ANSWER + "/runs/review");
	await page.selectOption("[name='field.verdict']", "accept");
	await page.fill("[name='field.score']", "1234567890123456789");
	await page.fill("[name='field.reasons']", "clear\nshort");
	await page.click("button:text-is('Answer')");
	await page.waitForFunction(() => document.querySelector("h1").innerText.includes("answered"));
	const { questions } = await (await fetch(ANSWER + "/v1/runs/review/questions")).json();
	assert.match(questions[0].response, /"score":1234567890123456789/);
	assert.deepEqual(JSON.parse(questions[0].response).reasons, ["clear", "short"]);
});
spec("everything can be read without JavaScript", { javaScriptEnabled: false }, async (page) => {
	await page.goto(INSPECT + "/?q=pipeline:failing");
	await page.click("td.run a:text-is('failing')");
	await page.click("#steps a:text-is('write')");
	assert.match(await text(page, "pre"), /A draft about this/);
});
spec("a question is answered without JavaScript", { javaScriptEnabled: false }, async (page) => {
	await waiting("plain");
	await page.goto(SERVE + "/questions");
	await page.click("form[action='/runs/plain/answers'] button:text-is('no')");
	await page.waitForURL(/questions/);
	assert.equal((await result("plain")).result.content.slice(0, 3), "no:");
});
// LARGE is the page of a run with many steps: 10,000, or the million in STONE_PAGES_DB.
spec("a tab stays small however large the run is", async (page, context) => {
	const devtools = await context.newCDPSession(page);
	const figures = [];
	for (const part of ["", "?at=fan/things", "?at=fan/things&only=failed", "?view=graph", "/step?path=fan/things[777]/measure"]) {
		await page.goto(LARGE + part);
		await devtools.send("HeapProfiler.collectGarbage");
		const { usedSize } = await devtools.send("Runtime.getHeapUsage");
		const { duration } = await page.evaluate(() => performance.getEntriesByType("navigation")[0].toJSON());
		const n = await elements(page);
		figures.push(`${part || "/"}: ${n} elements, ${(usedSize / 1e6).toFixed(1)} MB of heap, loaded in ${duration.toFixed(0)} ms`);
		assert.ok(n <= 2000 && usedSize <= 100e6, figures.at(-1));
		assert.match(await text(page, "main"), /things/);
	}
	return figures.join("\n");
});
spec("an answer lets the run continue, and the page shows it", async (page) => {
	await waiting("goes-on");
	await page.goto(SERVE + "/runs/goes-on");
	await page.click("button:text-is('yes')");
	await page.waitForFunction(() => document.querySelector("h1").innerText.includes("done"));
	assert.match(await text(page, "pre.result"), /^yes: A draft/);
});
spec("a failed run is resumed exactly once by a double click, two tabs and a reload", async (page, context) => {
	await start("again", "failing", FAILS);
	await result("again", FAILS);
	const attempts = async () => {
		await page.goto(FAILS + "/runs/again/step?path=failing/check");
		return (await page.locator("dt:text-is('Attempts') + dd").allInnerTexts()).join() || "1";
	};
	assert.equal(await attempts(), "1");
	const other = await context.newPage();
	await page.goto(FAILS + "/runs/again");
	await other.goto(FAILS + "/runs/again");
	const old = await page.inputValue("input[name=seen]");
	assert.match(await text(page, ".failure"), /retries failing\/check. The 2 other results are kept/);
	await page.dblclick("button:text-is('Resume')");
	await page.waitForFunction((old) => document.querySelector("input[name=seen]") && document.querySelector("input[name=seen]").value !== old, old);
	await page.reload();
	assert.equal(await attempts(), "2");
	const [reply] = await Promise.all([other.waitForResponse((r) => r.request().method() === "POST"), other.click("button:text-is('Resume')")]);
	assert.equal(reply.status(), 409);
	assert.match(await text(other, "main"), /The run has changed since the page was shown: it is failed now/);
	await page.goto(FAILS + "/runs/again");
	const seen = await page.inputValue("input[name=seen]");
	const many = await Promise.all(Array.from({ length: 20 }, () => page.request.post(FAILS + "/runs/again/resume", { form: { seen } })));
	assert.ok(many.every((r) => [200, 409].includes(r.status())), many.map((r) => r.status()).join());
	assert.equal(await attempts(), "3");
	assert.equal((await page.request.post(FAILS + "/runs/again/resume", { form: { seen }, headers: { Origin: "http://evil.example" } })).status(), 403);
});
spec("a run is canceled and resumed without JavaScript", { javaScriptEnabled: false }, async (page) => {
	await start("stopped", "slow", SLOW);
	for (let i = 0; i < 100 && !/measure/.test(await (await page.goto(SLOW + "/runs/stopped")).text()); i++);
	await page.click("summary:text-is('Cancel…')");
	assert.match(await text(page, ".control"), /possibly paid[^]*can be resumed/);
	await page.click("button:text-is('Cancel the run')");
	await page.waitForURL(/runs\/stopped$/);
	assert.match(await text(page, "h1"), /canceled/);
	assert.match(await text(page, ".stopped"), /stone resume stopped continues where it stopped/);
	await page.click("button:text-is('Resume')");
	await page.waitForURL(/runs\/stopped$/);
	assert.match(await text(page, "h1"), /running/);
	assert.equal((await page.request.post(SLOW + "/runs/stopped/cancel")).status(), 200);
	assert.equal((await result("stopped", SLOW)).state, "canceled");
});
spec("a run of a server is forked from the page of a step, by keys", async (page) => {
	await waiting("forked");
	await page.goto(SERVE + "/runs/forked/step?path=article/write");
	await page.focus("a:text-is('from here…')");
	await page.keyboard.press("Enter");
	await page.waitForURL(/fork/);
	assert.match(await text(page, "main dl"), /Repeated\s+1 step[^]*Reused\s+1 step/);
	assert.match(await text(page, "main"), /article\/write: unknown/);
	await page.evaluate(axe);
	await page.setViewportSize({ width: 390, height: 844 });
	assert.deepEqual((await page.evaluate("axe.run()")).violations, []);
	assert.deepEqual([...await page.evaluate(() => beyond()), ...await page.evaluate(faultsOf)], []);
	await page.focus("button:text-is('Start the fork')");
	await page.keyboard.press("Enter");
	await page.waitForURL(/runs\/[a-z0-9]+$/);
	assert.match(await text(page, "dl.figures"), /Fork of\s+forked at article\/write/);
	assert.equal((await result(page.url().split("/").pop())).state, "waiting");
});
spec("the end of a run is shown at once, however slowly its page was fetched before", async (page) => {
	await waiting("ends");
	await page.clock.install();
	await page.goto(SERVE + "/runs/ends");
	await page.locator("#live:text-is('live')").waitFor();
	await page.clock.pauseAt(Date.now() + 3600000); // no pause ends by itself
	const answers = (await (await fetch(`${SERVE}/v1/runs/ends/questions`)).json()).questions.map((q) => ({ question: q.path, version: q.version, response: "yes" }));
	for (const a of answers) await fetch(`${SERVE}/v1/runs/ends/answers`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(a) });
	assert.equal((await result("ends")).state, "done");
	for (let i = 0; i < 40 && !(await text(page, "h1")).includes("done"); i++) {
		await page.clock.runFor(1);
		await new Promise((go) => setTimeout(go, 250));
	}
	assert.match(await text(page, "h1"), /ends[^]*done/);
	assert.equal(await text(page, "#live"), "");
});
spec("the list of runs and the inbox are live, and ask for nothing while they are hidden", async (page) => {
	await page.goto(SERVE + "/questions");
	const asked = [];
	page.on("request", (r) => asked.push(r.url()));
	const list = await page.context().newPage();
	await list.goto(SERVE + "/");
	await waiting("seen-live");
	await list.waitForSelector("tr:has(a[href='/runs/seen-live']):has-text('waiting')");
	await page.waitForSelector(".question:has-text('seen-live')");
	await page.evaluate(() => { Object.defineProperty(document, "hidden", { value: true }); document.dispatchEvent(new Event("visibilitychange")); });
	await page.waitForTimeout(500); // wait for replies to earlier requests
	asked.length = 0;
	await page.waitForTimeout(2600);
	assert.deepEqual(asked, []);
});
spec("what was chosen survives what changes around it", async (page) => {
	await page.goto(SERVE + "/");
	await waiting("typed");
	await page.check("input[name=run][value=typed]", { timeout: 10000 });
	await waiting("typed-too");
	await page.waitForSelector("a[href='/runs/typed-too']");
	assert.ok(await page.isChecked("input[name=run][value=typed]"));
});
spec("a filter by label, cost and day is in the address", async (page) => {
	const rows = () => page.locator("tbody td.run a").allInnerTexts();
	await start("labelled", "article", SERVE, { team: "garden" });
	await page.goto(SERVE + "/");
	await page.click("a.label");
	await page.waitForURL(/q=label/);
	assert.deepEqual(await rows(), ["labelled"]);
	assert.equal(await page.inputValue("#q"), "label:team=garden");
	await page.goto(INSPECT + "/?q=state:failed+usd>0.03");
	assert.deepEqual(await rows(), ["refused"]);
	await page.goto(INSPECT + "/");
	await page.fill("#q", "since:today until:today");
	await page.click("button:text-is('Filter')");
	await page.waitForURL(/since/);
	assert.ok((await rows()).length > 10);
	await page.goto(INSPECT + "/?q=until:2020-01-31");
	assert.match(await text(page, "main"), /No run matches the filter/);
});
spec("of two tabs one answers", async (page, context) => {
	await waiting("tabs");
	const other = await context.newPage();
	await page.goto(SERVE + "/runs/tabs");
	await other.route("**/*", (r) => r.request().resourceType() === "eventsource" ? r.abort() : r.continue()); // this page is not notified of the answer
	await other.goto(SERVE + "/questions");
	const answer = async (tab, word) => {
		const [reply] = await Promise.all([tab.waitForResponse((r) => r.request().method() === "POST"), tab.click(`form[action='/runs/tabs/answers'] button:text-is('${word}')`)]);
		return reply.status();
	};
	assert.equal(await answer(page, "yes"), 303);
	assert.equal(await answer(other, "no"), 409);
	assert.match(await text(other, "main"), /answered/);
	assert.match((await result("tabs")).result.content, /^yes:/);
});
spec("a double click answers once, and a reload not again", async (page) => {
	await waiting("double");
	const posts = [];
	page.on("request", (r) => { if (r.method() === "POST") posts.push(r.url()); });
	await page.goto(SERVE + "/runs/double");
	await page.dblclick("button:text-is('yes')");
	await page.waitForFunction(() => document.querySelector("h1").innerText.includes("done"));
	await page.reload();
	assert.equal(posts.length, 1);
	assert.equal(await page.locator("h1 .state.done").count(), 1);
});
spec("a commit of another process appears by itself", async (page) => {
	const run = spawn(HOUSE, ["run", "-q", "--db", DB, "--id", "live", "--", "slow", "20"], { stdio: "ignore" });
	const ended = new Promise((done) => run.on("exit", done));
	while ((await fetch(INSPECT + "/v1/runs/live")).status !== 200) await new Promise((r) => setTimeout(r, 20));
	let loads = 0;
	page.on("load", () => { loads++; });
	await page.goto(INSPECT + "/runs/live");
	assert.match(await text(page, "h1"), /running/);
	await page.waitForFunction(() => document.querySelector("#steps").innerText.match(/(^|\s)5: /m));
	await page.waitForFunction(() => document.querySelector("h1").innerText.includes("done"));
	assert.equal(loads, 1);
	assert.equal(await ended, 0);
});
spec("a tab has one stream, and none while it is hidden", async (page) => {
	await waiting("hidden");
	let streams = 0, open = 0;
	page.on("request", (r) => { if (r.url().includes("/events")) { streams++; open++; } });
	page.on("requestfailed", (r) => { if (r.url().includes("/events")) open--; });
	await page.goto(SERVE + "/runs/hidden");
	await page.waitForFunction(() => document.getElementById("live").innerText === "live");
	assert.equal(streams, 1);
	const show = (hidden) => page.evaluate((h) => { Object.defineProperty(document, "hidden", { value: h, configurable: true }); document.dispatchEvent(new Event("visibilitychange")); }, hidden);
	await show(true);
	for (let i = 0; i < 100 && open > 0; i++) await page.waitForTimeout(50);
	assert.equal(open, 0);
	await Promise.all([page.waitForRequest((r) => r.url().includes("/events")), show(false)]);
	assert.equal(open, 1);
});
spec("rows and the filter are reached by keys", async (page) => {
	await page.goto(INSPECT);
	// Meanwhile, other specs start runs, whose rows appear above these.
	const at = () => page.evaluate(() => ({ href: document.activeElement.href, rows: [...document.querySelectorAll("tbody tr")].map((r) => r.querySelector("a").href) }));
	await page.keyboard.press("j");
	const first = await at();
	await page.keyboard.press("j");
	const second = await at();
	assert.ok(first.href);
	assert.equal(second.rows[second.rows.indexOf(first.href) + 1], second.href);
	await page.keyboard.press("k");
	assert.equal((await at()).href, first.href);
	await page.keyboard.press("Enter");
	await page.waitForURL(/\/runs\//);
	await page.goto(INSPECT);
	await page.keyboard.press("Tab");
	assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
	await page.keyboard.press("/");
	assert.equal(await page.evaluate(() => document.activeElement.name), "q");
});
spec("a narrow window scrolls tables, not the page", { viewport: { width: 390, height: 800 } }, async (page) => {
	for (const path of ["/", "/overview", "/pipelines/tickets", "/runs/failing", "/runs/agent/step?path=repair", "/questions"]) {
		await page.goto(INSPECT + path);
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), path);
	}
});
spec("the file of a run needs nothing else", async (page) => {
	const requests = [];
	page.on("request", (r) => requests.push(r.url()));
	await page.goto("file://" + FILE);
	assert.equal(requests.length, 1);
	assert.equal(await page.locator("script").count(), 0);
	assert.match(await text(page, ".failure"), /names no source/);
	await page.click("details.filed:has-text('failing/write') > summary");
	assert.match(await text(page, "details[open] pre"), /A draft about this/);
	assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).marginTop), "8px"); // the style sheet was loaded
});
spec("an evaluation is shown as its report", async (page) => {
	await page.goto(INSPECT + "/runs/new");
	assert.match(await text(page, "#evaluation"), /cannot tell[^]*41 cases · answers 0.01/);
	assert.match(await text(page, "[aria-label=Gate]"), /exact no worse than old by 0.02[^]*cannot tell[^]*cases would tell[^]*at most \$0.5[^]*passed/);
	assert.match(await text(page, "[aria-label=Scores]"), /exact\s+0\.\d{4}[^]*size=small\s+0\.9\d*/);
	assert.match(await text(page, "[aria-label=Comparison]"), /exact\s+[−+]0\.\d{4}[^]*size=large\s+[−+]/);
	assert.equal(await page.locator("svg.plot circle").count(), 2);
	assert.match(await text(page, "[aria-label='No answer, or an error']"), /the question has no sum/);
	assert.ok(await elements(page) < 1000);
	assert.match(await text(page, ".cases tbody tr:has-text('29 + 45')"), /1 → 0\s+74\s+74\s+75\s+got 75, want 74/);
	await page.click("summary:has-text('Wrong: exact')");
	assert.match(await text(page, "details .cases tbody tr:has-text('29 + 45')"), /0\s+74\s+75\s+got 75, want 74/);
	assert.match(await text(page, ".eval > p"), /exact is perhaps worse than before: [^]*decides: cannot tell/);
	await page.locator(".cases a").first().click();
	await page.waitForURL(/compare.*under=/);
	assert.match(await text(page, "[aria-label='Steps that differ']"), /answer/);
	await page.locator("[aria-label='Steps that differ'] a:has-text('answer/add')").first().click();
	await page.waitForURL(/step=/);
	assert.match(await page.locator("pre.diff").innerText(), /- \d+\s+\+ \d+/);
	await page.goto(INSPECT + "/runs/new");
	await page.click("svg.plot a:has-text('old')");
	await page.waitForURL(/runs\/old/);
	assert.equal(await page.locator("[aria-label=Gate]").count(), 0);
	await page.goto("file://" + REPORT);
	assert.equal(await page.locator("a").count(), 0);
	assert.equal(await page.locator("svg.plot circle").count(), 2);
});
spec("documents are searched, and each passage says why it was found", async (page) => {
	await page.goto(LIBRARY + "/");
	await page.click("nav a:has-text('Search')");
	await page.fill("[name=text]", "what does a run cost");
	await page.click("button:has-text('Search')");
	await page.waitForSelector(".hits");
	assert.equal(await page.locator(".hits li").count(), 2);
	assert.match(await text(page, ".hits li:first-child"), /Words\s+rank 3 0\.0159[^]*Vectors\s+not compared[^]*Fused\s+0\.0159 · rank 3[^]*Reranked\s+rank 1 · 0\.9/);
	assert.match(await text(page, ".hits li:last-child"), /faq\.md:3[^]*Questions[^]*Reranked\s+rank 2 · 0\.25/);
	assert.equal(await page.inputValue("[name=text]"), "what does a run cost");
	assert.equal(await page.locator(".hits b").count(), 0);
	await page.fill("[name=under]", "none");
	await page.click("button:has-text('Search')");
	await page.waitForSelector("text=Nothing was found");
	await page.setViewportSize({ width: 390, height: 800 });
	assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "a narrow window scrolls sideways");
	await page.goto(SERVE + "/");
	assert.equal(await page.locator("nav a:has-text('Search')").count(), 0);
});
spec("axe finds nothing serious in both themes: the passages of a search", async (page) => {
	await page.goto(LIBRARY + "/search");
	await page.fill("[name=text]", "run");
	await page.click("button:has-text('Search')");
	await page.waitForSelector(".hits");
	await page.evaluate(axe);
	for (const colorScheme of ["light", "dark"]) {
		await page.emulateMedia({ colorScheme });
		if (process.env.SHOTS) writeFileSync(`${process.env.SHOTS}/search-${colorScheme}.png`, await page.screenshot({ fullPage: true }));
		const { violations } = await page.evaluate("axe.run()");
		assert.deepEqual(violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => colorScheme + " " + v.id + ": " + v.nodes[0].html), []);
	}
});
spec("the file of a run has its calls and its graph, and leads nowhere", async (page) => {
	await page.goto("file://" + CALLFILE);
	await page.click("summary:has(code:text-is('tickets/summarise'))");
	assert.match(await text(page, "details[open] .calls"), /model\/large[^]*chosen/);
	assert.equal(await page.locator("svg.graph").count(), 1);
	assert.equal(await page.locator("a").count(), 0);
});
// Everything that a person wants to know about a run is on its page, or one click away.
const answers = {
	"which candidate was refused, and why": ["cascade", /Refused[^]*model\/tiny[^]*names-a-source: the field source is empty/],
	"what did the model see": ["cascade", /Input[^]*March's has not come/, ".linked a:has-text('summarise')"],
	"who approved": ["paused", /Answers\s+approve\s+yes by/],
	"what would resuming pay": ["refused", /7 other results are kept and cost nothing again\. What is retried cost 0\.00020 USD before/],
	"what would answering pay": ["asksrefund", /1 result is kept and costs nothing again/],
	"where did it fail, and on what": ["failing", /Failed at failing\/check[^]*names no source[^]*It read\s+draft/],
	"what did it cost, and why": ["cascade", /Cost[^]*model\/large\s+1\s+428\s+0\.0200/],
	"where did the time go": ["agent", /Time\s+(calls |read_file |edit_file |go_test|answer)/],
	"what does it wait for": ["asksrefund", /support wants to call refund:\s+amount: 18\.50/],
	"which lanes were lost, and why": ["fan", /10 of 10000 lanes lost[^]*thing 999 cannot be measured/],
	"what did the tool change": ["agent", /-\s+.*len\(v\)/, ".branch a:text-is('repair')"],
};
for (const [question, [run, want, click]] of Object.entries(answers))
	spec("one click at most: " + question, async (page) => {
		await page.goto(ANSWER + "/runs/" + run);
		if (click) await page.click(click);
		await page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector("main").innerText), [want.source]);
	});
// Checks every view at desktop and phone width, in both themes: axe finds no faults, nothing is beyond the edge or overlaps, and the
// page is small and has the expected shape. VIEWS names a folder for pictures of the views, SHAPES a file for their shapes.
const shapes = JSON.parse(readFileSync(new URL("shapes.json", import.meta.url)));
const wrong = async (page, name, width) => [...await page.evaluate(faultsOf), ...differences(await page.evaluate(shapeOf), shapes[`${name} ${width}`])];
const views = {
	runs: [ANSWER, "/"], "runs-failed": [ANSWER, "/?q=state:failed"], overview: [ANSWER, "/overview"], pipeline: [ANSWER, "/pipelines/tickets"], "pipeline-start": [SERVE, "/pipelines/article"], "pipeline-price": [PRICED, "/pipelines/tickets"],
	"run-done": [ANSWER, "/runs/cascade"], "run-failed": [ANSWER, "/runs/failing"], "run-refused": [ANSWER, "/runs/refused"], "run-lanes": [ANSWER, "/runs/fan"], lanes: [ANSWER, "/runs/fan?at=fan/things"],
	"run-asks": [ANSWER, "/runs/asksrefund"], "run-agent": [ANSWER, "/runs/agent"], search: [ANSWER, "/runs/cascade?q=invoice"], graph: [ANSWER, "/runs/improving?view=graph"],
	agent: [ANSWER, "/runs/agent/step?path=repair"], call: [ANSWER, "/runs/cascade/step?path=tickets/summarise"], step: [ANSWER, "/runs/failing/step?path=failing/write"], conversation: [ANSWER, "/chats/cups"],
	evaluation: [ANSWER, "/runs/new"], questions: [ANSWER, "/questions"], compare: [ANSWER, "/compare?a=failing&b=long"], "compare-evaluations": [ANSWER, "/compare?a=old&b=new"],
	"compare-step": [ANSWER, "/compare?a=cascade&b=refused&step=tickets/summarise"], documents: [LIBRARY, "/search"], missing: [ANSWER, "/runs/none"], design: [DESIGN, "/design"],
};
for (const [name, [at, path]] of Object.entries(views))
	spec("view: " + name, async (page) => {
		const reply = await page.goto(at + path);
		assert.equal(reply.status(), name === "missing" ? 404 : 200);
		const bare = (await reply.text()).replace(/<pre[^]*?<\/pre>/g, "");
		assert.ok(bare.length <= 100 << 10, bare.length + " bytes without its contents");
		await page.evaluate(() => document.fonts.ready);
		await page.evaluate(axe);
		for (const [width, height] of [[1280, 900], [390, 844]]) {
			await page.setViewportSize({ width, height });
			assert.deepEqual(await page.evaluate(() => beyond()), []);
			for (const colorScheme of ["light", "dark"]) {
				await page.emulateMedia({ colorScheme });
				const { violations } = await page.evaluate("axe.run()");
				assert.deepEqual(violations.map((v) => `${width} ${colorScheme} ${v.id}: ${v.nodes.map((n) => n.html).join(" ").slice(0, 300)}`), []);
				if (SHAPES) shapes[`${name} ${width}`] = await page.evaluate(shapeOf);
				if (name !== "pipeline-start") assert.deepEqual(await wrong(page, name, width), [], `${width} ${colorScheme}`); // this page shows runs of other specs
				if (VIEWS) writeFileSync(`${VIEWS}/${name}-${width}-${colorScheme}.png`, await page.screenshot({ fullPage: true }));
			}
		}
	});
spec("a page that is broken has another shape, and one in another font has not", async (page) => {
	const found = {};
	for (const [name, width] of [["run-done", 1280], ["run-done", 390], ["call", 1280], ["call", 390], ["evaluation", 1280], ["runs", 1280]]) {
		await page.setViewportSize({ width, height: 900 });
		for (const [what, mutate] of Object.entries({ nothing: () => {}, "another font": () => { document.body.style.fontFamily = "serif"; document.documentElement.style.fontSize = "104%"; }, ...mutations })) {
			await page.goto(views[name][0] + views[name][1]);
			await page.evaluate(mutate).catch(() => {}); // the page has no such element
			(found[what] ||= []).push(...(await wrong(page, name, width)).map((fault) => `${name} ${width}: ${fault}`));
		}
	}
	for (const [what, faults] of Object.entries(found))
		if (what === "nothing" || what === "another font") assert.deepEqual(faults, [], what);
		else assert.ok(faults.length, what + " is not noticed");
	return Object.entries(found).map(([what, faults]) => `${what}: ${faults.length} faults, such as ${faults[0]}`).join("\n");
});
spec("all scripts have at most 20 KB", async (page) => {
	await page.goto(INSPECT);
	const scripts = await page.locator("script").evaluateAll((all) => all.map((s) => s.src));
	let bytes = 0;
	for (const at of scripts) bytes += (await (await page.request.get(at)).body()).length;
	assert.ok(bytes > 1000 && bytes <= 20 << 10, bytes);
});
// The pictures for the documentation. The pictures under version control are written only if GALLERY names their folder.
const gallery = {
	overview: [DESK, "/overview"], runs: [DESK, "/"], pipeline: [DESKSERVE, "/pipelines/reply"], "run-failed": [DESK, "/runs/reply-4718"],
	"run-lanes": [DESK, "/runs/invoices-november"], call: [DESK, "/runs/ticket-4711/step?path=tickets/summarise"], agent: [DESK, "/runs/repair-mean/step?path=repair"],
	evaluation: [DESK, "/runs/triage-small"], compare: [DESK, "/compare?a=ticket-4711&b=ticket-4711-race"],
};
for (const [name, [at, path]] of Object.entries(gallery))
	spec("picture: " + name, { viewport: { width: 1280, height: 640 } }, async (page) => {
		assert.equal((await page.goto(at + path)).status(), 200);
		await page.evaluate(() => document.fonts.ready);
		for (const colorScheme of ["light", "dark"]) {
			await page.emulateMedia({ colorScheme });
			const clip = { x: 0, y: 0, width: 1280, height: Math.min(await page.evaluate(() => document.documentElement.scrollHeight), 1000) };
			const picture = await page.screenshot({ fullPage: true, clip });
			assert.ok(picture.length > 10000);
			if (GALLERY) writeFileSync(`${GALLERY}/${name}${colorScheme === "dark" ? "-dark" : ""}.png`, picture);
		}
	});
await Promise.all([1, 2, 3].map(async () => {
	for (let next; next = specs.shift();) await next();
}));
if (SHAPES) writeFileSync(SHAPES, "{\n" + Object.keys(shapes).sort().map((at) => `${JSON.stringify(at)}: [\n\t${shapes[at].map((one) => JSON.stringify(one)).join(",\n\t")}]`).join(",\n") + "\n}\n");
await browser.close();
