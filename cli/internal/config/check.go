package config

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stonelayer/stone/internal/pattern"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/command"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/schema"
)

// readChecks reads checks by name. A string is an expression; a map has a single field, which names the kind of check.
func (r *reader) readChecks(m *form.Map) {
	m.At("checks").Entries(func(name string, v form.Value) {
		if slices.Contains(call.BuiltInChecks(), name) {
			v.Fault(form.Duplicate, "the check %q is built in: choose another name", name)
			return
		}
		var check call.Check
		if v.EDN().Kind() == edn.KindString {
			check = r.expression(name, v)
		} else {
			v.Map(func(m *form.Map) { check = r.check(name, m) })
		}
		r.App.Checks[name] = check
		r.checkPlaces[name] = v
		r.Checks++
	})
}

func (r *reader) expression(name string, v form.Value) call.Check {
	if err := r.linked.Missing(kinds.Expression); err != nil {
		v.Fault(form.Invalid, "%v", err)
		return nil
	}
	check, facts, err := r.App.Language.Check(v.EDN().Text())
	if err != nil {
		v.Fault(form.Invalid, "%v", err)
	}
	r.App.CheckFacts[name] = facts
	return check
}

// check reads a check of any kind. Checks are built only if there are no faults.
func (r *reader) check(name string, m *form.Map) (check call.Check) {
	var found int
	is := func(key string) (form.Value, bool) {
		v, ok := m.Field(key)
		if ok {
			found++
		}
		return v, ok
	}
	if v, ok := is("schema"); ok {
		check = r.schemaCheck(v)
	}
	if v, ok := is("max-chars"); ok {
		var n int
		v.Int(&n, 0, 1<<40)
		check = builtInWith("max-chars", n)
	}
	if v, ok := is("regex"); ok {
		var expr string
		if v.Text(&expr) {
			if _, err := pattern.Compile(expr); err != nil {
				v.Fault(form.Invalid, "%v", err)
			}
		}
		check = builtInWith("regex", expr)
	}
	if _, ok := is("command"); ok {
		c := r.program(m)
		if err := c.Check(); len(c.Command) > 0 && err != nil {
			m.Fault(form.Invalid, "%v", err)
		}
		check = call.Paid(name, command.Check(c))
		r.App.CheckFacts[name] = call.CheckFacts{Needs: []string{effect.Process}, Costly: true}
	}
	if _, ok := is("capability"); ok {
		check = r.capabilityCheck(name, m)
	}
	if found > 1 || found == 0 && m.EDN().Len() == 0 {
		m.Fault(form.Invalid, "expected an expression in a string, or a map with one of schema, max-chars, regex, command and capability")
	}
	return check
}

// builtInWith returns the built-in check with the given name and parameter.
func builtInWith(name string, parameter any) call.Check {
	// Marshalling numbers and strings cannot fail.
	constraints, _ := json.Marshal(map[string]any{name: parameter})
	return call.BuiltIn(name, constraints)
}

// schemaCheck reads a schema, the name of a schema, or a file that contains one.
func (r *reader) schemaCheck(v form.Value) call.Check {
	var s *schema.Schema
	var name string
	var data json.RawMessage
	switch file, isFile := r.OnlyFile(v); {
	case v.EDN().Kind() != edn.KindMap:
		if !v.Name(&name) {
			return nil
		}
		var ok bool
		if s, ok = r.App.Schema(name); !ok {
			v.Unknown("schema", name, r.schemaNames()...)
		}
	case isFile:
		s = r.schemaFile(v, file)
	case v.JSON(&data):
		var err error
		if s, err = schema.Parse(data); err != nil {
			v.Fault(form.Invalid, "expected a JSON Schema: %v", err)
		}
	}
	return func(ctx context.Context, sub call.Subject) error { return s.Validate(ctx, sub.Out) }
}

// verdictType is the node type of a checking capability's verdict.
var verdictType = dag.NewType[call.JSON]("stone/verdict")

