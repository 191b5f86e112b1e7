package openapi

import "github.com/stonelayer/stone/serve/api"

// An operation describes a route for the document.
type operation struct {
	id, tag, summary string
	description      string
	params           []string // names of parameters other than those in the path
	in               []body   // body of the request; nil if there is none
	optional         bool     // the body may be omitted
	out              map[int]result
	fails            []int // statuses of problems, in addition to those that every route has
	open             bool  // no authentication is required
}

type result struct {
	description string
	bodies      []body
}

// A body is the content of a request or a response: a value of its Go type, or a schema.
type body struct {
	kind  string
	value any
}

func of(v any) []body { return []body{{"application/json", v}} }

// listed returns the bodies of a response that is either a list or a stream: a client that accepts text/event-stream receives the
// list each time it changes.
func listed(v any) []body { return append(of(v), body{"text/event-stream", v}) }

const (
	streamed = "With Accept: text/event-stream, the list is sent again, as the data of an event, whenever it changes."
	keyed    = "Requests with the same Idempotency-Key return the same run."
)

var (
	places = [][2]string{
		{"runs", "Runs of published pipelines: start, watch, cancel, resume, remove."},
		{"questions", "Questions that runs ask people."},
		{"pipelines", "The published pipelines."},
		{"capabilities", "Requests that the server's capabilities answer."},
		{"openai", "Pipelines and intents as models for OpenAI clients. Requests and replies have OpenAI's format."},
		{"frontends", "Conversations with pipelines, for third-party user interfaces. Requests and replies have the format of their protocols."},
		{"operation", "Health, metrics and this document."},
		{"webhooks", "Notices that the server sends."},
	}
	named = map[string]string{
		"id": "The id of the run.", "node": "The id of the node.", "name": "The name of the pipeline.", "model": "The name of a pipeline or an intent.", "chat": "The id of the conversation.",
	}
	foreign = object{"type": "object", "additionalProperties": true, "description": "In the format of the protocol."}
	failed  = object{"type": "object", "description": "An error in the format of the protocol.", "required": []string{"error"}, "properties": object{"error": object{"type": "object", "required": []string{"message", "type"}, "properties": object{
		"message": object{"type": "string"}, "type": object{"type": "string"}, "param": object{"type": []string{"string", "null"}}, "code": object{"type": []string{"string", "null"}},
	}}}}
	openaiFailures = map[int]result{
		400: {"The request is malformed, or asks for something unsupported.", of(failed)}, 401: {"The request has no valid token.", of(failed)},
		403: {"The caller may not do this.", of(failed)}, 404: {"It does not exist, or the caller may not see it.", of(failed)}, 429: {"There are too many requests.", of(failed)},
		503: {"The server is stopping, or its database does not answer.", of(failed)},
	}
)

// failures are the problem responses, by status.
var failures = map[int]struct{ name, description string }{
	400: {"BadRequest", "The request cannot be read."},
	401: {"Unauthorized", "The request has no valid token."},
	403: {"Forbidden", "The caller may not do this."},
	404: {"NotFound", "It does not exist, or the caller may not see it."},
	409: {"Conflict", "Its current state does not allow this."},
	415: {"UnsupportedMediaType", "The body has an unsupported content type."},
	422: {"Unprocessable", "The request is well-formed, but invalid."},
	429: {"TooManyRequests", "The caller has too many requests or runs. Retry-After says when to retry."},
	503: {"Unavailable", "The server is stopping, or its database does not answer: send the request again."},
}

var problem = []body{{"application/problem+json", api.Problem{}}}

func query(name, description string, schema object) object {
	return object{"name": name, "in": "query", "description": description, "schema": schema}
}

var (
	text = object{"type": "string"}
	when = object{"type": "string", "format": "date-time"}
)

