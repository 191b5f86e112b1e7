package call

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/schema"
)

// A Spec describes one call: the task, the candidates, the requirements on the answer,
// the budget and the effects. Names are written without a colon, as in "text/respond".
type Spec struct {
	Applicator *Applicator // the router; required

	Intent string // the task, such as "text/respond"
	// Cap is the id of the only capability that may answer; there are no fallbacks. If empty, Dispatch selects the candidates.
	Cap string
	// Tool is the id of the Applicator's tool to invoke in place of a capability, without fallbacks. Intent and Requires are not
	// used to select it.
	Tool     string
	Requires Requires
	Dispatch Dispatch
	Done     Done
	// Admit lists the requirements on the input. They are checked before any capability is invoked. An input that does not meet
	// them fails the call with "input/rejected". They are joined with the policy's requirements, which the input must also meet
	// separately.
	Admit Done
	// Budget limits this call within the run's account.
	Budget Budget
	// CapFrom and CandidatesFrom read the capabilities to invoke, in place of Cap and Dispatch.Candidates, so one call can choose
	// the capability of another. An id that is not registered, or whose capability cannot answer, is rejected when the call is
	// made. The handle's requirements and checks are joined with the call's; a call that contradicts them fails with
	// [InputInvalid].
	CapFrom        dag.Reader[Handle]
	CandidatesFrom dag.Reader[[]string]
	// Cache reuses the answer of an earlier run instead of invoking a capability.
	Cache Cache
	// Effects are the only effects that the answer may have, as named in package effect. They narrow the grant of the run. Nil
	// adds no limit: the answer may have the effects that its capability needs.
	Effects []string

	// Stack lists the enclosing calls of a request from another process, outermost first. Calls of this process are added after
	// them.
	Stack []Frame

	// Input, Context and Constraints build the parts of the request with these names; see From. A nil Input means {}. A nil
	// Context or Constraints is omitted. The constraint no-web, if true, excludes candidates that need the effect net, and
	// withholds that effect from all others.
	Input, Context, Constraints dag.Reader[any]
}

// From returns a part of a request: the value that r reads, as JSON.
func From[A any](r dag.Reader[A]) dag.Reader[any] {
	return &part{dag.ReaderFunc(func(d dag.DAG) (any, error) { return r.From(d) }, r), reflect.TypeFor[A]()}
}

// A part reads one part of a request. It knows the part's Go type.
type part struct {
	dag.Reader[any]
	goType reflect.Type
}

// typed returns the schema of the part, or nil if any value is allowed.
func (p *part) typed() *schema.Schema {
	s, err := schema.ForType(p.goType)
	if err != nil {
		return nil // the value is checked when the part is read
	}
	return specific(s)
}

// Requires lists requirements that a capability must meet to be invoked.
type Requires struct {
	// Reply is "value" or "plan"; "" allows both.
	Reply string `json:"reply,omitempty"`
	// InSchema and OutSchema name schemas. The capability must have the same schemas, or none, or "req/any" and "res/any". The
	// final value must fit OutSchema. An empty name requires nothing.
	InSchema  string   `json:"in-schema,omitempty"`
	OutSchema string   `json:"out-schema,omitempty"`
	Kind      string   `json:"cap/kind,omitempty"`
	Tags      []string `json:"cap/tags,omitempty"` // the capability must have all of them
}

// The strategies of a Dispatch.
const (
	Cascade    = "cascade"    // one after the other; the default
	Tournament = "tournament" // all at once; the answer with the best score wins
	Race       = "race"       // all at once; the first answer that passes wins
	Agreement  = "agreement"  // the first few at once; if they disagree, the others in order
)

// Dispatch says which candidates a call invokes, and in which way.
type Dispatch struct {
	Candidates   []string      `json:"candidates,omitempty"` // the ids, in order
	Strategy     string        `json:"strategy,omitempty"`   // Cascade if empty
	Hedge        time.Duration `json:"-"`                    // "hedge-ms": the delay between two starts of a race; zero starts all at once
	Agree        *Agree        `json:"agree,omitempty"`      // for an Agreement
	AllowFailure bool          `json:"allow-failure?,omitempty"`
	Repair       *Repair       `json:"repair,omitempty"`
	Retry        Retry         `json:"retry,omitzero"`
	SwitchOn     []string      `json:"switch-on,omitempty"` // nil leaves it to the policy
	Policy       string        `json:"policy,omitempty"`    // accepted and ignored
}

