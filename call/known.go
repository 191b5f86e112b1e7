package call

import (
	"context"
	"maps"
	"slices"
)

// BuiltIn returns a check that is always there, by its name, such as "max-chars";
// nil if there is none. Constraints, if not nil, are an object that takes the place
// of the constraints of the request, as {"max-chars": 200}.
func BuiltIn(name string, constraints JSON) Check {
	check := builtinChecks[name]
	if check == nil || constraints == nil {
		return check
	}
	return func(ctx context.Context, s Subject) error {
		request := *s.Request
		request.Constraints = constraints
		s.Request = &request
		return check(ctx, s)
	}
}

// Effective returns the rules that hold for a call: all levels of the policy laid
// over each other. Nothing in them is left to another level: a nil FallbackMax is no
// limit. Whom Fallback lists is asked only where the call is pinned to nobody.
func (app *Applicator) Effective(s Spec) Rules {
	e := app.Policy.resolve(&s)
	r := Rules{
		Done:     e.done,
		Retry:    Retry{SameCapMax: &e.sameCapMax},
		SwitchOn: e.switchOn,
		Fallback: app.Policy.fallback(s.Intent),
		Judge: Judge{On: &e.judge.on, Weight: &e.judge.weight, Veto: &e.judge.veto, OnError: "closed", Canary: &e.judge.canary,
			Cap: e.judge.cap, Rubric: e.judge.rubric, MaxAttempts: &e.judge.attempts},
	}
	if e.fallbackMax >= 0 {
		r.Retry.FallbackMax = &e.fallbackMax
	}
	if e.judge.open {
		r.Judge.OnError = "open"
	}
	return r
}

// BuiltInChecks returns the sorted names of the checks that are always there.
func BuiltInChecks() []string { return slices.Sorted(maps.Keys(builtinChecks)) }

// BuiltInSchemas returns the sorted names of the schemas that are always there.
func BuiltInSchemas() []string { return slices.Sorted(maps.Keys(builtin)) }