// parameters are parameters that several operations share.
var parameters = object{
	"state":    object{"name": "state", "in": "query", "description": "Runs in one of these states.", "explode": true, "schema": object{"type": "array", "items": object{"$ref": "#/components/schemas/State"}}},
	"pipeline": query("pipeline", "Runs of this pipeline. Runs that send webhooks are listed only if it names them.", text),
	"labels": object{"name": "labels", "in": "query", "description": "Runs with these labels: one parameter label.NAME for each.", "style": "form", "explode": true,
		"schema": object{"type": "object", "additionalProperties": text}, "example": object{"label.team": "mail"}},
	"text":            query("text", "Runs that failed, with this text in the kind, path or reason; case is ignored.", text),
	"min-usd":         query("min-usd", "Runs that cost at least this amount in USD.", object{"type": "number", "format": "double", "minimum": 0}),
	"since":           query("since", "Runs that started at this time or later.", when),
	"until":           query("until", "Runs that started before this time.", when),
	"ended-since":     query("ended-since", "Runs that ended at this time or later.", when),
	"before":          query("before", "Runs after this one in the list: the value of next in the previous page.", text),
	"before-turn":     query("before", "Messages older than this run; the value of next in the previous page.", text),
	"from":            query("from", "Questions after this place in the list: the value of next in the previous page.", text),
	"open":            query("open", "Only questions without an answer.", object{"type": "boolean"}),
	"limit":           query("limit", "The maximum number of elements.", object{"type": "integer", "minimum": 1, "maximum": 1000}),
	"wait":            query("wait", "How long to wait for the end: seconds, or a duration such as 30s; at most a minute.", text),
	"said":            query("said", "Also send said events, with the answers that models are writing, before a gate has accepted them.", object{"type": "boolean"}),
	"after":           query("after", "The id of an event: the stream continues after it. The header Last-Event-ID takes precedence.", text),
	"last-event-id":   object{"name": "Last-Event-ID", "in": "header", "description": "The id of an event: the stream continues after it.", "schema": text},
	"idempotency-key": object{"name": "Idempotency-Key", "in": "header", "description": "A name for the request, up to 255 characters: repeating a request with the same name starts nothing new.", "schema": object{"type": "string", "maxLength": 255}},
	"run-id":          query("id", "The id of the run that records the answer.", text),
	"message":         query("message", "The id of the client's last message: a complete reply to that message is sent, too.", text),
	"stream":          query("stream", "Send the response as a stream of events.", object{"type": "boolean"}),
}

// operations describes the routes, by pattern.
var operations = map[string]operation{
	"PUT /v1/runs/{id}": {id: "putRun", tag: "runs", summary: "Start a run under an id that the caller chooses", description: "Repeating the request returns the same run.",
		in: of(api.Start{}), out: map[int]result{201: {"The run has started.", of(api.Run{})}, 200: {"The run had already started.", of(api.Run{})}}, fails: []int{409, 415, 422}},
	"POST /v1/runs": {id: "startRun", tag: "runs", summary: "Start a run", description: keyed, params: []string{"idempotency-key"},
		in: of(api.Start{}), out: map[int]result{201: {"The run has started.", of(api.Run{})}, 200: {"The run had already started.", of(api.Run{})}}, fails: []int{409, 415, 422}},
	"GET /v1/runs": {id: "listRuns", tag: "runs", summary: "List runs, the newest first", description: streamed,
		params: []string{"state", "pipeline", "labels", "text", "min-usd", "since", "until", "ended-since", "before", "limit", "after"}, out: map[int]result{200: {"A page of runs.", listed(api.Runs{})}}, fails: []int{404}},
	"GET /v1/threads": {id: "listThreads", tag: "runs", summary: "List conversations, the one with the newest turn first", description: "The turns of a conversation are the runs with the label chat and its id.",
		params: []string{"pipeline", "before", "limit"}, out: map[int]result{200: {"A page of conversations.", of(api.Threads{})}}, fails: []int{404}},
	"GET /v1/runs/{id}": {id: "getRun", tag: "runs", summary: "Describe a run", out: map[int]result{200: {"The run.", of(api.Run{})}}},
	"GET /v1/runs/{id}/result": {id: "getResult", tag: "runs", summary: "Wait for a run and get its result", params: []string{"wait"},
		out: map[int]result{200: {"The run has ended.", of(api.Run{})}, 202: {"The run has not ended.", of(api.Run{})}}, fails: []int{409}},
	"GET /v1/runs/{id}/events": {id: "streamEvents", tag: "runs", summary: "Stream the steps of a run", params: []string{"after", "last-event-id", "said"},
		out: map[int]result{200: {"Events; the data of each is an Event.", []body{{"text/event-stream", api.Event{}}}}, 204: {"The run has ended, and its last event was sent before.", nil}}},
	"GET /v1/runs/{id}/nodes/{node}": {id: "getNode", tag: "runs", summary: "Get a node of a run", out: map[int]result{200: {"The node.", of(api.Node{})}}},
	"POST /v1/runs/{id}/cancel":      {id: "cancelRun", tag: "runs", summary: "Cancel a run", out: map[int]result{200: {"The run.", of(api.Run{})}}, fails: []int{409}},
	"POST /v1/runs/{id}/resume": {id: "resumeRun", tag: "runs", summary: "Resume a run that has stopped", in: of(api.Resume{}), optional: true,
		out: map[int]result{202: {"The run continues.", of(api.Run{})}}, fails: []int{409, 415, 422}},
	"DELETE /v1/runs/{id}": {id: "removeRun", tag: "runs", summary: "Remove a run with its records", out: map[int]result{204: {"Removed.", nil}}, fails: []int{409}},

	"GET /v1/questions": {id: "listQuestions", tag: "questions", summary: "List the open questions of all runs", description: streamed, params: []string{"from", "limit", "after"},
		out: map[int]result{200: {"A page of questions.", listed(api.Questions{})}}, fails: []int{404}},
	"GET /v1/runs/{id}/questions": {id: "listQuestionsOfRun", tag: "questions", summary: "List the questions of a run", params: []string{"open", "from", "limit"},
		out: map[int]result{200: {"A page of questions.", of(api.Questions{})}}},
	"POST /v1/runs/{id}/answers": {id: "answerQuestion", tag: "questions", summary: "Answer a question of a run",
		description: "An answer without a response is refused with an error that lists the choices, unless it cancels the question.", in: of(api.Answer{}),
		out: map[int]result{200: {"The run.", of(api.Run{})}}, fails: []int{409, 415, 422}},

	"GET /v1/pipelines":        {id: "listPipelines", tag: "pipelines", summary: "List the published pipelines", out: map[int]result{200: {"The pipelines.", of(api.Pipelines{})}}},
	"GET /v1/pipelines/{name}": {id: "getPipeline", tag: "pipelines", summary: "Describe a published pipeline", out: map[int]result{200: {"The pipeline.", of(api.Pipeline{})}}},

	"POST /v1/act": {id: "act", tag: "capabilities", summary: "Call a capability with a request envelope", description: keyed + " With Accept: text/event-stream, the data of delta, retracted and progress events is a Piece, and the data of the last event is the Reply.", params: []string{"run-id", "idempotency-key"},
		in: []body{{"application/json", object{"type": "object", "additionalProperties": true, "description": "The envelope of a request, in JSON."}}, {"application/edn", object{"type": "string", "description": "The envelope of a request, in EDN."}}},
		out: map[int]result{
			200: {"The answer.", answers}, 409: {"The run's current state does not allow this, or its budget is exhausted.", refusals},
			422: {"The request is invalid, or no capability had an answer.", refusals}, 502: {"A capability could not be reached.", refusals},
		}, fails: []int{404, 415}},
	"POST /v1/search": {id: "search", tag: "capabilities", summary: "Find passages of documents, and show why they were found", description: "The request calls a capability of kind search.",
		in: of(api.Search{}), out: map[int]result{200: {"The passages.", of(api.Found{})}, 502: {"The capability failed.", problem}}, fails: []int{404, 409, 415, 422}},
	"GET /v1/caps": {id: "listCapabilities", tag: "capabilities", summary: "List the capabilities", out: map[int]result{200: {"The capabilities.", of(api.Capabilities{})}}},

	"POST /v1/responses": foreignOperation(operation{id: "createResponse", summary: "Run a pipeline or an intent as a response", description: keyed, params: []string{"idempotency-key"},
		in: of(model), out: map[int]result{200: {"The response, or a stream of its events.", []body{{"application/json", foreign}, {"text/event-stream", text}}}}}),
	"GET /v1/responses/{id}": foreignOperation(operation{id: "getResponse", summary: "Get a response", params: []string{"stream"},
		out: map[int]result{200: {"The response, or a stream of its events.", []body{{"application/json", foreign}, {"text/event-stream", text}}}}}),
	"POST /v1/responses/{id}/cancel": foreignOperation(operation{id: "cancelResponse", summary: "Cancel a response", out: map[int]result{200: {"The response.", of(foreign)}}}),
	"DELETE /v1/responses/{id}":      foreignOperation(operation{id: "removeResponse", summary: "Remove a response", out: map[int]result{200: {"Removed.", of(foreign)}}}),
	"POST /v1/chat/completions": foreignOperation(operation{id: "createChatCompletion", summary: "Run a pipeline or an intent as a chat completion", description: keyed, params: []string{"idempotency-key"},
		in: of(model), out: map[int]result{200: {"The completion, or a stream of its chunks.", []body{{"application/json", foreign}, {"text/event-stream", text}}}}}),
	"POST /v1/messages": foreignOperation(operation{id: "createMessage", summary: "Run a pipeline or an intent as an Anthropic message", description: keyed, params: []string{"idempotency-key"},
		in: of(model), out: map[int]result{200: {"The message, or a stream of its events.", []body{{"application/json", foreign}, {"text/event-stream", text}}}}}),
	"POST /v1/messages/count_tokens": foreignOperation(operation{id: "countMessageTokens", summary: "Estimate the tokens of a message", in: of(model), out: map[int]result{200: {"The estimate.", of(foreign)}}}),
	"POST /v1/embeddings":            foreignOperation(operation{id: "createEmbedding", summary: "Create vectors of texts with the configured embedder", in: of(model), out: map[int]result{200: {"The vectors.", of(foreign)}}}),
	"GET /v1/models":                 foreignOperation(operation{id: "listModels", summary: "List the pipelines and intents", out: map[int]result{200: {"The models.", of(foreign)}}}),
	"GET /v1/models/{model...}":      foreignOperation(operation{id: "getModel", summary: "Describe a pipeline or an intent", out: map[int]result{200: {"The model.", of(foreign)}}}),

	"POST /v1/ui/{name}": {id: "sendUIMessages", tag: "frontends", summary: "Send a message or an answer from the AI SDK", description: "Repeating a message returns the same turn. Closing the connection leaves the turn running.",
		in: []body{{"application/json", uiRequest}}, out: map[int]result{200: {"The UI message stream.", []body{{"text/event-stream", text}}}}, fails: []int{409, 415, 422}},
	"GET /v1/ui/{name}": {id: "listUIThreads", tag: "frontends", summary: "List the conversations with a pipeline, the one with the newest turn first", params: []string{"before", "limit"},
		out: map[int]result{200: {"A page of conversations.", of(api.Threads{})}}},
	"GET /v1/ui/{name}/{chat}": {id: "getUIMessages", tag: "frontends", summary: "Get the messages of a conversation", description: "A page contains the newest messages. A reply that is being written is left out: its stream sends it from the start.", params: []string{"before-turn"},
		out: map[int]result{200: {"Messages of the AI SDK.", of(uiMessages)}}, fails: []int{409, 422}},
	"GET /v1/ui/{name}/{chat}/stream": {id: "resumeUIStream", tag: "frontends", summary: "Stream the reply that is being written, from its start", params: []string{"message"},
		out: map[int]result{200: {"The UI message stream.", []body{{"text/event-stream", text}}}, 204: {"No reply is being written.", nil}}, fails: []int{409, 422}},
	"POST /v1/agui/{name}": {id: "runAGUI", tag: "frontends", summary: "Send a message or answers over AG-UI", description: "A request without messages receives the conversation so far. Repeating a message returns the same turn. Closing the connection leaves the turn running.",
		in: []body{{"application/json", aguiInput}}, out: map[int]result{200: {"Events of AG-UI.", []body{{"text/event-stream", text}}}}, fails: []int{409, 415, 422}},

	"GET /healthz": {id: "getHealth", tag: "operation", summary: "Check that the process is alive", open: true, out: map[int]result{204: {"The process is alive.", nil}, 421: {"The server does not serve this host.", problem}}},
	"GET /readyz":  {id: "getReadiness", tag: "operation", summary: "Check that the server accepts requests", open: true, out: map[int]result{204: {"The server accepts requests.", nil}, 503: {"The server is stopping, or its database does not answer.", problem}, 421: {"The server does not serve this host.", problem}}},
	"GET /v1/budgets": {id: "listBudgets", tag: "operation", summary: "List the budgets over several runs, and the daily limit of the caller",
		description: "A caller with a tenant sees the budgets whose labels name that tenant.", out: map[int]result{200: {"The budgets in their current day or month, in UTC. The used and held amounts are in USD, tokens and requests; held amounts are reserved.", of(api.Budgets{})}}},
	"GET /metrics":      {id: "getMetrics", tag: "operation", summary: "Metrics in the text format of Prometheus", out: map[int]result{200: {"The metrics.", []body{{"text/plain", text}}}}},
	"GET /openapi.json": {id: "getDocument", tag: "operation", summary: "This document", out: map[int]result{200: {"The document.", of(foreignDocument)}}},
}

