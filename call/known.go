package call

import (
	"context"
	"maps"
	"slices"
)

// BuiltIn returns the built-in check with the given name, such as "max-chars", or nil if the name is unknown. Constraints, if not
// nil, is an object that replaces the constraints of the request, such as {"max-chars": 200}.
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

// Effective returns the rules of a call after applying all levels of the policy. Every field has its final meaning: for example,
// a nil FallbackMax means unlimited. The capabilities in Fallback are invoked only if the call is not pinned to one capability.
func (app *Applicator) Effective(s Spec) Rules {
	e := app.Policy.resolve(&s)
	r := Rules{
		Done:     e.done,
		Retry:    Retry{SameCapMax: &e.sameCapMax},
		SwitchOn: e.switchOn,
		Fallback: app.Policy.fallback(s.Intent),
		Cache:    e.cache,
		Judge: Judge{On: &e.judge.on, Weight: &e.judge.weight, Veto: &e.judge.veto, OnError: "closed", Canary: &e.judge.canary,
			Cap: e.judge.cap, Rubric: e.judge.rubric, MaxAttempts: &e.judge.attempts},
	}
	if e.admit.any() {
		r.Admit = e.admit
	}
	if e.fallbackMax >= 0 {
		r.Retry.FallbackMax = &e.fallbackMax
	}
	if e.judge.open {
		r.Judge.OnError = "open"
	}
	return r
}

// BuiltInChecks returns the sorted names of the built-in checks.
func BuiltInChecks() []string { return slices.Sorted(maps.Keys(builtinChecks)) }

// BuiltInSchemas returns the sorted names of the built-in schemas.
func BuiltInSchemas() []string { return slices.Sorted(maps.Keys(builtin)) }
