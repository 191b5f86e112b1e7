package call_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/x/cel"
)

type prompted struct {
	Text string `json:"text"`
	Who  string `json:"who,omitempty"`
}

var asked = dag.NewType[prompted]("prompted")

// guarded is an Applicator with checks for the door, whose capability counts.
func guarded(t *testing.T, count *int) *call.Applicator {
	t.Helper()
	grader := call.Func(call.Metadata{ID: "judge", Intents: []string{terms.Check}, Cost: call.Cost{USD: 0.5}},
		func(_ context.Context, in struct {
			Of         string
			Input, Out *prompted
		}) (bool, error) {
			if in.Of != "input" || in.Input != nil {
				return false, errors.New("want the input as the material")
			}
			return !strings.Contains(in.Out.Text, "attack"), nil
		})
	app := &call.Applicator{Registry: call.NewRegistry(grader, call.Func(call.Metadata{ID: "m", Intents: []string{"x/say"}, Cost: call.Cost{USD: 1}},
		func(context.Context, prompted) (string, error) { *count++; return "said", nil }))}
	for name, text := range map[string]string{"named": "has(call.input.who)", "short": "size(out.text) < 20"} {
		if err := cel.AddCheck(app, name, text); err != nil {
			t.Fatal(err)
		}
	}
	app.Checks["judged"] = call.CheckBy("judged", app.Registry, "judge")
	app.CheckFacts["judged"] = call.CheckFacts{Costly: true}
	return app
}

