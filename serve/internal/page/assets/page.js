// Pages work without this script. It updates them as runs proceed, and prevents a form from being sent twice.
"use strict";
(() => {
	// A second click must not send an answer again.
	document.addEventListener("submit", (e) => {
		if (e.target.method !== "post") return;
		if (e.target.dataset.sent) { e.preventDefault(); return; }
		e.target.dataset.sent = "yes";
		setTimeout(() => e.target.querySelectorAll("button").forEach((b) => { b.disabled = true; }));
	});
	addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });

	// The keys j and k move between the items of a page: rows, messages, questions. Folded rows of a tree are skipped.
	const listed = "tbody tr, .branch, .question, .message, .hits li";
	const within = (row) => row.querySelector("a") || row.querySelector("summary, button, input:not([type=hidden]), select, textarea");
	document.addEventListener("keydown", (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input:not([type=checkbox]), textarea, select")) return;
		const row = document.activeElement.closest(listed), go = (to) => { if (to) { to.focus(); to.scrollIntoView({ block: "nearest" }); e.preventDefault(); } };
		if (e.key === "/") return go(document.querySelector(".find input, .filter input"));
		if (e.key === "?") return document.getElementById("keys").showModal();
		if (e.key === "u") { const up = document.querySelectorAll(".crumbs a"); if (up.length) up[up.length - 1].click(); return; }
		if (e.key === "o") { const fold = row && row.querySelector("details"); if (fold) fold.open = !fold.open; return; }
		if (/^[1-9]$/.test(e.key)) {
			const question = row && row.matches(".question") ? row : document.querySelector(".question");
			return go(question && question.querySelectorAll(".choices button, form.blank input[name=blank]")[e.key - 1]);
		}
		if (e.key !== "j" && e.key !== "k") return;
		const links = [...document.querySelectorAll(listed)].map(within).filter((l) => l && l.checkVisibility());
		const at = row ? links.indexOf(within(row)) : -1;
		go(links[at < 0 ? 0 : at + (e.key === "j" ? 1 : -1)]);
	});

	// Filters are saved in this browser.
	const saved = document.getElementById("saved");
	if (saved) {
		const read = () => { try { return JSON.parse(localStorage.getItem("filters")) || []; } catch { return []; } };
		const show = () => {
			const now = saved.dataset.filter, all = read();
			saved.replaceChildren(...all.flatMap((q) => {
				const link = Object.assign(document.createElement("a"), { href: "/?" + new URLSearchParams({ q }), textContent: q });
				if (q === now) link.setAttribute("aria-current", "true");
				return [link, " "];
			}));
			if (!now) return;
			const button = Object.assign(document.createElement("button"), { type: "button", textContent: all.includes(now) ? "Forget" : "Save" });
			button.addEventListener("click", () => {
				try { localStorage.setItem("filters", JSON.stringify(all.includes(now) ? all.filter((q) => q !== now) : [...all, now])); } catch { return; }
				show();
			});
			saved.append(button, " ");
		};
		show();
	}

	// One page of a search covers only a part of a large run. Further pages are appended until there are 50 results.
	async function searchOn(found) {
		for (let next; (next = found.querySelector("a[rel=next]")) && found.querySelectorAll("tbody tr").length < 50;) {
			next.textContent = "Searching the rest …";
			const reply = await fetch(next.href, { headers: { Accept: "text/html" } });
			const fresh = new DOMParser().parseFromString(await reply.text(), "text/html").getElementById("found"), rows = found.querySelector("tbody");
			if (!fresh) { next.textContent = "Search the rest"; return; }
			if (!rows) { found.replaceChildren(...fresh.childNodes); continue; }
			rows.append(...fresh.querySelectorAll("tbody tr"));
			next.closest("p").replaceWith(fresh.querySelector(".foot") || "");
		}
	}

	const { stream, poll } = document.body.dataset;
	if (!stream && poll === undefined) {
		const found = document.getElementById("found");
		if (found) searchOn(found).catch(() => {}); // the link to the next page remains
		return;
	}
	const live = document.getElementById("live");
	let source, last = "", timer, asking = false, again = false, hurry = false, pause = 100;

	// Replaces the parts of a page that have changed, except those in which a person is typing or choosing.
	async function refresh() {
		timer = undefined;
		if (asking) { again = true; return; }
		asking = true;
		hurry = false;
		const began = performance.now();
		try {
			const reply = await fetch(location.href, { headers: { Accept: "text/html" } });
			const page = new DOMParser().parseFromString(await reply.text(), "text/html");
			if (!reply.ok) throw new Error(reply.statusText);
			for (const part of document.querySelectorAll("[data-part]")) {
				const fresh = page.getElementById(part.id);
				if (!fresh || fresh.innerHTML === part.innerHTML) continue;
				if (!busy(part)) replace(part, fresh);
			}
			document.title = page.title;
			if (!page.body.dataset.stream && page.body.dataset.poll === undefined) { stop(); live.textContent = ""; ended = true; }
		} catch { live.textContent = "not live: the server does not answer"; }
		asking = false;
		pause = Math.min(Math.max(100, 4 * (performance.now() - began)), 10000);
		if (again) { again = false; soon(); }
	}

	// Protects what a person has typed or chosen, and keeps buttons from moving while they are used.
	function busy(part) {
		const at = part.contains(document.activeElement) && document.activeElement;
		if (at && (at.matches("input:not([type=checkbox]), textarea, select, button") || at.closest("details:has(form)"))) return true;
		return [...part.querySelectorAll("input:not([type=checkbox]), textarea, select")].some((f) =>
			f.options ? f.selectedIndex !== Math.max(0, [...f.options].findIndex((o) => o.defaultSelected)) : f.value !== f.defaultValue);
	}

	function replace(part, fresh) {
		const chosen = [...part.querySelectorAll("input[type=checkbox]:checked")].map((r) => [r.name, r.value, r === document.activeElement]);
		const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
		const open = [...part.querySelectorAll("details[open] > summary")].map((s) => s.textContent);
		part.replaceChildren(...fresh.childNodes);
		for (const s of part.querySelectorAll("details > summary")) if (open.includes(s.textContent)) s.parentNode.open = true;
		for (const r of part.querySelectorAll("input[type=checkbox]")) {
			const was = chosen.find((c) => c[0] === r.name && c[1] === r.value);
			if (was) { r.checked = true; if (was[2]) r.focus({ preventScroll: true }); }
		}
		if (focused !== null) for (const l of part.querySelectorAll("a")) if (l.getAttribute("href") === focused) { l.focus({ preventScroll: true }); break; }
	}

	function soon() { if (timer === undefined && !document.hidden) timer = setTimeout(refresh, hurry ? 0 : pause); }
	function now() {
		hurry = true;
		clearTimeout(timer);
		timer = undefined;
		soon();
	}

	// Writes a path as the server does in address.Readable.
	function readable(path) {
		const parts = path.split("/").map((p) => p.replace(/^[^#[@~]*\|[^#[@~]* \d+( repair \d+)?(?=[#[@~]|$)/, (name) => name.replaceAll("|", "/")));
		return parts.join("/").replace(/%(2F|5B|5D|23|40|7E|25)/g, decodeURIComponent);
	}

	// Shows the answers that models are writing, before any gate has accepted them.
	const said = document.getElementById("said");
	function hear(answers) {
		if (!said) return;
		const at = said.dataset.at || "";
		answers = answers.filter((a) => a.path.startsWith(at) && (!at || a.path === at || "/[~".includes(a.path[at.length])));
		said.hidden = !answers.length;
		said.replaceChildren(...answers.flatMap((a) => [
			Object.assign(document.createElement("h2"), { textContent: readable(a.path) + " is being written" }),
			Object.assign(document.createElement("pre"), { textContent: a.text, className: "words", tabIndex: 0 }),
		]));
		for (const text of said.querySelectorAll("pre")) text.scrollTop = text.scrollHeight;
	}

	let ended = false;
	function start() {
		if (source || ended || document.hidden) return;
		if (poll !== undefined) { // there is no stream, or one that would start with all past events
			const every = setInterval(soon, 2000);
			source = { close() { clearInterval(every); } };
			live.textContent = "live";
			return;
		}
		source = new EventSource(last ? stream + (stream.includes("?") ? "&" : "?") + "after=" + encodeURIComponent(last) : stream);
		const heard = (e) => { if (e.lastEventId) last = e.lastEventId; if (e.type === "state") now(); else soon(); };
		for (const kind of ["step", "state", "list", "reset"]) source.addEventListener(kind, heard);
		source.addEventListener("said", (e) => hear(JSON.parse(e.data).said));
		source.onopen = () => { live.textContent = "live"; soon(); };
		source.onerror = (e) => setTimeout(() => { // if the run has ended, its page has closed the stream by then
			if (source === e.target && source.readyState !== EventSource.OPEN) live.textContent = "not live: connecting again";
		}, 2000);
	}
	function stop() {
		clearTimeout(timer);
		timer = undefined;
		hear([]);
		if (source) { source.close(); source = undefined; }
	}

	// Each tab has one stream, and none while it is hidden, because browsers allow only six connections.
	document.addEventListener("visibilitychange", () => { if (document.hidden) stop(); else if (!ended) { start(); soon(); } });
	addEventListener("pagehide", stop);
	start();
})();