// capabilityCheck returns a check that asks a capability for a score, as a judge would be asked, with the intent eval/grade. The
// policy does not apply to this call, because the policy might require the same check. Nor is the call limited to the intents of
// requests.
func (r *reader) capabilityCheck(name string, m *form.Map) call.Check {
	var id, rubric string
	r.Text(m, "rubric", &rubric)
	enough := 0.5
	if v := m.At("capability"); v.Name(&id) {
		kinds.CheckEach(v, "capability", slices.Sorted(slices.Values(r.IDs)))
		r.graders = append(r.graders, grader{name, v, id})
	}
	m.At("score-min").Float(&enough, 0, 1)
	return func(ctx context.Context, s call.Subject) error {
		app := *r.App
		app.Policy, app.Intents = call.Policy{}, nil
		input, err := s.Material(rubric)
		if err != nil {
			return err
		}
		ask := call.New("check "+name+" "+s.Step, verdictType, call.Spec{
			Applicator: &app, Intent: terms.Grade, Cap: id,
			Input:    dag.Derive(dag.Nothing, func(struct{}) any { return input }),
			Requires: call.Requires{Reply: call.Value},
		})
		d := stone.In(ctx).RunDynamic(ask, dag.DAG{}, nil)
		if d.Failed() {
			return d.Cause()
		}
		out, err := verdictType.From(d)
		if err != nil {
			return err
		}
		var verdict struct {
			Score   *float64
			Reasons []string
		}
		if err := json.Unmarshal(out, &verdict); err != nil || verdict.Score == nil {
			return fmt.Errorf("%s returned %.60s: want a score", id, out)
		}
		if *verdict.Score < enough {
			return fmt.Errorf("%s scores %.3g, want at least %.3g: %q", id, *verdict.Score, enough, verdict.Reasons)
		}
		return nil
	}
}

func (r *reader) schemaNames() []string {
	return slices.Sorted(slices.Values(append(call.BuiltInSchemas(), slices.Collect(maps.Keys(r.App.Schemas))...)))
}

func (r *reader) intentNames() []string {
	return append(slices.Sorted(maps.Keys(r.App.Intents)), terms.OwnIntents...)
}

func (r *reader) checkNames() []string {
	names := append(call.BuiltInChecks(), slices.Collect(maps.Keys(r.App.Checks))...)
	slices.Sort(names)
	return slices.Compact(names)
}

// A grader is a capability that returns the score for a check.
type grader struct {
	check string
	named form.Value
	id    string
}

// checkTypes adds a fault for each check that no answer to an intent can pass: expressions that read a field which is missing from
// the schema of the answer or the input.
func (r *reader) checkTypes() {
	for _, intent := range slices.Sorted(maps.Keys(r.App.Intents)) {
		ask := call.New("check", verdictType, call.Spec{Applicator: r.App, Intent: intent})
		for _, f := range ask.Detail().Check() {
			if place, ok := r.checkPlaces[f.Queried]; ok && f.Type == "bad-expression" {
				place.Fault(form.Invalid, "the intent %s: %s", intent, f.Message)
			}
		}
	}
}

// checkRerankers adds a fault for each capability that is configured to rerank passages but does not accept the intent
// terms.Rerank.
func (r *reader) checkRerankers() {
	for _, named := range r.Rerankers {
		switch m, ok := r.App.Registry.Lookup(named.ID); {
		case ok && m.Kind == "search":
			named.Fault(form.Invalid, "%s is of kind search, which finds passages but cannot rank them: expected a model, or a reranking server", named.ID)
		case ok && m.Intents != nil && !slices.Contains(m.Intents, terms.Rerank):
			named.Fault(form.Invalid, "%s does not answer %s: add it to its cap/intents", named.ID, terms.Rerank)
		}
	}
}

// checkPolicy adds a fault for each unknown name of a schema, check or capability in a policy or in intents. Malformed values are
// reported elsewhere.
func (r *reader) checkPolicy(v form.Value) {
	if v.EDN().Kind() != edn.KindMap {
		return
	}
	v.Map(func(m *form.Map) {
		m.AllowRest()
		for k := range v.EDN().Entries() {
			key, _ := k.Name()
			field := m.At(key)
			switch key {
			case "":
			case "in-schema", "out-schema":
				kinds.CheckEach(field, "schema", r.schemaNames())
			case "must", "should":
				kinds.CheckEach(field, "check", r.checkNames())
				if err := r.linked.Missing(kinds.LegalMove); err != nil && mentions(field.EDN(), kinds.LegalMove) {
					field.Fault(form.Invalid, "the check %v", err)
				}
			case "fallback", "cap/id":
				kinds.CheckEach(field, "capability", slices.Sorted(slices.Values(r.IDs)))
			case "intents":
				r.checkIntents(field)
			default:
				r.checkPolicy(field)
			}
		}
	})
}

// checkIntents adds a fault for each rule about an intent that is invalid or whose intent does not exist.
func (r *reader) checkIntents(v form.Value) {
	if v.EDN().Kind() != edn.KindMap {
		return
	}
	v.Entries(func(intent string, rules form.Value) {
		if known := r.intentNames(); r.App.Intents != nil && !slices.Contains(known, intent) {
			rules.Unknown("intent", intent, known...)
		}
		r.checkPolicy(rules)
	})
}