// Agree configures an [Agreement]. Nil means that two answers are compared as JSON.
type Agree struct {
	// First is the number of candidates that are invoked at once. Zero means 2.
	First int `json:"first,omitempty"`
	// Check is the name of a check on the array of these answers, which have all passed the gate. The answers agree if the check
	// passes. If Check is empty, the answers must be equal as JSON.
	Check string `json:"check,omitempty"`
}

// Retry limits the attempts. Nil leaves a field to the policy, whose defaults are 0 further attempts and unlimited further
// capabilities.
type Retry struct {
	SameCapMax  *int `json:"same-cap-max,omitempty"` // the maximum further attempts per capability
	FallbackMax *int `json:"fallback-max,omitempty"` // the maximum number of further capabilities; the first group of an agreement counts as one
}

// Repair configures the repair of an answer that the gate has rejected.
type Repair struct {
	Cap string `json:"cap/id,omitempty"` // empty means the capability that answered
	Max int    `json:"max,omitempty"`    // the maximum number of repairs; 1 if zero
}

// Done lists the requirements that an answer or an input must meet.
type Done struct {
	Must     []string `json:"must,omitempty"`      // the names of checks that must pass
	Should   []string `json:"should,omitempty"`    // the names of checks; the share that passes is the score
	ScoreMin *float64 `json:"score-min,omitempty"` // in [0, 1]; nil means the policy's value, 0 by default
}

// Budget limits the spending of a call.
type Budget = budget.Limits

// Rules are one level of a policy. They apply where a call does not set a value itself.
type Rules struct {
	Done     Done     `json:"done,omitzero"`
	Admit    Done     `json:"admit,omitzero"` // requirements on the input
	Retry    Retry    `json:"retry,omitzero"`
	SwitchOn []string `json:"switch-on,omitempty"`
	Fallback []string `json:"fallback,omitempty"` // capabilities to invoke after the candidates that the call lists
	Judge    Judge    `json:"judge,omitzero"`
	Cache    Cache    `json:"cache,omitzero"` // only for an intent
}

// Judge configures the judge of the gate. Nil fields are left to the next level.
type Judge struct {
	On      *bool    `json:"on,omitempty"`       // false by default
	Weight  *float64 `json:"w,omitempty"`        // the weight of the judge in the score; 0.5 by default
	Veto    *bool    `json:"veto,omitempty"`     // whether the judge's score alone must reach score-min
	OnError string   `json:"on-error,omitempty"` // without a score: "closed" (default) fails the call, "open" ignores the judge
	Canary  *float64 `json:"canary,omitempty"`   // the share of answers that are judged; 1 by default
	Cap     string   `json:"cap/id,omitempty"`   // the judge; by default the cheapest with the intent "eval/grade"
	Rubric  string   `json:"rubric,omitempty"`   // the criteria, which are part of the judge's input
	// MaxAttempts limits how often the judge is invoked to obtain a score for one answer; 1 by default.
	MaxAttempts *int `json:"max-attempts,omitempty"`
}

// A Policy contains the rules that apply to calls, by intent. Its levels, most specific first, are the call itself, its intent,
// Default and Routing.
type Policy struct {
	Default Rules            `json:"default,omitzero"`
	Intents map[string]Rules `json:"intents,omitempty"`
	Routing Rules            `json:"routing,omitzero"` // only retry, switch-on and fallback
}

// An Intent holds the description of a known intent, for people and for models that write plans, and the names of its schemas.
type Intent struct {
	Description string `json:"description,omitempty"`

	In  string `json:"in-schema,omitempty"`
	Out string `json:"out-schema,omitempty"`
}

// JSON is a value as canonical JSON. EDN can express the same values.
type JSON = json.RawMessage
