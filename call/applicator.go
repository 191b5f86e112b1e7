package call

import (
	"context"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/schema"
)

// An Applicator is the router: it selects the capability that answers a call, according to its registry, schemas, checks and
// policies. It must not be changed after its first use, so any number of runs may use it at once. It does not contain the limits
// of a single run, which are the Grant in the run's stone.Config and the account in the run's context; see package budget.
type Applicator struct {
	Registry *Registry
	// Tools are capabilities that only the tool nodes of plans invoke, by id. Calls do not select them.
	Tools *Registry
	// Intents are the known intents, in addition to Stone's own, such as eval/grade; nil allows any intent.
	Intents map[string]Intent
	// Schemas maps names to schemas, in addition to the built-in schemas.
	Schemas map[string]*schema.Schema
	// Checks maps names to checks, in addition to the built-in checks.
	Checks map[string]Check
	// CheckFacts maps the names of checks to their properties. Most checks need no entry.
	CheckFacts map[string]CheckFacts
	Policy     Policy
	// Language compiles the expressions of guards and scorers. An example is cel.Language. If it is nil, expressions are
	// rejected.
	Language Language
	// Plans runs the plans that capabilities return; nil rejects such answers. Package
	// plan provides a Planner.
	Plans Planner
	// Counters, if not nil, count calls and attempts.
	Counters *Counters
}

// A Planner compiles a plan that a capability returned into an ashlar.
type Planner interface {
	// Plan checks the whole plan in the reply and compiles it to an ashlar. The last node of type "stone/emit" in the resulting
	// DAG is its emission. The plan may read from d only what the call has passed on: the passed queries and the enclosing plan's
	// slots. The request's context and the reply's bindings shadow these slots. The plan's effects must be within the request's.
	// Its depth is one more than the request's stack. The plan would run in ctx. The error is an *Error of type "plan/invalid" or
	// "plan/too-deep".
	Plan(ctx context.Context, app *Applicator, req *Request, reply *Reply, d dag.DAG, passed []dag.Query) (stone.Ashlar, error)
}

// A Check judges an answer. It returns nil if the answer passes, otherwise the reason. It
// must return soon after ctx is done, and may be called by several goroutines at once. A panic is a
// failed check.
type Check func(ctx context.Context, s Subject) error

// CheckFacts holds the properties of a check that Validate and the gate need before the check runs.
type CheckFacts struct {
	// Needs are the effects of the check. A check that starts a program needs the effect
	// process, and passes only in a run that grants it.
	Needs []string
	// Costly means that the check starts a program or invokes a capability. Used as a should, it does not run on a value that has
	// already been rejected.
	Costly bool
	// Asks is the id of the capability that the check invokes, or "" if it invokes none and costs nothing.
	Asks string
	// Fits returns an error if the check cannot judge values of the call's input and out types; a nil schema means that the type
	// is unknown. The error becomes a finding of Validate. A nil Fits accepts all types.
	Fits func(input, out *schema.Schema) error
}

// A Subject is the value that a check judges: an answer with its request, or the input of a call.
type Subject struct {
	Request *Request
	// Out is the answer. For the checks of Spec.Admit, Out is the input, so that every check can judge answers and inputs.
	Out    JSON
	Schema *schema.Schema // the schema of Out; nil if there is none
	// Step is the name of the attempt within its call. A costly check does its work in a stone.Step whose name contains the
	// check's name and Step; see Paid.
	Step string

	invalid error // the error if Out does not fit Schema
	reply   JSON  // the out of a turn, whose text may contain Out
	atDoor  bool  // whether Out is the input of the call
}

// what returns the name of the judged value for errors: "the input" or "the out".
func (s *Subject) what() string {
	if s.atDoor {
		return "the input"
	}
	return "the out"
}
