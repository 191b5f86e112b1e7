// The shape of a page consists of its landmarks, their order, and their positions in hundredths of the page's width. Texts and heights
// are not part of the shape, because they depend on the machine's fonts. These functions run in the page.

// shapeOf returns the landmarks of the page, each as [name, x, width].
export function shapeOf() {
	const landmarks = "header nav, h1, h2, h3, dl.figures, .figures > div, .card, .question, .failure, .stopped, .views, form.filter, form.find, .choices, .wide, table, .tree, .heads > *, .when > .bar, pre.result, pre.diff, svg.graph, svg.plot, .chart, .message, .tool, .attempt, .hits > li";
	const inside = document.getElementById("main").getBoundingClientRect();
	const name = (e) => {
		const words = (part) => { const copy = part.cloneNode(true); copy.querySelectorAll("small, .note, .state").forEach((s) => s.remove()); return copy.textContent.replace(/\s+/g, " ").trim().replace(/\d[\d\u202f.:,]*/g, "0"); };
		const kind = e.tagName.toLowerCase() + [...e.classList].filter((c) => !/^(done|failed|rejected|chosen|open|partly|waiting)$/.test(c)).map((c) => "." + c).join("");
		if (e.matches("h1, h2, h3, .heads > *")) return kind + " " + words(e).slice(0, 40);
		if (!e.matches("table")) return kind;
		const head = [...e.querySelectorAll("thead th")].filter((th) => th.checkVisibility());
		return kind + " " + head.map(words).join("|");
	};
	const out = [];
	for (const e of document.querySelectorAll(landmarks)) {
		if (!e.checkVisibility() || e.closest("dialog, .hidden, .question ~ .question")) continue; // other specs answer the later questions
		const box = e.getBoundingClientRect();
		// The columns of cards are balanced by height, and the positions of bars depend on time.
		const free = e.closest(".glance > div") || e.matches(".bar *");
		const one = [name(e), free ? -1 : Math.round(100 * box.left / innerWidth), Math.round(100 * Math.min(box.width, inside.width) / innerWidth)];
		const last = out[out.length - 1];
		if (!last || last[0] !== one[0] || last[0].startsWith("div")) out.push(one); // a list may have any number of items
	}
	return out.filter((one, i) => i === 0 || one.join() !== out[i - 1].join());
}

// faultsOf returns faults of the page that do not depend on the machine: texts that overlap or are cut off, and rows with more or
// fewer cells than their table has columns.
export function faultsOf() {
	const faults = [], texts = [];
	const clips = (e) => /auto|scroll|hidden|clip/.test(getComputedStyle(e).overflow + getComputedStyle(e).overflowX);
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; (node = walk.nextNode());) {
		const e = node.parentElement;
		if (!node.data.trim() || !e.checkVisibility() || e.closest("dialog, .hidden, .skip, title, #said, textarea, select")) continue;
		const range = document.createRange();
		range.selectNodeContents(node);
		let within = { left: -1e9, top: -1e9, right: 1e9, bottom: 1e9 };
		for (let up = e; up && up !== document.body; up = up.parentElement) {
			if (!clips(up)) continue;
			const b = up.getBoundingClientRect();
			within = { left: Math.max(within.left, b.left), top: Math.max(within.top, b.top), right: Math.min(within.right, b.right), bottom: Math.min(within.bottom, b.bottom) };
			const style = getComputedStyle(up);
			if (/hidden|clip/.test(style.overflowX) && up.scrollWidth > up.clientWidth + 2 && style.overflowX === style.overflowY) faults.push("cut off: " + node.data.trim().slice(0, 40));
		}
		for (const r of range.getClientRects()) {
			const b = { left: Math.max(r.left, within.left), top: Math.max(r.top, within.top) + 3, right: Math.min(r.right, within.right), bottom: Math.min(r.bottom, within.bottom) - 3, node };
			if (b.right - b.left > 2 && b.bottom - b.top > 2) texts.push(b);
		}
	}
	texts.sort((a, b) => a.top - b.top);
	for (let i = 0; i < texts.length; i++)
		for (let k = i + 1; k < texts.length && texts[k].top < texts[i].bottom; k++) {
			const a = texts[i], b = texts[k];
			if (a.node !== b.node && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2)
				faults.push("on each other: " + a.node.data.trim().slice(0, 30) + " and " + b.node.data.trim().slice(0, 30));
		}
	for (const table of document.querySelectorAll("table")) {
		const columns = table.querySelectorAll("thead th").length;
		if (!columns || table.querySelector("[rowspan]")) continue;
		for (const row of table.querySelectorAll("tbody tr")) {
			const cells = [...row.cells].reduce((n, c) => n + c.colSpan, 0);
			if (cells !== columns) faults.push(`a row has ${cells} cells below ${columns} columns: ${row.innerText.slice(0, 40)}`);
		}
	}
	return [...new Set(faults)].slice(0, 5);
}

// differences compares two shapes. It allows for a few hundredths, because a different font moves landmarks.
export function differences(got, want) {
	const most = 8, names = (shape) => shape.map((one) => one[0]);
	const a = names(got), b = names(want);
	const at = a.findIndex((n, i) => n !== b[i]);
	if (at >= 0 || a.length !== b.length) {
		const i = at < 0 ? a.length : at;
		return [`landmark ${i} is ${JSON.stringify(a[i])}, want ${JSON.stringify(b[i])}`];
	}
	return got.flatMap(([name, x, w], i) => Math.abs(x - want[i][1]) > most || Math.abs(w - want[i][2]) > most ? [`${name} is at ${x}, ${w} wide; want ${want[i][1]}, ${want[i][2]}`] : []).slice(0, 5);
}

// mutations are ways to break a page. Each must be detected.
export const mutations = {
	"no stylesheet": () => { document.styleSheets[0].disabled = true; },
	"no rules for a phone": () => { const s = document.styleSheets[0]; for (let i = s.cssRules.length - 1; i >= 0; i--) if (s.cssRules[i].media?.mediaText.includes("max-width")) s.deleteRule(i); },
	"no rule for rows": () => { const s = document.styleSheets[0]; for (let i = s.cssRules.length - 1; i >= 0; i--) if (s.cssRules[i].selectorText === ".row") s.deleteRule(i); },
	"no rule for cards": () => { const s = document.styleSheets[0]; for (let i = s.cssRules.length - 1; i >= 0; i--) if (/^\.(glance|card)\b/.test(s.cssRules[i].selectorText)) s.deleteRule(i); },
	"a missing column": () => { document.querySelector("table").querySelectorAll("tr > :nth-child(2)").forEach((c) => c.remove()); },
	"a missing heading of a column": () => { document.querySelector("thead th").remove(); },
	"a missing cell": () => { document.querySelector("tbody tr:not(:has([colspan])) td:last-child").remove(); },
	"a missing section": () => { document.querySelector("main h2").remove(); },
	"a section before another one": () => { const all = document.querySelectorAll(".card"); all[0].before(all[all.length - 1]); },
	"an overlap": () => { document.querySelector("table").style.marginTop = "-60px"; },
	"labels that collide": () => { document.querySelector("tbody tr").style.cssText = "position: relative; top: 24px"; },
	"a narrow page": () => { document.querySelector("main").style.maxWidth = "50%"; },
	"a text that is cut off": () => { document.querySelector("h1").style.cssText = "overflow: hidden; white-space: nowrap; width: 3rem"; },
};
