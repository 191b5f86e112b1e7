// A client of the types that openapi-typescript makes: it starts a run, answers its question, waits for
// the result, and lists runs.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2]! });

function must<T>(reply: { data?: T; error?: components["schemas"]["Problem"] | object; response: Response }): T {
  if (reply.data === undefined) throw new Error(`${reply.response.status}: ${JSON.stringify(reply.error)}`);
  return reply.data;
}

const started = must(await client.POST("/v1/runs", {
  params: { header: { "Idempotency-Key": "one" } },
  body: { pipeline: "page", input: { text: "marble" }, labels: { team: "mail" } },
}));
const path = { id: started.id };
const waits = await client.GET("/v1/runs/{id}/result", { params: { path, query: { wait: "20s" } } });
const state: components["schemas"]["State"] = must(waits).state;
if (waits.response.status !== 202 || state !== "waiting") throw new Error(`${waits.response.status} ${state}`);

const { questions } = must(await client.GET("/v1/runs/{id}/questions", { params: { path } }));
must(await client.POST("/v1/runs/{id}/answers", { params: { path }, body: { question: questions[0]!.path, response: "yes" } }));
const done = must(await client.GET("/v1/runs/{id}/result", { params: { path, query: { wait: "20s" } } }));
const content: unknown = done.result?.content;

const query = { state: ["done" as const, "failed" as const], limit: 1, labels: { "label.team": "mail" } };
const { runs } = must(await client.GET("/v1/runs", { params: { query }, querySerializer: { object: { style: "form", explode: true } } }));
const none = must(await client.GET("/v1/runs", { params: { query: { ...query, labels: { "label.team": "none" } } }, querySerializer: { object: { style: "form", explode: true } } }));

const refused = await client.GET("/v1/runs/{id}", { params: { path: { id: "none" } } });
console.log(JSON.stringify({ content, listed: runs.map((r) => r.id === started.id), none: none.runs.length, refused: refused.error?.type }));
