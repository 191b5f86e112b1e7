package call

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/schema"
)

// resolve resolves the call against its Applicator, once, and collects its faults.
func (c *caller) resolve() *resolved {
	c.once.Do(func() {
		r := &resolved{}
		c.resolved = r
		app := c.spec.Applicator
		if app == nil {
			r.fault("no-candidate", "the call has no Applicator: set one")
			return
		}
		r.effective = app.Policy.resolve(&c.spec)
		r.checkSpec(&c.spec)
		if err := app.Registry.Err(); err != nil {
			r.fault("bad-capability", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		if err := app.Tools.Err(); err != nil {
			r.fault("bad-capability", "a tool: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		r.resolveSchemas(c, app)
		in := r.inputType(&c.spec)
		r.answer = r.bar(app, r.done, in, r.outSchema())
		r.door = r.bar(app, r.admit, in, in)
		r.door.host = r.host
		r.resolveCandidates(&c.spec, app)
		r.resolveAgreement(&c.spec, app)
		r.resolveJudge(app)
	})
	return c.resolved
}

// check returns the faults of the call. Validate calls it.
func (c *caller) check() []stone.Finding {
	r := c.resolve()
	found := append(slices.Clone(r.faults), c.unpayable()...)
	for _, candidate := range r.candidates {
		if candidate.reason == notFound && len(r.faults) == 0 { // otherwise another finding already includes it
			found = append(found, stone.Finding{
				Type: "unknown-candidate", Warning: true, Queried: candidate.id, Suggestion: suggest.Closest(candidate.id, slices.Values(c.spec.Applicator.Registry.IDs())),
				Message: fmt.Sprintf("there is no capability %q, so it is left out of the candidates", candidate.id),
			})
		}
	}
	return found
}

// faults are the findings of Validate about a call or a door.
type faults []stone.Finding

func (r *faults) fault(typ string, format string, args ...any) *stone.Finding {
	*r = append(*r, stone.Finding{Type: typ, Message: fmt.Sprintf(format, args...)})
	return &(*r)[len(*r)-1]
}

// unknown adds a finding about an undefined name.
func (r *faults) unknown(typ string, what, name string, known iter.Seq[string]) {
	f := r.fault(typ, "unknown %s %q", what, name)
	f.Queried, f.Suggestion = name, suggest.Closest(name, known)
	if names := slices.Sorted(known); f.Suggestion == "" && len(names) > 0 {
		f.Message += "; known are " + strings.Join(names[:min(len(names), 20)], ", ")
	}
}

func (r *resolved) checkSpec(s *Spec) {
	bad := func(format string, args ...any) { r.fault("bad-option", format, args...) }
	switch s.Dispatch.Strategy {
	case "", Cascade, Tournament, Race, Agreement:
	default:
		bad("the strategy is %q: want cascade, tournament, race or agreement", s.Dispatch.Strategy)
	}
	if a := s.Dispatch.Agree; a != nil && s.Dispatch.Strategy != Agreement {
		bad("agree needs the strategy agreement: set the strategy, or remove agree")
	} else if a != nil && (a.First < 0 || a.First == 1) {
		bad("agree.first is %d: want at least 2", a.First)
	}
	switch s.Requires.Reply {
	case "", Value, Plan:
	default:
		bad("the required reply is %q: want value or plan", s.Requires.Reply)
	}
	if s.Dispatch.Hedge < 0 {
		bad("hedge-ms is %v: want at least 0", s.Dispatch.Hedge)
	}
	share := func(x float64) bool { return x >= 0 && x <= 1 } // false for NaN
	for _, done := range []Done{r.done, r.admit, r.host} {
		if !share(*done.ScoreMin) {
			bad("score-min is %v: want 0 to 1", *done.ScoreMin)
		}
	}
	if r.sameCapMax < 0 {
		bad("same-cap-max is %d: want at least 0", r.sameCapMax)
	}
	if j := &r.effective.judge; !share(j.weight) || !share(j.canary) {
		bad("the judge has weight %v and canary share %v: want both from 0 to 1", j.weight, j.canary)
	}
	if n := r.effective.judge.attempts; n < 1 {
		bad("max-attempts of the judge is %d: want at least 1", n)
	}
	if s.Tool != "" && s.Cap != "" {
		bad("the call asks the tool %q and the capability %q: name one", s.Tool, s.Cap)
	}
	if s.Tool != "" && s.Cache.age() > 0 {
		bad("the tool %q has a Cache, but its effects must happen on every call: remove Cache", s.Tool)
	}
	for level, rules := range map[string]Rules{"default": s.Applicator.Policy.Default, "routing": s.Applicator.Policy.Routing} {
		if rules.Cache.age() > 0 {
			bad("the %s rules have a Cache: set it only for intents and calls whose answers may be reused", level)
		}
	}
	if s.open() && (s.Tool != "" || s.Cap != "" || s.Dispatch.Candidates != nil || s.CapFrom != nil && s.CandidatesFrom != nil) {
		bad("the call chooses its capability in two ways: keep one of Tool, Cap, CapFrom, Dispatch.Candidates and CandidatesFrom")
	}
}

func (r *resolved) resolveSchemas(c *caller, app *Applicator) {
	intent := app.Intents[c.spec.Intent]
	find := func(name string) *schema.Schema {
		s, ok := app.Schema(name)
		if !ok {
			r.unknown("unknown-schema", "schema", name, app.schemaNames())
		}
		return specific(s)
	}
	if c.spec.Tool == "" {
		r.in = find(intent.In)
	}
	find(c.spec.Requires.InSchema)
	out := c.spec.Requires.OutSchema
	if out == "" && c.spec.Tool == "" {
		out = intent.Out
	}
	if s := find(out); s != nil {
		r.outSchemas = append(r.outSchemas, s)
	}
	if c.produces != nil {
		if s := specific(c.produces.Schema()); s != nil && !slices.Contains(r.outSchemas, s) {
			r.outSchemas = append(r.outSchemas, s)
		}
	}
	if r.wanted = mostSpecific(r.outSchemas); r.wanted != nil {
		r.wantedID = schemaID(r.wanted)
	}
}

// mostSpecific returns the first schema if all its values are certain to fit the second, and otherwise the second. A list of one
// schema returns that schema.
func mostSpecific(list []*schema.Schema) *schema.Schema {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	if len(schema.Compatible(list[0], list[1])) == 0 {
		return list[0]
	}
	return list[1]
}

// schemaID returns text that identifies a schema in the key of a step.
func schemaID(s *schema.Schema) string {
	sum := sha256.Sum256(s.JSON())
	return hex.EncodeToString(sum[:8])
}

// specific returns s, or nil if s accepts anything.
func specific(s *schema.Schema) *schema.Schema {
	if text := s.String(); s == nil || text == "{}" || text == "true" {
		return nil
	}
	return s
}

func (app *Applicator) schemaNames() iter.Seq[string] { return namesIn(app.Schemas, builtin) }

// namesIn returns an iterator over the keys of both maps.
func namesIn[V any](a, b map[string]V) iter.Seq[string] {
	return slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b)))
}

// outSchema returns the schema of the out that checks judge, or nil if it is unknown.
func (r *resolved) outSchema() *schema.Schema {
	if len(r.outSchemas) == 0 {
		return nil
	}
	return r.outSchemas[0]
}

// inputType returns the input schema that Validate can use: the intent's or the Go type's, but not a built-in schema, which is
// too general.
func (r *resolved) inputType(s *Spec) *schema.Schema {
	if in, ok := s.Input.(*part); ok && (r.in == nil || builtin[s.Applicator.Intents[s.Intent].In] != nil) {
		return in.typed()
	}
	return r.in
}

// bar resolves the checks that a contract names, and compares them with the types of the values that they will judge.
func (r *faults) bar(app *Applicator, done Done, in, out *schema.Schema) bar {
	return bar{must: r.checks(app, done.Must, in, out), should: r.checks(app, done.Should, in, out), scoreMin: *done.ScoreMin}
}

func (r *faults) checks(app *Applicator, names []string, in, out *schema.Schema) []namedCheck {
	var all []namedCheck
	for _, name := range names {
		if run := app.check(name); run != nil {
			c := namedCheck{name, run, app.CheckFacts[name], new(fault.Streak)}
			if c.Fits != nil {
				if err := c.Fits(in, out); err != nil {
					r.fault("bad-expression", "the check %q: %v", name, err).Queried = name
				}
			}
			all = append(all, c)
			continue
		}
		r.unknown("unknown-check", "check", name, namesIn(app.Checks, builtinChecks))
	}
	return all
}

// knows reports whether a call may have the intent: Intents is nil or defines it, or it is one of Stone's own.
func (app *Applicator) knows(intent string) bool {
	_, known := app.Intents[intent]
	return known || app.Intents == nil || slices.Contains(terms.OwnIntents, intent)
}

// resolveCandidates resolves the candidates of the call. The metadata of at least one must pass the tests.
func (r *resolved) resolveCandidates(s *Spec, app *Applicator) {
	r.candidates = app.candidates(s, nil)
	r.inputs, r.outputs = map[*entry]*schema.Schema{}, map[*entry]*schema.Schema{}
	var why []string
	for _, c := range r.candidates {
		if c.reason != "" {
			why = append(why, c.id+" "+c.why(s, nil))
			continue
		}
		r.promises(app, c.entry)
	}
	if s.Intent == "" && s.Tool == "" && s.Cap == "" && len(s.Dispatch.Candidates) == 0 && !s.open() && s.Requires.Kind == "" && len(s.Requires.Tags) == 0 {
		r.fault("no-candidate", "the call names neither an intent nor a capability: name one")
		return
	}
	if len(why) == len(r.candidates) {
		what := fmt.Sprintf("no capability can answer the intent %q", s.Intent)
		if s.Tool != "" {
			what = fmt.Sprintf("no tool %q can answer", s.Tool)
		}
		if s.Tool == "" && !app.knows(s.Intent) {
			what += ", which is unknown"
		}
		f := r.fault("no-candidate", "%s: %s", what, strings.Join(append(why, "configure or register a capability that can"), ", "))
		f.Queried = s.Intent
		if len(r.candidates) == 0 && s.Tool == "" {
			f.Suggestion = suggest.Closest(s.Intent, app.Registry.Intents())
		}
		for _, c := range r.candidates {
			if known := app.Registry; c.reason == notFound && f.Suggestion == "" {
				if s.Tool != "" {
					known = app.Tools
				}
				f.Suggestion = suggest.Closest(c.id, slices.Values(known.IDs()))
			}
		}
	} else if s.Tool == "" && !app.knows(s.Intent) {
		r.unknown("no-candidate", "intent", s.Intent, maps.Keys(app.Intents))
	}
	if fix := s.Dispatch.Repair; fix != nil {
		r.repairs = max(fix.Max, 1)
		if fix.Cap != "" {
			if r.repairer = app.Registry.entry(fix.Cap); r.repairer == nil {
				r.unknown("no-candidate", "repair capability", fix.Cap, slices.Values(app.Registry.IDs()))
			} else if reason := r.repairer.refuses(&Spec{Intent: s.Intent, Effects: s.Effects}, nil); reason != "" {
				r.fault("no-candidate", "%s cannot repair: %s", fix.Cap, reason)
			}
			r.promises(app, r.repairer)
		}
	}
}

// promises stores the schemas of a capability's input and output. It omits a schema that equals the call's or accepts anything.
func (r *resolved) promises(app *Applicator, e *entry) {
	if e == nil {
		return
	}
	find := func(what, name string) *schema.Schema {
		s, ok := app.Schema(name)
		if !ok {
			f := r.fault("unknown-schema", "unknown schema %q, the %s of %s", name, what, e.ID)
			f.Queried, f.Suggestion = name, suggest.Closest(name, app.schemaNames())
		}
		return specific(s)
	}
	if s := find("in-schema", e.In); s != nil && s != r.in {
		r.inputs[e] = s
	}
	if s := find("out-schema", e.Out); s != nil && !slices.Contains(r.outSchemas, s) {
		r.outputs[e] = s
	}
}

// resolveJudge resolves the judge: the capability that the policy names or, if it names none, the cheapest capability with the
// intent terms.Grade. Answers of tools and of judges are not judged.
func (r *resolved) resolveJudge(app *Applicator) {
	j := &r.effective.judge
	if !j.on {
		return
	}
	if r.judge = app.judge(j); r.judge != nil {
		return
	}
	if j.cap != "" {
		r.unknown("no-candidate", "judge", j.cap, slices.Values(app.Registry.IDs()))
		return
	}
	r.fault("no-candidate", "the policy turns the judge on, but no capability judges: register a capability with the intent %s", terms.Grade)
}

func (app *Applicator) judge(j *judging) *entry {
	switch {
	case !j.on || app.Registry == nil:
		return nil
	case j.cap != "":
		return app.Registry.entry(j.cap)
	}
	for _, e := range app.Registry.order {
		if slices.Contains(e.Intents, terms.Grade) {
			return e
		}
	}
	return nil
}
