package openai

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// Backend runs models on behalf of one caller.
type Backend interface {
	Models() []Model
	// Start starts a run, or returns the run with this id if an identical request has already started it.
	Start(ctx context.Context, run Start) (api.Run, error)
	// Wait waits until a run has stopped and returns it with its result. If ctx is done first, it returns the run in its current
	// state.
	Wait(ctx context.Context, id string) (api.Run, error)
	// Live returns the live text of a run that was started with Start.Live, or nil if this process does not execute the run.
	Live(id string) *Live
	// IgnoresTool reports whether tools of the given type, such as web_search, are to be removed from requests. If it returns
	// false, requests with such tools are refused.
	IgnoresTool(kind string) bool
	// Needs returns an error if the caller does not have the role.
	Needs(role string) error
	// Kept returns the data that Start stored with a run.
	Kept(ctx context.Context, id string) (json.RawMessage, error)
	// Journal returns a journal of the runs that the caller may read.
	Journal() journal.Journal
	Cancel(ctx context.Context, id string) error
	Remove(ctx context.Context, id string) error
}

// Start describes a run to start.
type Start struct {
	ID, Model   string
	Input       json.RawMessage
	Given       talk.Given
	Labels      map[string]string
	Interactive bool // a person is waiting for the run
	Live        bool // text is sent before it is accepted
	Keep        json.RawMessage
}

// A Route handles the requests that match one http.ServeMux pattern.
type Route struct {
	Pattern string
	Starts  bool // the route starts, cancels or removes runs
	Serve   func(w http.ResponseWriter, r *http.Request, b Backend) error
}

// Routes returns the routes of both protocols.
func Routes() []Route {
	return []Route{
		{"POST /v1/responses", true, postResponse},
		{"GET /v1/responses/{id}", false, getResponse},
		{"POST /v1/responses/{id}/cancel", true, cancelResponse},
		{"DELETE /v1/responses/{id}", true, removeResponse},
		{"POST /v1/chat/completions", true, postChat},
		{"GET /v1/models", false, listModels},
		{"GET /v1/models/{model...}", false, getModel},
	}
}

// places contains the first path segments below /v1 that OpenAI's service uses, including those not supported here. Clients
// expect errors at these paths in OpenAI's format.
var places = []string{
	"assistants", "audio", "batches", "chat", "completions", "containers", "conversations", "embeddings", "files", "fine_tuning",
	"images", "models", "moderations", "organization", "realtime", "responses", "threads", "uploads", "vector_stores", "videos",
}

// Serves reports whether a path belongs to OpenAI's service, so that errors must have OpenAI's format.
func Serves(path string) bool {
	below, ok := strings.CutPrefix(path, "/v1/")
	place, _, _ := strings.Cut(below, "/")
	return ok && slices.Contains(places, place)
}

// sendTime is the time limit for sending an event of a stream.
const sendTime = 30 * time.Second

// Body reads the parameters of a request.
func Body(r *http.Request) (body map[string]json.RawMessage, err error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &body); err != nil || body == nil {
		return nil, Wrong("", "invalid_json", "the body is not a JSON object: %v", err)
	}
	return body, nil
}

// field decodes a parameter, which may be absent or null.
func field(body map[string]json.RawMessage, name string, to any) error {
	if raw, ok := body[name]; ok {
		if err := json.Unmarshal(raw, to); err != nil {
			return Wrong(name, "invalid_type", "the parameter %q cannot be read: %v", name, err)
		}
	}
	return nil
}

// Fields decodes each parameter into the value given for it.
func Fields(body map[string]json.RawMessage, to map[string]any) error {
	for name, value := range to {
		if err := field(body, name, value); err != nil {
			return err
		}
	}
	return nil
}

// named reports whether the client has chosen the run's id. Such a run continues if the connection breaks, because the client can
// reconnect.
func named(r *http.Request) bool { return r.Header.Get(protocol.IdempotencyKey) != "" }

// runID returns the id of the run for a request. It is derived from the key that the client has chosen or, without one, random.
func runID(r *http.Request, kind string) string {
	if key := r.Header.Get(protocol.IdempotencyKey); key != "" {
		return protocol.KeyedID(key, kind)
	}
	return kind + strings.ToLower(rand.Text())
}

// metadata returns an error if the metadata of a request cannot become labels of the run.
func metadata(m map[string]string) error {
	if err := bounds.CheckLabels(m); err != nil {
		return Wrong("metadata", "invalid_value", "metadata become labels of the run: %v", err)
	}
	return nil
}

// asked returns an error if the model does not support the request.
func asked(m Model, req *llm.Request) error {
	if m.TakesRequest() {
		return nil
	}
	switch {
	case len(req.Tools) > 0:
		return Wrong("tools", "unsupported_parameter", "the model %s%s has its own tools: leave the client's out", prefix, m.Name)
	case req.ResponseFormat != nil:
		return Wrong("text", "unsupported_parameter", "the answers of the model %s%s have a form of their own: leave the format out", prefix, m.Name)
	}
	if !m.Remembers() {
		return nil
	}
	for i := range req.Messages {
		if said := &req.Messages[i]; said.Role == llm.RoleTool || len(said.ToolCalls) > 0 {
			return Wrong("messages", "unsupported_content", "the model %s%s has its own tools, whose results the server has: leave calls and results out", prefix, m.Name)
		}
	}
	return nil
}

// heartbeat is the interval between comments on a waiting stream. The comments keep proxies from closing the connection.
const heartbeat = 15 * time.Second

// cancelTime is the time limit for cancelling a run whose client is gone.
const cancelTime = 30 * time.Second

// wait waits until the run has stopped, and returns the run. If the client disconnects and cancel is set, wait cancels the run.
// It calls beat at regular intervals.
func wait(ctx context.Context, b Backend, id string, cancel bool, beat func()) (api.Run, error) {
	for {
		moment, stop := context.WithTimeout(ctx, heartbeat)
		run, err := b.Wait(moment, id)
		waited := moment.Err() != nil
		stop()
		if err != nil || !waited {
			return run, err
		}
		if ctx.Err() != nil {
			if cancel && !run.Over() {
				late, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
				defer stop()
				err = b.Cancel(late, id)
			}
			return run, errors.Join(context.Cause(ctx), err)
		}
		if beat(); run.Over() {
			return run, nil
		}
	}
}

// Stream writes server-sent events.
type Stream struct {
	w   http.ResponseWriter
	out *http.ResponseController
	err error // first error when writing to the connection
}

// NewStream starts a reply of server-sent events.
func NewStream(w http.ResponseWriter) *Stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	return &Stream{w: w, out: http.NewResponseController(w)}
}

// Send writes an event. If the name is empty, the event has none.
func (s *Stream) Send(name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		s.err = err
		return
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	s.write(name + "data: " + string(text) + "\n\n")
}

func (s *Stream) beat() { s.write(": \n\n") }

func (s *Stream) write(frame string) {
	if s.err != nil {
		return
	}
	// A client that does not read must not block the server.
	_ = s.out.SetWriteDeadline(time.Now().Add(sendTime))
	if _, s.err = io.WriteString(s.w, frame); s.err == nil {
		s.err = s.out.Flush()
	}
}

// Reply writes a value as JSON.
func Reply(w http.ResponseWriter, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // an error means that the client is gone
	return nil
}

// modelObject describes a model to a client.
type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func describe(m Model) modelObject {
	return modelObject{ID: m.ID(), Object: "model", OwnedBy: "stone"}
}

func listModels(w http.ResponseWriter, _ *http.Request, b Backend) error {
	list := []modelObject{}
	for _, m := range Talking(b) {
		list = append(list, describe(m))
	}
	return Reply(w, map[string]any{"object": "list", "data": list})
}

func getModel(w http.ResponseWriter, r *http.Request, b Backend) error {
	m, err := Find(b, r.PathValue("model"))
	if err != nil {
		return err
	}
	return Reply(w, describe(m))
}
