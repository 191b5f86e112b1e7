package call

import (
	"context"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/schema"
)

// An Applicator is the router: its registry, schemas, checks and policies decide which
// capability answers a call. It is filled once and then only read, so any number of runs
// may use it at once. The limits of a single run are not part of it: they are the Grant
// of its stone.Config and the account in its context, see package budget.
type Applicator struct {
	Registry *Registry
	// Tools are capabilities that tool nodes of plans name by id. They are found in no
	// other way.
	Tools *Registry
	// Intents are the known intents; nil allows any intent.
	Intents map[string]Intent
	// Schemas by name, in addition to the built-in ones.
	Schemas map[string]*schema.Schema
	// Checks by name, in addition to the built-in ones.
	Checks map[string]Check
	// CheckNeeds lists the effects of checks by name. A check that starts a program needs
	// the effect process, and passes only in a run that grants it. A check listed here,
	// even with no effects, is costly: it is not run as a should of an answer that is
	// already rejected.
	CheckNeeds map[string][]string
	Policy     Policy
	// Plans runs the plans that capabilities return; nil rejects such answers. Package
	// plan provides a Planner.
	Plans Planner
	// Counters, if not nil, count calls and attempts.
	Counters *Counters
}

// A Planner compiles a plan that a capability returned into an ashlar.
type Planner interface {
	// Plan checks the whole plan of the reply and compiles it. The last node of type
	// EmitType in the resulting DAG is its emission. From d, the plan may read only what
	// the call passed on: these queries, and the slots of the enclosing plan. The context
	// of the request and the bindings of the reply are laid over them. Its effects must be
	// within those of the request. Its depth is one more than the stack of the request.
	// The error is an *Error of type PlanInvalid or PlanTooDeep.
	Plan(app *Applicator, req *Request, reply *Reply, d dag.DAG, passed []dag.Query) (stone.Ashlar, error)
}

// EmitType is the type of the nodes that contain the emissions of plans.
const EmitType = "stone/emit"

// A Check judges an answer. It returns nil if the answer passes, otherwise the reason. It
// must return soon after ctx is done. A panic is a failed check.
type Check func(ctx context.Context, s Subject) error

// A Subject is the answer that a check judges, with its request.
type Subject struct {
	Request *Request
	Out     JSON
	Schema  *schema.Schema // of the out; nil without a schema
	// Step names the attempt within its call. A costly check does its work in a
	// stone.Step whose name contains its own name and this one, see Paid.
	Step string

	invalid error // what Schema says
}
