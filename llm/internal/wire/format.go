package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
)

// A Way is a way of requesting a response format.
type Way int

// The ways, strictest first.
const (
	Enforced Way = iota // the request contains the schema
	JSONMode            // the request asks for any JSON object, and the system text contains the schema
	Told                // only the system text contains the schema
)

// formatKey is the context key for the Way that the table of models permits.
type formatKey struct{}

// Schema returns the schema of a response format that the provider is to enforce, or nil if it is to enforce none. It also returns
// the system text, which contains the schema unless the provider's own server adds it.
func (m *Model) Schema(d *structured.Dialect, f *llm.Format, way Way, system string) (json.RawMessage, string) {
	if way > Enforced {
		return nil, structured.System(system, f, false)
	}
	schema := d.Schema(f)
	return schema, structured.System(system, f, schema != nil && m.Own())
}

// A Question is a request in the form that a provider expects.
type Question struct {
	Fields  func(req *llm.Request, model string, way Way) (map[string]any, error)
	Decoder func(requestID string) Decoder
	Client  func(model string) *Client // nil means the Model's client
	// Relax reports whether the next Fields omit the field that the server rejected with the error. A nil Relax counts as false.
	Relax func(error) bool
}

// Ask streams the answer to a request, as Client.Stream does. If the server rejects the response format, Ask repeats the request
// with the next Way, and the model remembers the accepted one. Ask handles a rejected answer limit in the same way.
func (m *Model) Ask(ctx context.Context, req *llm.Request, q Question, yield func(llm.Delta, error) bool) *llm.Reply {
	if m.err != nil {
		yield(llm.Delta{Reply: &llm.Reply{}}, m.err)
		return nil
	}
	model := cmp.Or(req.Model, m.setup.Model)
	permitted, _ := ctx.Value(formatKey{}).(Way)
	way := m.next(max(permitted, m.ways.of(model, req.ResponseFormat)), req)
	fit := m.fit(req)
	for refused := error(nil); ; {
		asked := m.limits.within(model, fit.req)
		body, err := m.Body(asked, func(model string) (map[string]any, error) { return q.Fields(asked, model, way) })
		if err != nil {
			yield(llm.Delta{Reply: &llm.Reply{}}, err)
			return nil
		}
		client := m.Client
		if q.Client != nil {
			client = q.Client(model)
		}
		a := &asking{model: m, name: model, format: req.ResponseFormat, way: way, earlier: refused, relax: q.Relax, fit: &fit, body: body.fields, yield: yield}
		reply := client.Stream(ctx, body, q.Decoder, a.pass)
		if a.relaxed {
			continue
		}
		if a.refused == nil {
			return fit.reply(reply)
		}
		refused, way = a.refused, m.next(way+1, req)
		if !yield(llm.Delta{Kind: llm.Restart, Err: fmt.Errorf("the response format is %s now: %w", way, refused), Reply: &llm.Reply{}}, nil) {
			return nil
		}
	}
}

// next returns the first available way, starting with the given way. JSON mode is not used for requests with tools: some servers
// reject the combination, and others then do not let the model call tools.
func (m *Model) next(way Way, req *llm.Request) Way {
	if way == JSONMode && (!m.setup.JSONMode || len(req.Tools) > 0) {
		return Told
	}
	return way
}

// asking is one request of Ask.
type asking struct {
	model   *Model
	name    string
	format  *llm.Format
	way     Way
	earlier error // reason why the previous way was rejected
	yield   func(llm.Delta, error) bool
	relax   func(error) bool
	fit     *fitted
	body    map[string]any
	said    bool // a piece of the answer was passed on
	relaxed bool
	refused error // error with which the server rejected this way, if any
}

// pass passes on a delta, unless it reports that the format was rejected. If the client repeats requests with that status, the
// rejection is in a Restart.
func (a *asking) pass(d llm.Delta, err error) bool {
	failed := cmp.Or(err, d.Err)
	if failed != nil && !a.said {
		a.relaxed = a.relax != nil && a.relax(failed) || a.model.limits.learn(a.name, a.model.setup.limit(a.body), a.model.setup.DefaultMax > 0, failed)
	}
	if a.relaxed {
		return false
	}
	if a.format != nil && a.way < Told && !a.said && refusesFormat(failed) {
		a.refused = failed
		return false
	}
	switch d.Kind {
	case llm.Start:
		if a.earlier != nil {
			a.model.ways.learn(a.name, a.format, a.way, a.earlier)
		}
	case llm.Progress, llm.Restart:
	default:
		a.said = true
	}
	a.fit.delta(&d)
	return a.yield(d, err)
}

// String returns a short description of the way.
func (w Way) String() string {
	return [...]string{"enforced", "asked for in JSON mode", "told in the system text"}[w]
}

// aboutFormat matches the names that servers use for the response format in rejections. The sources are answers of DeepSeek,
// OpenAI, Azure, Groq, LM Studio, llama.cpp, vLLM, Gemini and Anthropic that are quoted in public issues of clients.
var aboutFormat = regexp.MustCompile(`(?i)response.?format|json.?(schema|object|mode)|text\.format|output.?(config|format)|` +
	`structured.?output|response.?(json.?)?schema|response.?mime.?type|guided.?(json|decoding)|grammar`)

// aboutSchema matches rejections of one particular schema, which say nothing about other schemas. Anthropic compiles a schema
// into a grammar, whose size limits are not published.
var aboutSchema = regexp.MustCompile(`(?i)too complex|grammar|too many states|(invalid|bad|unsupported).{0,10}schema\b|schema conversion|` +
	`features not supported|format\.schema|schema.{0,20}(is invalid|not valid)`)

// refusesFormat reports whether the server rejected a request because of its response format. Old versions of llama.cpp answer
// with status 500, and proxies answer with an error within a stream.
func refusesFormat(err error) bool {
	if said, ok := errors.AsType[*llm.ProviderError](err); ok {
		return aboutFormat.MatchString(said.Message)
	}
	answer, ok := errors.AsType[*llm.HTTPError](err)
	if !ok {
		return false
	}
	switch answer.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return aboutFormat.MatchString(answer.Body) || aboutSchema.MatchString(answer.Body)
	case http.StatusInternalServerError, http.StatusNotImplemented: // the error may be temporary, unless it names the field
		return strings.Contains(answer.Body, "response_format")
	}
	return false
}

// maxWays is the maximum number of ways that are remembered.
const maxWays = 100

// ways remembers the ways that a server accepts, except where the first way is accepted.
type ways struct {
	mu    sync.Mutex
	known map[asked]Way
}

// asked identifies a model of the server and a schema, or all schemas if schema is "".
type asked struct{ model, schema string }

func (w *ways) of(model string, f *llm.Format) Way {
	if f == nil {
		return Enforced
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.known[asked{model, ""}], w.known[asked{model, string(f.Schema)}])
}

// learn remembers the way that was accepted after a rejection. If there are too many, it forgets all others.
func (w *ways) learn(model string, f *llm.Format, way Way, refused error) {
	key := asked{model: model}
	if aboutSchema.MatchString(refused.Error()) {
		key.schema = string(f.Schema)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil || len(w.known) >= maxWays {
		w.known = map[asked]Way{}
	}
	w.known[key] = way
}

// JSON returns the JSON of v, a string or a value decoded from JSON. Marshaling these cannot fail.
func JSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}