// Each way to guard an input refuses it before a capability is asked, and lets others pass.
func TestAdmit(t *testing.T) {
	for _, test := range []struct {
		name     string
		admit    call.Done
		in       prompted
		want     string // the reason, "" if it is admitted
		usd      float64
		verdicts call.Admission
	}{
		{"nothing is checked", call.Done{}, prompted{}, "", 1, call.Admission{}},
		{"an expression over out", call.Done{Must: []string{"short"}}, prompted{Text: "hello"}, "", 1, call.Admission{Score: 1}},
		{"it does not hold", call.Done{Must: []string{"short"}}, prompted{Text: strings.Repeat("x", 20)}, "short: size(out.text) < 20 does not hold", 0, call.Admission{Score: 1, MustFailed: []string{"short"}}},
		{"an expression over call.input", call.Done{Must: []string{"named"}}, prompted{}, "named: has(call.input.who) does not hold", 0, call.Admission{Score: 1, MustFailed: []string{"named"}}},
		{"built in", call.Done{Must: []string{"non-empty"}}, prompted{Text: " "}, "non-empty: the input is empty", 0, call.Admission{Score: 1, MustFailed: []string{"non-empty"}}},
		{"a score", call.Done{Should: []string{"named", "short"}, ScoreMin: new(0.6)}, prompted{Text: "x"}, "the score is 0.5, want 0.6: named: ", 0, call.Admission{Score: 0.5, ShouldFailed: []string{"named"}}},
		{"a score that is enough", call.Done{Should: []string{"named", "short"}, ScoreMin: new(0.5)}, prompted{Text: "x"}, "", 1, call.Admission{Score: 0.5, ShouldFailed: []string{"named"}}},
		{"a judge", call.Done{Must: []string{"judged"}}, prompted{Text: "fine"}, "", 1.5, call.Admission{Score: 1}},
		{"it sees nothing that a must has rejected", call.Done{Must: []string{"judged", "short"}}, prompted{Text: "an attack, and longer than that"}, "short: ", 0, call.Admission{Score: 1, MustFailed: []string{"short"}}},
		{"it rejects", call.Done{Must: []string{"judged"}}, prompted{Text: "an attack"}, "judged: it does not hold", 0.5, call.Admission{Score: 1, MustFailed: []string{"judged"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			asks := 0
			app := guarded(t, &asks)
			spec := call.Spec{Applicator: app, Intent: "x/say", Input: call.From(asked), Admit: test.admit}
			spec.Dispatch.SwitchOn = []string{reasons.InputRejected} // even so
			spec.Dispatch.Retry.SameCapMax = new(3)
			said := dag.NewType[string]("said")
			d, err := asked.Append(dag.DAG{}, test.in)
			if err != nil {
				t.Fatal(err)
			}
			ctx := budget.With(t.Context(), budget.New(budget.Limits{USD: new(10.0)}))
			res, err := stone.Run(ctx, call.New("say", said, spec), stone.Config{Input: d})
			var failure *call.Error
			if errors.As(err, &failure) != (test.want != "") || failure != nil && (failure.Type != reasons.InputRejected || !strings.Contains(failure.Message, test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if want := map[bool]int{true: 1}[test.want == ""]; asks != want {
				t.Errorf("the capability was asked %d times, want %d", asks, want)
			}
			if usd := budget.From(ctx).Spent().USD; usd != test.usd {
				t.Errorf("spent %v, want %v", usd, test.usd)
			}
			rec := call.RecordOf(res.DAG.Latest())
			if rec == nil {
				t.Fatal("no record")
			}
			if got := rec.Input; (got == nil) != (test.verdicts.Score == 0) || got != nil && (got.Score != test.verdicts.Score ||
				strings.Join(got.MustFailed, " ") != strings.Join(test.verdicts.MustFailed, " ") || strings.Join(got.ShouldFailed, " ") != strings.Join(test.verdicts.ShouldFailed, " ")) {
				t.Errorf("the record has %+v, want %+v", got, test.verdicts)
			}
			if test.want != "" && rec.Usage.USD != test.usd {
				t.Errorf("the record says %v USD, want %v", rec.Usage.USD, test.usd)
			}
			if test.admit.Must == nil && test.admit.Should == nil {
				return
			}
			// The same contract as a step of its own.
			_, err = stone.Run(t.Context(), call.Admit("door", app, call.From(asked), test.admit), stone.Config{Input: d})
			if (err == nil) != (test.want == "") || err != nil && (kindOf(err) != reasons.InputRejected || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("the step: %v, want %q", err, test.want)
			}
		})
	}
}

// All levels of the policy guard, and a failure that is allowed leaves its record.
func TestAdmitByPolicy(t *testing.T) {
	asks := 0
	app := guarded(t, &asks)
	app.Policy = call.Policy{
		Default: call.Rules{Admit: call.Done{Must: []string{"short"}}},
		Intents: map[string]call.Rules{"x/say": {Admit: call.Done{Should: []string{"named"}, ScoreMin: new(1.0)}}},
	}
	said := dag.NewType[string]("said")
	spec := call.Spec{Applicator: app, Intent: "x/say", Input: call.From(asked), Admit: call.Done{Must: []string{"non-empty"}}}
	spec.Dispatch.AllowFailure = true
	d, err := asked.Append(dag.DAG{}, prompted{Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := stone.Run(t.Context(), call.New("say", said, spec), stone.Config{Input: d})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := call.Failed(said).From(res.DAG)
	if err != nil || rec.Failure != reasons.InputRejected || rec.Input == nil || asks != 0 {
		t.Errorf("%+v, %v, %d asked", rec, err, asks)
	}
	if got := app.Effective(spec).Admit; strings.Join(got.Must, " ") != "short non-empty" || *got.ScoreMin != 1 {
		t.Errorf("in effect is %+v", got)
	}
}

// Validate finds what is wrong with a door before anything runs.
func TestAdmitIsValidated(t *testing.T) {
	asks := 0
	app := guarded(t, &asks)
	for name, text := range map[string]string{"prio": "call.input.prio > 3", "whom": "call.input.whom != ''", "typed": "call.input.text > 3"} {
		if err := cel.AddCheck(app, name, text); err != nil {
			t.Fatal(err)
		}
	}
	app.Checks["program"] = app.Checks["short"]
	app.CheckFacts["program"] = call.CheckFacts{Needs: []string{effect.Process}, Costly: true}
	for _, test := range []struct {
		must string
		min  float64
		want string // type and text of the finding
	}{
		{"short", 1, ""},
		{"shrot", 0, "unknown-check shrot"},
		{"prio", 0, `bad-expression the check "prio": expression "call.input.prio > 3": 1:11: call.input has no field prio`},
		{"whom", 0, "bad-expression has no field whom, did you mean who?"},
		{"typed", 0, "bad-expression no matching overload"},
		{"short", 2, "bad-option score-min is 2"},
		{"program", 0, "effect-not-granted process"},
	} {
		done := call.Done{Must: []string{test.must}, ScoreMin: &test.min}
		said := dag.NewType[string]("said")
		for what, p := range map[string]stone.Ashlar{
			"call": call.New("say", said, call.Spec{Applicator: app, Intent: "x/say", Input: call.From(asked), Admit: done}),
			"step": call.Admit("door", app, call.From(asked), done),
		} {
			found := stone.Validate(p, stone.Given{Input: []dag.AnyType{asked}, Grant: []string{}})
			if test.want == "" {
				if len(found) > 0 {
					t.Errorf("%s %s: %v", what, test.must, found)
				}
				continue
			}
			typ, text, _ := strings.Cut(test.want, " ")
			if len(found) != 1 || string(found[0].Type) != typ || !strings.Contains(found[0].String(), text) {
				t.Errorf("%s %s: %v, want %s", what, test.must, found, test.want)
			}
		}
	}
	for _, p := range []stone.Ashlar{call.Admit("door", nil, call.From(asked), call.Done{}), call.Admit("door", app, nil, call.Done{})} {
		if found := stone.Validate(p, stone.Given{Input: []dag.AnyType{asked}}); len(found) != 1 || found[0].Type != "bad-option" {
			t.Errorf("%v", found)
		}
	}
}

// The node of a door needs no reader.
func TestAdmitIsAStep(t *testing.T) {
	asks := 0
	said := dag.NewType[string]("said")
	app := guarded(t, &asks)
	p := stone.Seq("p",
		call.Admit("door", app, call.From(asked), call.Done{Must: []string{"short"}}),
		call.New("say", said, call.Spec{Applicator: app, Intent: "x/say", Input: call.From(asked)}))
	if found := stone.Validate(p, stone.Given{Input: []dag.AnyType{asked}}); len(found) > 0 {
		t.Error(found)
	}
	_, err := stone.Run(t.Context(), p, stone.Config{Input: dag.Of(asked.With(prompted{Text: "hello"}))})
	if err != nil || asks != 1 {
		t.Errorf("%v, %d asked", err, asks)
	}
}

// A check that cannot be paid fails with the account's kind, not with the input's.
func TestAdmitIsPaid(t *testing.T) {
	asks := 0
	app := guarded(t, &asks)
	d, err := asked.Append(dag.DAG{}, prompted{Text: "fine"})
	if err != nil {
		t.Fatal(err)
	}
	said := dag.NewType[string]("said")
	spec := call.Spec{Applicator: app, Intent: "x/say", Input: call.From(asked), Admit: call.Done{Must: []string{"judged"}}, Budget: call.Budget{USD: new(0.1)}}
	_, err = stone.Run(t.Context(), call.New("say", said, spec), stone.Config{Input: d})
	if err == nil || kindOf(err) != reasons.BudgetExhausted || asks != 0 {
		t.Errorf("%v, %d asked", err, asks)
	}
}

func kindOf(err error) string {
	var kinded interface{ FailureKind() string }
	if !errors.As(err, &kinded) {
		return ""
	}
	return kinded.FailureKind()
}
