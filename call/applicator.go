package call

import (
	"context"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/schema"
)

// An Applicator is the world in which calls are answered: who there is, what is
// known, which rules hold. It is a value that is filled once and then only read;
// it may serve any number of runs at once. What a single run may do and spend is
// not in it: that is the Grant of its stone.Config and the account in its context,
// see package budget.
type Applicator struct {
	Registry *Registry
	// Tools are what tool nodes of plans may use: capabilities that are found by
	// their id only.
	Tools *Registry
	// Intents that are known; nil is any.
	Intents map[string]Intent
	// Schemas by name, beside the built-in ones.
	Schemas map[string]*schema.Schema
	// Checks by name, beside the built-in ones.
	Checks map[string]Check
	// CheckNeeds are the effects of checks that have some, by name: a check that starts
	// a program has the effect process, and only holds in a run that grants it. One that
	// is listed, also without effects, costs something, and is not run as a should of an
	// answer that is refused already.
	CheckNeeds map[string][]string
	Policy     Policy
	// Plans runs what capabilities answer with plans; nil refuses such answers.
	// Package plan has one.
	Plans Planner
	// Counters, if not nil, count what happens.
	Counters *Counters
}

// A Planner makes an ashlar of a plan that a capability answered with.
type Planner interface {
	// Plan checks a plan whole and compiles it. Its last emission is the node of
	// type EmitType that is nearest at the end. Of d it reads what the call passed on,
	// which are these queries and the slots of the plan in which the call stands, with
	// the bindings over them. Its effects must be within the grant; depth is how deep
	// it stands. The error is an *Error of type PlanInvalid or PlanTooDeep.
	Plan(app *Applicator, reply *Reply, d dag.DAG, passed []dag.Query, grant []string, depth int) (stone.Ashlar, error)
}

// EmitType is the type of the nodes that hold what a plan emits.
const EmitType = "stone/emit"

// A Check judges an answer: nil if it holds, otherwise why not. It must return
// soon after ctx is done. A panic is a failed check.
type Check func(ctx context.Context, s Subject) error

// A Subject is what a check sees.
type Subject struct {
	Request *Request
	Out     JSON
	Schema  *schema.Schema // of the out; nil if it has none
	// Step names the attempt within its call. A check that is paid for does its
	// work in a stone.Step of its own name and this one, see Paid.
	Step string

	invalid error // what Schema says
}
