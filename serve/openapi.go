package serve

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/serve/api"
)

// An operation is what the document of the API says of a route.
type operation struct {
	summary string
	query   []string // names of the parameters
	in      any      // of the type of the body; nil for none
	status  int      // of success
	also    []int    // further statuses with the same reply
	kinds   []string // further content types of replies; the first is also one of requests
	out     any      // of the type of the reply; nil for none
	stream  bool     // the reply is a stream of server-sent events, each with an out as data

	optional bool // the body may be left out
}

// operations describe the routes of the API by their patterns. The routes that speak the
// protocol of OpenAI are described there.
var operations = map[string]operation{
	"PUT /v1/runs/{id}":              {summary: "Start a run with an id of the caller; the same request again is the same run", in: api.Start{}, status: 201, also: []int{200}, out: api.Run{}},
	"POST /v1/runs":                  {summary: "Start a run", in: api.Start{}, status: 201, out: api.Run{}},
	"GET /v1/runs":                   {summary: "List runs, the newest first", query: []string{"state", "pipeline", "text", "min-usd", "since", "until", "ended-since", "before", "limit", "after"}, kinds: []string{"text/event-stream"}, status: 200, out: api.Runs{}},
	"GET /v1/runs/{id}":              {summary: "Describe a run", status: 200, out: api.Run{}},
	"GET /v1/runs/{id}/result":       {summary: "Wait for a run, and get its result", query: []string{"wait"}, status: 200, also: []int{202}, out: api.Run{}},
	"GET /v1/runs/{id}/events":       {summary: "Stream the steps of a run", query: []string{"after"}, status: 200, out: api.Event{}, stream: true},
	"GET /v1/runs/{id}/nodes/{node}": {summary: "Get a node of a run", status: 200, out: api.Node{}},
	"POST /v1/runs/{id}/cancel":      {summary: "Cancel a run", status: 200, out: api.Run{}},
	"POST /v1/runs/{id}/resume":      {summary: "Resume a run that has stopped", in: api.Resume{}, optional: true, status: 202, out: api.Run{}},
	"DELETE /v1/runs/{id}":           {summary: "Remove a run with its records", status: 204},
	"GET /v1/questions":              {summary: "List the open questions of all runs", query: []string{"after"}, kinds: []string{"text/event-stream"}, status: 200, out: api.Questions{}},
	"GET /v1/runs/{id}/questions":    {summary: "List the questions of a run", status: 200, out: api.Questions{}},
	"POST /v1/runs/{id}/answers":     {summary: "Answer a question of a run", in: api.Answer{}, status: 200, out: api.Run{}},
	"GET /v1/pipelines":              {summary: "List the published pipelines", status: 200, out: api.Pipelines{}},
	"GET /v1/pipelines/{name}":       {summary: "Describe a published pipeline", status: 200, out: api.Pipeline{}},
	"POST /v1/act":                   {summary: "Ask a capability, with the envelope of a request", query: []string{"id"}, in: json.RawMessage{}, kinds: []string{"application/edn", "text/event-stream"}, status: 200, also: []int{409, 422, 502}, out: api.Reply{}},
	"GET /v1/caps":                   {summary: "List the capabilities", status: 200, out: api.Capabilities{}},
}

// inPath matches a parameter in the path of a pattern.
var inPath = regexp.MustCompile(`\{(\w+)\}`)

// getOpenAPI describes the API as an OpenAPI 3.1 document.
func (s *Server) getOpenAPI(w http.ResponseWriter, _ *http.Request, _ Principal) error {
	doc, err := openAPI()
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, doc)
}

type object = map[string]any

func openAPI() (object, error) {
	d := document{schemas: object{}}
	paths := map[string]object{}
	for pattern, op := range operations {
		method, path, _ := strings.Cut(pattern, " ")
		if paths[path] == nil {
			paths[path] = object{}
		}
		described, err := d.operation(method, path, op)
		if err != nil {
			return nil, err
		}
		paths[path][strings.ToLower(method)] = described
	}
	return object{
		"openapi":    "3.1.0",
		"info":       object{"title": "Stone", "version": "1", "description": "Published pipelines, with durable runs."},
		"paths":      paths,
		"security":   []object{{"token": []string{}}, {}},
		"components": object{"schemas": d.schemas, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
	}, nil
}

// document collects the schemas that operations refer to.
type document struct{ schemas object }

func (d document) operation(method, path string, op operation) (object, error) {
	out := object{"summary": op.summary, "operationId": operationID(method, path)}
	parameters := []object{}
	for _, name := range inPath.FindAllStringSubmatch(path, -1) {
		parameters = append(parameters, object{"name": name[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, name := range op.query {
		parameters = append(parameters, object{"name": name, "in": "query", "schema": object{"type": "string"}})
	}
	if len(parameters) > 0 {
		out["parameters"] = parameters
	}
	if op.in != nil {
		content, err := d.content("application/json", op.in)
		if err != nil {
			return nil, err
		}
		if len(op.kinds) > 0 {
			content[op.kinds[0]] = object{}
		}
		out["requestBody"] = object{"required": !op.optional, "content": content}
	}
	failure, err := d.content("application/problem+json", api.Problem{})
	if err != nil {
		return nil, err
	}
	success := object{"description": http.StatusText(op.status)}
	if op.out != nil {
		kind := "application/json"
		if op.stream {
			kind = "text/event-stream"
		}
		content, err := d.content(kind, op.out)
		if err != nil {
			return nil, err
		}
		for _, kind := range op.kinds {
			content[kind] = object{}
		}
		success["content"] = content
	}
	replies := object{strconv.Itoa(op.status): success, "default": object{"description": "a problem, as in RFC 9457", "content": failure}}
	for _, status := range op.also {
		content := object{}
		maps.Copy(content, success["content"].(object))
		if status >= 400 {
			maps.Copy(content, failure)
		}
		replies[strconv.Itoa(status)] = object{"description": http.StatusText(status), "content": content}
	}
	out["responses"] = replies
	return out, nil
}

// operationID names an operation for generators of clients: "putRunsId".
func operationID(method, path string) string {
	name := strings.ToLower(method)
	for word := range strings.FieldsFuncSeq(strings.TrimPrefix(path, "/v1/"), func(r rune) bool { return strings.ContainsRune("/{}", r) }) {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

// content refers to the schema of a value's type.
func (d document) content(kind string, value any) (object, error) {
	t := reflect.TypeOf(value)
	if t == reflect.TypeFor[json.RawMessage]() {
		return object{kind: object{"schema": object{}}}, nil
	}
	if _, known := d.schemas[t.Name()]; !known {
		s, err := schema.ForType(t)
		if err != nil {
			return nil, err
		}
		d.schemas[t.Name()] = json.RawMessage(s.Ordered())
	}
	return object{kind: object{"schema": object{"$ref": "#/components/schemas/" + t.Name()}}}, nil
}
