// Package marked lets agents, calls and configurations use a policy for marked text, such as one of package x/marks, without
// linking it. Without a policy nothing has a mark.
package marked

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone"
)

// Policy is the type of stone.Config.Policy.
type Policy = interface {
	Enter(ctx context.Context, p stone.Ashlar, g stone.Given) (context.Context, stone.Findings)
	Narrow(ctx context.Context, granted []string) []string
}

// A Set is a set of marks of one policy.
type Set uint64

// A Place has a policy's marks at the point where a body runs.
type Place interface {
	// Check returns why the body must not run p.
	Check(ctx context.Context, p stone.Ashlar, g stone.Given) stone.Findings
	// Brought returns the marks of a tool's or capability's results. Effects that are nil are unknown: then results have
	// all marks. P is the pipeline that answers, if one does.
	Brought(name string, effects []string, p stone.Ashlar) Set
	// With returns a context in which the body also works with text that has the marks.
	With(ctx context.Context, s Set) context.Context
	// Admit returns the context in which a tool runs, and the reason why the tool must not get the text that the body works with,
	// or "" if it may. Asks means that a person may allow the call anyway. Arguments is the schema of the tool's arguments. P is
	// the pipeline that runs, if one does, and in the type of the node with its arguments.
	Admit(ctx context.Context, name string, effects []string, arguments json.RawMessage, p stone.Ashlar, in string) (within context.Context, refusal string, asks bool)
}

type key struct{}

// At returns a context for the bodies at a place.
func At(ctx context.Context, p Place) context.Context { return context.WithValue(ctx, key{}, p) }

// In returns the place of ctx, or nil without a policy.
func In(ctx context.Context) Place {
	p, _ := ctx.Value(key{}).(Place)
	return p
}

// Check calls the method of ctx's place.
func Check(ctx context.Context, p stone.Ashlar, g stone.Given) stone.Findings {
	if at := In(ctx); at != nil {
		return at.Check(ctx, p, g)
	}
	return nil
}

// Brought calls the method of ctx's place.
func Brought(ctx context.Context, name string, effects []string, p stone.Ashlar) Set {
	if at := In(ctx); at != nil {
		return at.Brought(name, effects, p)
	}
	return 0
}

// With calls the method of ctx's place.
func With(ctx context.Context, s Set) context.Context {
	if at := In(ctx); at != nil && s != 0 {
		return at.With(ctx, s)
	}
	return ctx
}

// Admit calls the method of ctx's place.
func Admit(ctx context.Context, name string, effects []string, arguments json.RawMessage, p stone.Ashlar, in string) (within context.Context, refusal string, asks bool) {
	if at := In(ctx); at != nil {
		return at.Admit(ctx, name, effects, arguments, p, in)
	}
	return ctx, "", false
}
