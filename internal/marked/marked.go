// Package marked lets agents, calls and configurations apply a policy for marked text, such as a policy of package x/marks,
// without linking that package. Without a policy no text has a mark.
package marked

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone"
)

// Policy is the interface type of stone.Config.Policy.
type Policy = interface {
	Enter(ctx context.Context, p stone.Ashlar, g stone.Given) (context.Context, stone.Findings)
	Narrow(ctx context.Context, granted []string) []string
}

// A Set is a set of marks that a policy defines.
type Set uint64

// A Place represents the marks, according to a policy, at the point where a body runs.
type Place interface {
	// Check returns the findings that explain why the body must not run p, or none if it may.
	Check(ctx context.Context, p stone.Ashlar, g stone.Given) stone.Findings
	// Brought returns the marks that the results of a tool or capability have. If effects is nil, the effects are unknown, so the
	// results have all marks. The pipeline p produces the results; it is the zero Ashlar if there is none.
	Brought(name string, effects []string, p stone.Ashlar) Set
	// With returns a copy of ctx for a body that also works with text that has the marks s.
	With(ctx context.Context, s Set) context.Context
	// Admit returns the context in which a tool may run, and the reason why the tool must not receive the text that the body works
	// with, or "" if it may receive it. Asks means that a person can allow the call anyway. Arguments is the schema of the tool's
	// arguments. If the tool is a pipeline, p is the pipeline, and in is the type of the node that contains its arguments.
	Admit(ctx context.Context, name string, effects []string, arguments json.RawMessage, p stone.Ashlar, in string) (within context.Context, refusal string, asks bool)
}

type key struct{}

// At returns a copy of ctx for bodies that run at the place p.
func At(ctx context.Context, p Place) context.Context { return context.WithValue(ctx, key{}, p) }

// In returns the Place in ctx, or nil if there is no policy.
func In(ctx context.Context) Place {
	p, _ := ctx.Value(key{}).(Place)
	return p
}

// Check calls Place.Check of the Place in ctx. Without a policy, it returns no findings.
func Check(ctx context.Context, p stone.Ashlar, g stone.Given) stone.Findings {
	if at := In(ctx); at != nil {
		return at.Check(ctx, p, g)
	}
	return nil
}

// Brought calls Place.Brought of the Place in ctx. Without a policy, it returns no marks.
func Brought(ctx context.Context, name string, effects []string, p stone.Ashlar) Set {
	if at := In(ctx); at != nil {
		return at.Brought(name, effects, p)
	}
	return 0
}

// With calls Place.With of the Place in ctx. Without a policy, it returns ctx.
func With(ctx context.Context, s Set) context.Context {
	if at := In(ctx); at != nil && s != 0 {
		return at.With(ctx, s)
	}
	return ctx
}

// Admit calls Place.Admit of the Place in ctx. Without a policy, it returns ctx and no reason.
func Admit(ctx context.Context, name string, effects []string, arguments json.RawMessage, p stone.Ashlar, in string) (within context.Context, refusal string, asks bool) {
	if at := In(ctx); at != nil {
		return at.Admit(ctx, name, effects, arguments, p, in)
	}
	return ctx, "", false
}
