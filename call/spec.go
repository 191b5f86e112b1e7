package call

import (
	"encoding/json"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
)

// A Spec is what is said about one call: what is wanted, from whom, how good it
// must be, what it may cost and what it may do. Names are written as in
// "text/respond", without a colon.
type Spec struct {
	Applicator *Applicator // who finds the answer; needed

	Intent string // what is wanted, as "text/respond"
	// Cap pins the call to one capability; nobody takes over for it.
	Cap string
	// Tool asks a tool of the Applicator in place of a capability. Nobody takes
	// over for it either, and Intent and Requires say nothing.
	Tool     string
	Requires Requires
	Dispatch Dispatch
	Done     Done
	// Budget is a cap for this call inside the account of the run.
	Budget Budget
	// Effects are the most that the answer may have on the world, in the words of
	// package effect. They narrow what the run grants. Nil states nothing: the answer
	// may have what its capability needs.
	Effects []string

	// Stack lists the calls in which a request from another process is made; those of this
	// process follow.
	Stack []Frame

	// Input, Context and Constraints read those parts of the request, see From. A nil
	// Input is {}; the others may be left out.
	Input, Context, Constraints dag.Reader[any]
}

// From makes a part of a request of what a reader reads: its JSON.
func From[A any](r dag.Reader[A]) dag.Reader[any] {
	return dag.ReaderFunc(func(d dag.DAG) (any, error) { return r.From(d) }, r)
}

// Requires is a hard filter on the capabilities that may answer.
type Requires struct {
	// Reply is "value" or "plan" if it must be that.
	Reply string `json:"reply,omitempty"`
	// InSchema and OutSchema are names of schemas, equal to those of the
	// capability. The final value fits OutSchema.
	InSchema  string   `json:"in-schema,omitempty"`
	OutSchema string   `json:"out-schema,omitempty"`
	Kind      string   `json:"cap/kind,omitempty"`
	Tags      []string `json:"cap/tags,omitempty"` // all of them
}

// The strategies of a Dispatch.
const (
	Cascade    = "cascade"    // one after the other, the default
	Tournament = "tournament" // all at once, the best score wins
	Race       = "race"       // all at once, the first that passes wins
)

// Dispatch says who is asked, and in which way.
type Dispatch struct {
	Candidates   []string      `json:"candidates,omitempty"` // in this order
	Strategy     string        `json:"strategy,omitempty"`   // Cascade if empty
	Hedge        time.Duration `json:"-"`                    // of a race: each starts as much after the one before; "hedge-ms"
	AllowFailure bool          `json:"allow-failure?,omitempty"`
	Repair       *Repair       `json:"repair,omitempty"`
	Retry        Retry         `json:"retry,omitzero"`
	SwitchOn     []string      `json:"switch-on,omitempty"` // nil: as the policy says
	Policy       string        `json:"policy,omitempty"`    // accepted, says nothing
}

// Retry bounds the attempts. Nil is as the policy says, in the end 0 and no limit.
type Retry struct {
	SameCapMax  *int `json:"same-cap-max,omitempty"` // further attempts of one capability
	FallbackMax *int `json:"fallback-max,omitempty"` // further capabilities
}

// Repair lets a capability mend an answer that the gate refused.
type Repair struct {
	Cap string `json:"cap/id,omitempty"` // the one that answered, if empty
	Max int    `json:"max,omitempty"`    // how often; 1 if zero
}

// Done is what an answer must be.
type Done struct {
	Must     []string `json:"must,omitempty"`      // names of checks, all of which must hold
	Should   []string `json:"should,omitempty"`    // names of checks, of which the share that holds is the score
	ScoreMin *float64 `json:"score-min,omitempty"` // in [0, 1]; nil is as the policy says, in the end 0
}

// Budget bounds what a call may spend.
type Budget = budget.Limits

// Rules are one level of a policy: what holds for calls that do not say otherwise.
type Rules struct {
	Done     Done     `json:"done,omitzero"`
	Retry    Retry    `json:"retry,omitzero"`
	SwitchOn []string `json:"switch-on,omitempty"`
	Fallback []string `json:"fallback,omitempty"` // capabilities to ask after those that the call lists
	Judge    Judge    `json:"judge,omitzero"`
}

// Judge says how a judge takes part in the gate. Nil fields leave it to the next
// level.
type Judge struct {
	On      *bool    `json:"on,omitempty"`       // off in the end
	Weight  *float64 `json:"w,omitempty"`        // of the judge in the score; 0.5 in the end
	Veto    *bool    `json:"veto,omitempty"`     // the judge itself must reach score-min
	OnError string   `json:"on-error,omitempty"` // "closed" (the end) fails the call, "open" ignores the judge
	Canary  *float64 `json:"canary,omitempty"`   // share of the calls that are judged; 1 in the end
	Cap     string   `json:"cap/id,omitempty"`   // who judges; the first with intent "eval/grade" if empty
	Rubric  string   `json:"rubric,omitempty"`   // what the judge grades by; it is part of its input
	// MaxAttempts is how often the judge is asked about one answer until it gives a
	// score; 1 in the end.
	MaxAttempts *int `json:"max-attempts,omitempty"`
}

// A Policy holds the rules by intent. The order is: the call itself, its intent,
// Default, Routing.
type Policy struct {
	Default Rules            `json:"default,omitzero"`
	Intents map[string]Rules `json:"intents,omitempty"`
	Routing Rules            `json:"routing,omitzero"` // retry, switch-on and fallback only
}

// An Intent says what a known intent takes and gives, as names of schemas.
type Intent struct {
	In  string `json:"in-schema,omitempty"`
	Out string `json:"out-schema,omitempty"`
}

// JSON is a value of the data model that EDN and JSON share, as canonical JSON.
type JSON = json.RawMessage