var (
	answers    = []body{{"application/json", api.Reply{}}, {"application/edn", text}, {"text/event-stream", api.Piece{}}}
	refusals   = append(answers[:len(answers):len(answers)], problem...)
	model      = object{"type": "object", "additionalProperties": true, "description": "In the format of the protocol.", "required": []string{"model"}, "properties": object{"model": object{"type": "string", "description": "The name of a pipeline or an intent."}}}
	uiRequest  = object{"type": "object", "additionalProperties": true, "description": "As DefaultChatTransport of the AI SDK sends it.", "required": []string{"id", "messages"}, "properties": object{"id": text, "messages": object{"type": "array", "items": object{"type": "object", "additionalProperties": true}}}}
	uiMessages = object{"type": "object", "required": []string{"messages"}, "properties": object{"messages": object{"type": "array", "description": "UIMessages of the AI SDK, the oldest first.", "items": object{"type": "object", "additionalProperties": true}},
		"next": object{"type": "string", "description": "The value of the parameter before that returns earlier messages."}}}
	aguiInput       = object{"type": "object", "additionalProperties": true, "description": "A RunAgentInput of AG-UI.", "required": []string{"threadId", "runId", "messages"}, "properties": object{"threadId": text, "runId": text, "messages": object{"type": "array", "items": object{"type": "object", "additionalProperties": true}}}}
	foreignDocument = object{"type": "object", "additionalProperties": true}
)

// foreignOperation returns an operation whose errors have the format of a protocol other than Stone's.
func foreignOperation(op operation) operation {
	op.tag = "openai"
	for status, r := range openaiFailures {
		op.out[status] = r
	}
	return op
}
