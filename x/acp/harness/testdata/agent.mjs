// An agent of the JavaScript SDK of the protocol, over a scripted model.
import { Readable, Writable } from "node:stream";
const { agent, methods, ndJsonStream, PROTOCOL_VERSION } = await import(process.argv[2]);

let cwd;
const model = prompt => prompt.includes("They were rejected") ? "a + b" : "a - b";
agent({ name: "scripted" })
	.onRequest(methods.agent.initialize, () => ({ protocolVersion: PROTOCOL_VERSION, agentCapabilities: {} }))
	.onRequest(methods.agent.session.new, ({ params }) => { cwd = params.cwd; return { sessionId: "s" }; })
	.onRequest(methods.agent.session.prompt, async ({ params, client }) => {
		const { sessionId } = params, path = cwd + "/sum.go";
		const { content } = await client.request(methods.client.fs.readTextFile, { sessionId, path });
		const options = [{ optionId: "a", name: "Allow", kind: "allow_once" }, { optionId: "r", name: "Reject", kind: "reject_once" }];
		const { outcome } = await client.request(methods.client.session.requestPermission, { sessionId, toolCall: { toolCallId: "1", kind: "edit", title: "Edit" }, options });
		if (outcome.optionId !== "a") return { stopReason: "refusal" };
		await client.request(methods.client.fs.writeTextFile, { sessionId, path, content: content.replace(/return .*? }/, "return " + model(params.prompt[0].text) + " }") });
		await client.notify(methods.client.session.update, { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "edited" } } });
		return { stopReason: "end_turn" };
	})
	.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
