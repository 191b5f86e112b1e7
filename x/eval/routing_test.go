package eval_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/x/eval"
)

// routing compares models that repeat the text in capitals. The large one knows all of n texts but the first,
// the small one every second; a check lets the small one answer what it knows.
func routing(t *testing.T, n int, gate *eval.Gate) (eval.RoutingReport, error) {
	t.Helper()
	model := func(id string, usd float64, knows func(i int) bool) call.Capability {
		return call.Func(call.Metadata{ID: id, Intents: []string{"say"}, Cost: call.Cost{USD: usd}}, func(_ context.Context, in any) (any, error) {
			text := in.(map[string]any)["text"].(string)
			var i int
			if _, err := fmt.Sscanf(text, "t%d", &i); err != nil || !knows(i) {
				return "", err
			}
			return strings.ToUpper(text), nil
		})
	}
	app := &call.Applicator{Registry: call.NewRegistry(
		model("small", .01, func(i int) bool { return i%2 == 0 && i > 0 }),
		model("large", .1, func(i int) bool { return i > 0 }))}
	ask := func(name string, candidates ...string) stone.Ashlar {
		return call.New(name, reply, call.Spec{Applicator: app, Intent: "say", Input: call.From(asked),
			Dispatch: call.Dispatch{Candidates: candidates}, Done: call.Done{Must: []string{"non-empty"}}})
	}
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf("t%d", i))
	}
	p, err := eval.Routing{Data: rows(texts...), Scorer: scorers(t, "exact")[0], Gate: gate,
		Routed: ask("routed", "small", "large"), Small: []stone.Ashlar{ask("small", "small")}, Large: ask("large", "large"), LargeCap: "large",
	}.Pipeline()
	if err != nil {
		return eval.RoutingReport{}, err
	}
	return stone.Produce(t.Context(), p, eval.Routed, stone.Config{})
}

func TestRouting(t *testing.T) {
	gate := &eval.Gate{ErrorsMost: 0, AtLeast: map[string]float64{"exact": .8},
		Routing: eval.RoutingRules{GapAtLeast: .9, LargeAtMost: .5, CostAtMost: .5}}
	r, err := routing(t, 60, gate)
	if err != nil {
		t.Fatal(err)
	}
	// The routed way asks small for all 60, and large for the 30 odd ones and the first.
	cost := (60*.01 + 31*.1) / (60 * .1)
	if r.Cases != 60 || r.Gap.Mean != .5 || r.GapRecovered.Mean != 1 || r.GapRecovered.Low != 1 || r.LargeShare.Mean != 31./60 || !alike(r.CostShare.Mean, cost) {
		t.Errorf("%+v", r)
	}
	var verdicts []string
	for _, rule := range r.Gate.Rules {
		verdicts = append(verdicts, rule.Rule+": "+rule.Verdict)
	}
	want := "exact at least 0.8: passed, at least 0.9 of the gap: passed, the large model answers at most 0.5 of the cases: cannot tell, at most 0.5 of the large model's cost: cannot tell"
	if got := strings.Join(verdicts, ", "); got != want || r.Gate.Verdict != eval.CannotTell {
		t.Errorf("%s, so %s\nwant %s", got, r.Gate.Verdict, want)
	}
}

// Four questions cannot tell whether there is a gap.
func TestRoutingCannotTell(t *testing.T) {
	r, err := routing(t, 4, &eval.Gate{Routing: eval.RoutingRules{GapAtLeast: .5}})
	if err != nil {
		t.Fatal(err)
	}
	rule := r.Gate.Rules[0]
	if r.Gap.Low > 0 || r.GapRecovered.N != 0 || !strings.Contains(r.Text, "cannot tell: the gap may be nothing") ||
		rule.Verdict != eval.CannotTell || !strings.Contains(rule.Found, "the gap itself may be nothing") || rule.Needed == 0 {
		t.Errorf("%+v\n%s", rule, r.Text)
	}
}

func TestRoutingRulesElsewhere(t *testing.T) {
	_, err := eval.Run(t.Context(), eval.Config{Pipeline: shout(nil), Data: rows("a"), Scorers: scorers(t, "exact"),
		Gate: &eval.Gate{Routing: eval.RoutingRules{LargeAtMost: .3}}}, stone.Config{})
	if err == nil || !strings.Contains(err.Error(), "the gate has rules for routing") {
		t.Errorf("%v", err)
	}
}

func alike(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }
