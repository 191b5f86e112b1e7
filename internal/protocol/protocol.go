// Package protocol is the interface between a server and protocols in other packages: a package registers a Protocol, and uses the
// server through a Caller.
package protocol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// The roles of callers; see package serve.
const (
	Read   = "read"
	Start  = "start"
	Answer = "answer"
	Act    = "act"
)

// A Protocol adds a protocol to a server. A program registers it either as a part of the command or in serve.Config.
type Protocol struct {
	Routes []Route
	// Pipelines returns pipelines that the protocol adds to the server's, by name. They run with the Grant and the Limits of
	// capability requests. This field and the fields below may be nil.
	Pipelines func(app *call.Applicator) map[string]stone.Ashlar
	// Token moves the token in a request of the protocol's clients to the Authorization header.
	Token func(r *http.Request) *http.Request
	// Fail answers a request from one of the protocol's clients with an error. It returns false for all other requests.
	Fail func(w http.ResponseWriter, r *http.Request, err error, problem func(error) *api.Problem) bool
}

// Part makes a Protocol usable as a part of a program; see cli.Part.
func (Protocol) Part() {}

// Protocol distinguishes a Protocol from other parts.
func (Protocol) Protocol() string { return "" }

// A Route handles the requests that match a pattern of http.ServeMux.
type Route struct {
	Pattern string
	Role    string // role that the caller must have; empty if every admitted caller may send the request
	// Waits reports whether a request takes a place for each read. Any other request that reads holds one place until it ends. If
	// Waits is nil, no request takes a place for each read.
	Waits func(r *http.Request) bool
	Serve func(w http.ResponseWriter, r *http.Request, c Caller) error
}

// A Caller gives access to a server on behalf of one caller. It sees the runs of the caller's tenant, or all runs if the caller has
// no tenant, under the names that the caller uses. If an error is to be sent to the client, its type is *api.Problem. If the caller
// cannot see a run, the error is journal.ErrNoRun.
type Caller interface {
	Tenant() string
	By() string              // name under which the caller's answers are recorded
	Needs(role string) error // returns nil if the caller has the role, otherwise an error

	// Settings returns the server's settings.
	Settings() Settings
	Log() *slog.Logger
	// Pipeline returns a published pipeline.
	Pipeline(name string) (talk.Model, error)
	// Models returns the published pipelines and, for a caller with the role act, the models of protocols, sorted by name.
	Models() []talk.Model
	// Journal returns the journal that contains the runs. It must only be read.
	Journal() journal.Journal
	// Runs yields the runs that a query selects. It reads q.Limit runs at a time.
	Runs(ctx context.Context, q journal.Query) iter.Seq2[journal.RunInfo, error]

	// Describe describes a run for the caller.
	Describe(info journal.RunInfo) api.Run
	// Start starts a run, or returns the run that the same request has already started. If a different request has started a run
	// with this ID, the error is a conflict.
	Start(ctx context.Context, id string, run Run) (journal.RunInfo, error)
	Resume(ctx context.Context, id string, how api.Resume) error
	Cancel(ctx context.Context, id string) error
	Answer(ctx context.Context, id, by string, a api.Answer) error
	Remove(ctx context.Context, id string) error
	// Kept returns the field Keep of the Run with which a run was started.
	Kept(ctx context.Context, id string) ([]byte, error)
	// Watchers returns the watchers that a run has in this process.
	Watchers(id string) []event.Watcher
	// Ask answers a capability request, given as an envelope. The limits and budgets of other requests apply to it, too.
	Ask(r *http.Request, app *call.Applicator, envelope []byte) (call.Response, error)
	// Withdraw answers a question of a run that will not continue, so that no other answer can resume the run.
	Withdraw(ctx context.Context, id, path string) error

	// Going reports whether a run will continue without any action by a person.
	Going(info journal.RunInfo) bool
	// Settled waits for a short time until a run has stopped, and returns the run in its current state.
	Settled(ctx context.Context, info journal.RunInfo) (journal.RunInfo, error)
	// Await waits until a run has stopped, and returns the run with its result. If ctx is done earlier, it returns the run in its
	// current state.
	Await(ctx context.Context, info journal.RunInfo) (api.Run, error)
	// Watch calls tell with all parts of a run so far, each time there are new ones, until the run has stopped. It then returns
	// the run with all its parts. The function wait must wait for news. If it returns false, Watch ends with ErrLeft.
	Watch(ctx context.Context, info journal.RunInfo, wait func(news <-chan struct{}) bool, tell func([]turn.Part)) (api.Run, []turn.Part, error)
	// Said returns a run, its output so far, and the positions in the output where messages have answered questions. The caller
	// must have taken a Place.
	Said(ctx context.Context, info journal.RunInfo) (api.Run, []turn.Part, []turn.Cut, error)

	// Drain is closed when the server shuts down.
	Drain() <-chan struct{}
	// Closing returns the error for requests that start something if the server is shutting down, and otherwise nil.
	Closing() error
	// Hold counts a waiting request as one of the caller's streams until leave is called. It returns an error if the caller has too
	// many streams.
	Hold() (leave func(), err error)
	// Place takes a place for reading, unless the request already has one.
	Place(ctx context.Context) (leave func(), err error)
	// Stream starts a response with server-sent events. The caller must have counted the stream with Hold.
	Stream(w http.ResponseWriter, r *http.Request) Stream
	// Problem converts an error to a problem that the caller may see.
	Problem(r *http.Request, err error) *api.Problem
}

// Settings are the parts of a server's configuration that protocols read.
type Settings struct {
	Live        []string     // see serve.Config
	IgnoreTools []string     // see serve.Config
	Embedder    llm.Embedder // nil if there is none
}

// ErrLeft is the error that Caller.Watch returns if its function wait has returned false.
var ErrLeft = errors.New("nobody waits")

// A Run is a run that a protocol starts.
type Run struct {
	api.Start
	Given talk.Given                                         // additional data, which clients cannot supply
	Chat  bool                                               // clients watch the output of the run
	Keep  []byte                                             // JSON with which the protocol can describe the run later
	Watch func(cancel context.CancelCauseFunc) event.Watcher // returns a watcher for the run if this call starts it; may be nil
}

// A Stream is a response with server-sent events.
type Stream interface {
	// Send sends events in their wire format.
	Send(events ...[]byte)
	// Wait waits for news, for a limited time, and returns true. It returns false if the stream must end because the client has
	// disconnected or may no longer read it, or because the server is shutting down.
	Wait(news <-chan struct{}) bool
	Close()
}

// IdempotencyKey is the header whose value determines the ID of a request's run.
const IdempotencyKey = "Idempotency-Key"

// KeyedID returns the run ID derived from an Idempotency-Key, preceded by a prefix.
func KeyedID(key, prefix string) string {
	sum := sha256.Sum256([]byte(key))
	return prefix + hex.EncodeToString(sum[:16])
}

// WantType checks the content type of a request body. This protects against pages of other origins, which can make a browser send
// a few content types without a preflight request. A request without a content type is accepted, because it does not come from a
// browser.
func WantType(r *http.Request, types ...string) error {
	text := r.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(text); text == "" || err == nil && slices.Contains(types, kind) {
		return nil
	}
	const status = http.StatusUnsupportedMediaType
	return &api.Problem{Type: problems.Invalid, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf("the body is of type %q: want %s", text, strings.Join(types, " or "))}
}
