package call

import (
	"context"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/event"
)

// A Capability is anything that answers requests.
type Capability struct {
	Metadata
	// Invoke answers one request. An *Error is a failure of its type, and an error
	// with a FailureKind, as those of stone.Fail, one of that kind; any other error
	// is "runtime/invoke-failed", or "timeout/soft" if ctx is past its deadline; so
	// is a panic. A Reply beside an error says in its Usage what the failure cost.
	// It is called from several goroutines at once and returns soon after ctx is
	// done; if it does not, it is left behind, and what it returns later is dropped.
	Invoke func(ctx context.Context, req *Request) (*Reply, error)
	// Quote estimates what an invocation may cost, which is reserved before it. Nil
	// estimates by Cost.
	Quote func(ctx context.Context, req *Request) budget.Quote
}

// Metadata is what the registry knows of a capability.
type Metadata struct {
	ID      string `json:"cap/id"`
	Kind    string `json:"cap/kind"` // "llm", "command", "http", "mcp", "solver", "chess", "plan", "go", "pipeline"
	Version string `json:"cap/version,omitempty"`
	// Intents that it answers; nil is any.
	Intents []string `json:"cap/intents,omitempty"`
	// In and Out are names of schemas; "req/any" and "res/any" if empty.
	In  string `json:"io/in-schema,omitempty"`
	Out string `json:"io/out-schema,omitempty"`
	// CanProduce are the types of its replies; "value" alone if nil.
	CanProduce []string `json:"cap/can-produce,omitempty"`
	// Needs are the effects that every invocation has. It is only asked in a run that
	// grants them. What a kind of capability always needs is there without being said.
	Needs []string `json:"cap/needs,omitempty"`
	// Effects are the most that a call may state, beside Needs.
	Effects []string `json:"cap/effects-allowed,omitempty"`
	Tags    []string `json:"cap/tags,omitempty"`
	Cost    Cost     `json:"cap/cost,omitzero"`
	Limits  Limits   `json:"cap/limits,omitzero"`
}

// Cost is what an invocation is declared to cost.
type Cost struct {
	Latency      time.Duration `json:"-"`             // "latency-ms"
	USD          float64       `json:"usd,omitempty"` // for each invocation
	budget.Price               // of its tokens
}

// Limits are kept for a capability by the registry that it is in. Zero is none.
type Limits struct {
	Timeout     time.Duration `json:"-"` // "timeout-ms", of one invocation
	Concurrency int           `json:"concurrency,omitempty"`
	PerMinute   int           `json:"per-minute,omitempty"`
}

// A Request is what a capability is asked. It must not be changed.
type Request struct {
	Trace       Trace
	Intent      string
	Cap         string // who is asked
	Input       JSON   // an object, for a request from outside
	Context     JSON   // nil if there is none
	Constraints JSON   // nil if there are none
	Requires    Requires
	Done        Done     // what the answer will have to be, policy included
	Budget      Budget   // what is left of it
	Effects     []string // that are granted to the answer
	Attempt     int      // from 1, of this capability in this call
	// Key is the same whenever the same invocation is made again, after a crash:
	// an idempotency key for whoever is paid. It is "" outside of a run.
	Key string
	// Voice streams pieces of the answer while it is made, as in
	// req.Voice.Say(event.Text, "…"). It is nil if nobody listens, which says
	// nothing. What is refused later is retracted by the call.
	Voice *event.Voice

	judges bool // it is a judgement of an answer, which is not streamed
}

// A Trace says to which conversation a request belongs.
type Trace struct {
	ID   string `json:"id"`
	Turn int    `json:"turn,omitempty"`
}

// The types of a Reply.
const (
	Value  = "value"
	Plan   = "plan"
	Stream = "stream"
)

// A Reply is what a capability answers: a value, or a plan that is to be run.
type Reply struct {
	Type string // Value, Plan or Stream, which is a value that came in pieces; Value if empty
	Out  JSON   // of a value: canonical or not; must be valid JSON
	// Plan is the text of a plan, EDN or JSON; Bindings, if not nil, an object
	// whose fields lie over the slots of the caller.
	Plan     []byte
	Bindings JSON
	Usage    Usage
}

// Usage is what an answer cost.
type Usage struct {
	budget.Usage
	Attempts  int    `json:"attempts,omitempty"`
	LatencyMS int64  `json:"latency-ms,omitempty"`
	Cap       string `json:"cap/id,omitempty"` // who answered
}
