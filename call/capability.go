package call

import (
	"context"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// A Capability answers requests. It can be a model, a program, a server, a Go function or a pipeline.
type Capability struct {
	Metadata
	// Invoke answers one request. An *Error is a failure of its type, and an error with a FailureKind, such as one from
	// stone.Fail, is a failure of that kind. Any other error, or a panic, is a failure of type "runtime/invoke-failed" or, after
	// the deadline of ctx, "timeout/soft". If Invoke returns a Reply together with an error, the Reply's Usage is the cost of the
	// failure. Invoke is called from several goroutines at once. It must return soon after ctx is done; otherwise it is
	// abandoned, and its later result is dropped.
	Invoke func(ctx context.Context, req *Request) (*Reply, error)
	// Quote estimates the cost of an invocation. The estimate is reserved before the invocation starts. If Quote is nil, Cost is
	// the estimate.
	Quote func(ctx context.Context, req *Request) budget.Quote
	// Bound returns the most that an invocation may cost; see stone.Ashlar.Bound. The request has only Intent, Requires and Turn,
	// which are known before a run. If Bound is nil, the declared Cost is the bound; the bound is unknown if Cost is priced by
	// token or Quote is set.
	Bound func(ctx context.Context, req *Request) budget.Bound
	// Prompt returns the instructions that are sent with every request of the intent. A resumed run compares them with the
	// recorded ones and reports a change. Nil means none.
	Prompt func(intent string) string
	// Prompts maps names to the adjustable instructions; see Request.Prompts.
	Prompts map[string]string

	runs stone.Ashlar // the pipeline of a capability made by Pipeline
}

// Metadata describes a capability: its intents, its effects, its price and its limits.
type Metadata struct {
	ID      string `json:"cap/id"`
	Kind    string `json:"cap/kind"` // "llm", "answers", "command", "http", "mcp", "a2a", "acp", "solver", "chess", "plan", "go", "pipeline"
	Version string `json:"cap/version,omitempty"`
	// Intents lists the intents that the capability answers; nil means any.
	Intents []string `json:"cap/intents,omitempty"`
	// In and Out name the input's and the output's schema. An empty name means "req/any" or "res/any".
	In  string `json:"io/in-schema,omitempty"`
	Out string `json:"io/out-schema,omitempty"`
	// CanProduce lists the types of replies that the capability can give; nil means only "value".
	CanProduce []string `json:"cap/can-produce,omitempty"`
	// Needs lists the effects of every invocation. A run must grant them. The constructor of each kind of capability adds the
	// effects that the kind always needs.
	Needs []string `json:"cap/needs,omitempty"`
	// Effects lists the effects that a call may state in addition to Needs.
	Effects []string `json:"cap/effects-allowed,omitempty"`
	Tags    []string `json:"cap/tags,omitempty"`
	Cost    Cost     `json:"cap/cost,omitzero"`
	Limits  Limits   `json:"cap/limits,omitzero"`
}

// Cost is the declared cost of an invocation.
type Cost struct {
	Latency      time.Duration `json:"-"`             // "latency-ms"
	USD          float64       `json:"usd,omitempty"` // the price of each invocation, in USD
	budget.Price               // the price of the tokens
}

// Limits limits the invocations of a capability. The registry enforces it. A zero field means unlimited.
type Limits struct {
	Timeout     time.Duration `json:"-"` // "timeout-ms"; for one invocation
	Concurrency int           `json:"concurrency,omitempty"`
	PerMinute   int           `json:"per-minute,omitempty"`
}

// A Request is what a capability is asked to do. The capability must not change it.
type Request struct {
	Trace       Trace
	Intent      string
	Cap         string // the invoked capability
	Input       JSON   // in a request from outside, always an object
	Context     JSON   // may be nil
	Constraints JSON   // may be nil
	Requires    Requires
	// Schema is the schema of the out, from the Go type of the call or found by its name. Nil means any value. Models receive
	// this schema in their prompt. The envelope of a request omits it.
	Schema *schema.Schema
	// InSchema is the schema of the Input. It is the schema of the Input's Go type or, if that has none, the schema that the
	// intent or the capability names. Nil means any value. It marks media; see package call/model. The envelope does not contain
	// it either.
	InSchema *schema.Schema
	Done     Done     // the requirements on the answer, including the policy's
	Budget   Budget   // the remaining budget
	Effects  []string // the effects granted to the answer
	Cache    Cache    // the call's Cache; it contained no answer to this request
	Attempt  int      // the number of this capability's attempt in the call, counted from 1
	// Stack lists the calls that enclose this one, outermost first. A call encloses another if its capability is a pipeline or a
	// program that makes the other call, or if its answer is a plan that makes it.
	Stack []Frame
	// Key stays the same when an invocation is repeated, for instance after a crash. It changes when the step of the invocation
	// is repeated on purpose or with another request. Use Key as an idempotency key for a service that bills. It is "" outside a
	// run.
	Key string
	// Voice streams pieces of the answer as they are produced, as in req.Voice.Say(event.Text, "…"). If nothing listens, Voice is
	// nil, which is safe to use. The call retracts a streamed answer that is rejected later.
	Voice *event.Voice

	// Prompts maps names to texts that replace the capability's Prompts of the same names while eval.Improving revises them. The
	// envelope of a request never contains them.
	Prompts map[string]string

	// Turn is the Input of a [Model] request, which expects an llm.Reply. It is nil in all other requests, including requests to
	// judges.
	Turn *llm.Request
	// Hear is called with the deltas of the answer to a Turn as they arrive. The first is a Start. The last, even after a failed
	// answer, is a Done with everything received. Hear may be nil.
	Hear func(llm.Delta)

	// Guide tells a model how to write the requested plan. It is nil if the request does not want a plan. The envelope does not
	// contain it.
	Guide *Guide

	refuse   func(*Request, *Reply) (*Error, error) // checks the plan of a reply; nil for judgements
	judges   bool                                   // whether this is a request to a judge, whose answer is not streamed
	schemaID string                                 // a digest of Schema
}

// A Trace identifies the conversation to which a request belongs.
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

// A Reply is the answer of a capability: a value, or a plan to run.
type Reply struct {
	Type string `json:"type,omitempty"` // Value, Plan or Stream (a value in pieces); empty means Value
	Out  JSON   `json:"out,omitempty"`  // the value, as valid JSON that need not be canonical
	// Plan is the text of a plan, in EDN or JSON. Bindings, if not nil, is an object whose fields shadow the caller's slots.
	Plan     []byte `json:"plan,omitempty"`
	Bindings JSON   `json:"bindings,omitempty"`
	Usage    Usage  `json:"usage,omitzero"`
	// Corrected lists the findings about an earlier draft of the plan that the capability itself has already corrected.
	Corrected stone.Findings `json:"corrected,omitempty"`

	parts []string // the pieces of a Stream that was read to its end
}

// Usage is the cost of an answer and how the answer was obtained.
type Usage struct {
	budget.Usage
	Attempts  int    `json:"attempts,omitempty"`
	LatencyMS int64  `json:"latency-ms,omitempty"`
	Cap       string `json:"cap/id,omitempty"` // the capability that answered
	// Mode is llm.Live, llm.Mock or llm.Replay, or empty if unknown.
	Mode string `json:"mode,omitempty"`
	// Sandbox is the sandbox.Method that confined the program that answered, or empty.
	Sandbox string `json:"sandbox,omitempty"`
	// From is the run from which a cached answer was taken.
	From string `json:"from,omitempty"`
}
