// Package protocol is the interface between a server and protocols in other packages: a package registers a Protocol and uses the
// server as a Caller.
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

// The roles of callers, as in package serve.
const (
	Read   = "read"
	Start  = "start"
	Answer = "answer"
	Act    = "act"
)

// A Protocol is registered by a program, as a part of the command or in serve.Config.
type Protocol struct {
	Routes []Route
	// Pipelines returns the protocol's pipelines, in addition to the server's, by name. They have the Grant and the Limits of
	// capability requests. The field may be nil, as may the fields below.
	Pipelines func(app *call.Applicator) map[string]stone.Ashlar
	// Token moves the token of a client's request to the header Authorization.
	Token func(r *http.Request) *http.Request
	// Fail answers a request from the protocol's clients with an error, and returns false for other requests.
	Fail func(w http.ResponseWriter, r *http.Request, err error, problem func(error) *api.Problem) bool
}

// Part makes a Protocol a part of a program, see cli.Part.
func (Protocol) Part() {}

// Protocol distinguishes it from other parts.
func (Protocol) Protocol() {}

// A Route handles the requests of one pattern of http.ServeMux.
type Route struct {
	Pattern string
	Role    string // that the caller needs; empty for every admitted caller
	// Waits reports which requests take a place for each read. Other reading requests hold one place throughout. Nil means none.
	Waits func(r *http.Request) bool
	Serve func(w http.ResponseWriter, r *http.Request, c Caller) error
}

// A Caller is a server as one caller sees it: the runs of the caller's tenant, or all runs without a tenant, under the caller's
// names. Errors for the client are *api.Problem; for a run that the caller does not have, the error is journal.ErrNoRun.
type Caller interface {
	Tenant() string
	By() string              // the caller's name with which its answers are recorded
	Needs(role string) error // nil if the caller has the role

	// Settings are the server's settings.
	Settings() Settings
	Log() *slog.Logger
	// Pipeline returns a published pipeline.
	Pipeline(name string) (talk.Model, error)
	// Models returns the published pipelines, and, for a caller with the role act, the models of protocols, by name.
	Models() []talk.Model
	// Journal has the runs, for reading.
	Journal() journal.Journal
	// Runs yields the runs that a query selects, reading Limit of them at a time.
	Runs(ctx context.Context, q journal.Query) iter.Seq2[journal.RunInfo, error]

	// Describe describes a run for the caller.
	Describe(info journal.RunInfo) api.Run
	// Start starts a run, or returns the run that the same request has started. If a different request started it, the error is a
	// conflict.
	Start(ctx context.Context, id string, run Run) (journal.RunInfo, error)
	Resume(ctx context.Context, id string, how api.Resume) error
	Cancel(ctx context.Context, id string) error
	Answer(ctx context.Context, id, by string, a api.Answer) error
	Remove(ctx context.Context, id string) error
	// Kept returns the Keep of a run.
	Kept(ctx context.Context, id string) ([]byte, error)
	// Watchers returns the watchers of a run in this process.
	Watchers(id string) []event.Watcher
	// Ask answers the envelope of a capability request, with the same limits and budgets as other requests.
	Ask(r *http.Request, app *call.Applicator, envelope []byte) (call.Response, error)
	// Withdraw answers a question of a run that will not continue, so that no answer resumes it.
	Withdraw(ctx context.Context, id, path string) error

	// Going reports whether a run continues without a person.
	Going(info journal.RunInfo) bool
	// Settled returns a run once it has stopped or a moment has passed.
	Settled(ctx context.Context, info journal.RunInfo) (journal.RunInfo, error)
	// Await returns a run with its result once it has stopped, or as it is when ctx ends.
	Await(ctx context.Context, info journal.RunInfo) (api.Run, error)
	// Watch calls tell with the parts of a run so far, whenever there are more, until the run stops. It then returns the
	// run with all its parts. Wait waits for news, and returns false to end Watch with ErrLeft.
	Watch(ctx context.Context, info journal.RunInfo, wait func(news <-chan struct{}) bool, tell func([]turn.Part)) (api.Run, []turn.Part, error)
	// Said returns a run, its output so far, and the places where messages have answered its questions. It needs a Place.
	Said(ctx context.Context, info journal.RunInfo) (api.Run, []turn.Part, []turn.Cut, error)

	// Drain is closed when the server shuts down.
	Drain() <-chan struct{}
	// Closing returns the error for requests that start something while the server is shutting down, else nil.
	Closing() error
	// Hold counts a waiting request as one of its caller's streams until leave is called.
	Hold() (leave func(), err error)
	// Place takes a place for reading, unless the request has one.
	Place(ctx context.Context) (leave func(), err error)
	// Stream starts a reply of server-sent events. Its caller has counted the stream.
	Stream(w http.ResponseWriter, r *http.Request) Stream
	// Problem returns the part of an error that a caller may see.
	Problem(r *http.Request, err error) *api.Problem
}

// Settings are the parts of a server's configuration that protocols read.
type Settings struct {
	Live        []string     // see serve.Config
	IgnoreTools []string     // the same
	Embedder    llm.Embedder // nil for none
}

// ErrLeft is the error of Caller.Watch when its wait function has ended it.
var ErrLeft = errors.New("nobody waits")

// A Run is a run that a protocol starts.
type Run struct {
	api.Start
	Given talk.Given                                         // in addition to the input; clients cannot supply it
	Chat  bool                                               // clients watch the run's output
	Keep  []byte                                             // JSON, to describe the run later
	Watch func(cancel context.CancelCauseFunc) event.Watcher // of the run, if this starts it; may be nil
}

// A Stream is a reply of server-sent events.
type Stream interface {
	// Send sends events in their wire format.
	Send(events ...[]byte)
	// Wait returns true after news or a while. It returns false if the stream must end: the client has gone or may no longer read
	// it, or the server is closing.
	Wait(news <-chan struct{}) bool
	Close()
}

// IdempotencyKey is the header that chooses the run of a request.
const IdempotencyKey = "Idempotency-Key"

// KeyedID returns the run ID derived from an Idempotency-Key, preceded by a prefix.
func KeyedID(key, prefix string) string {
	sum := sha256.Sum256([]byte(key))
	return prefix + hex.EncodeToString(sum[:16])
}

// WantType checks the content type of a body. The check is for browsers, in which a page from another origin can send a few
// content types without a preflight; a request without a content type is not from a browser.
func WantType(r *http.Request, types ...string) error {
	text := r.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(text); text == "" || err == nil && slices.Contains(types, kind) {
		return nil
	}
	const status = http.StatusUnsupportedMediaType
	return &api.Problem{Type: problems.Invalid, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf("the body is of type %q: want %s", text, strings.Join(types, " or "))}
}
