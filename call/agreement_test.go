package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
)

func agreement(ids ...string) call.Dispatch {
	return call.Dispatch{Candidates: ids, Strategy: call.Agreement}
}

func agree(first int, check string, d call.Dispatch) call.Dispatch {
	d.Agree = &call.Agree{First: first, Check: check}
	return d
}

// sameLetters compares the texts of answers and ignores case.
func sameLetters(_ context.Context, s call.Subject) error {
	var all []struct{ Text string }
	if err := json.Unmarshal(s.Out, &all); err != nil {
		return err
	}
	for _, a := range all {
		if !strings.EqualFold(a.Text, all[0].Text) {
			return errors.New(a.Text + " is not " + all[0].Text)
		}
	}
	return nil
}

func TestAgreement(t *testing.T) {
	ms := time.Millisecond
	soft := fails(reasons.SoftTimeout)
	checks := map[string]call.Check{"letters": sameLetters, "a or c": holds("a", "c"), "fails": holds()}
	both := func(text string) map[string]behaviour {
		return map[string]behaviour{"a": after(30*ms, says(text)), "b": after(20*ms, says(text))}
	}
	runScenes(t, []scene{
		{name: "two agree, at once", spec: call.Spec{Dispatch: agreement("a", "b", "c")}, does: both("x"), calls: "a b", want: "x", took: 30 * ms},
		{name: "two differ, the next alone", spec: call.Spec{Dispatch: agreement("a", "b", "c")}, calls: "a b c", want: "c"},
		{name: "equal JSON in another form", spec: call.Spec{Dispatch: agreement("a", "b", "c")}, calls: "a b", want: "x",
			does: map[string]behaviour{"a": answers(`{"text":"x","n":1.0}`), "b": answers(`{ "n":1, "text":"\u0078"}`)}},
		{name: "a check compares", spec: call.Spec{Dispatch: agree(0, "letters", agreement("a", "b", "c"))}, checks: checks, calls: "a b", want: "X",
			does: map[string]behaviour{"a": says("X"), "b": says("x")}},
		{name: "three", spec: call.Spec{Dispatch: agree(3, "", agreement("a", "b", "c", "fix"))}, does: both("c"), calls: "a b c", want: "c"},
		{name: "three, one of which differs", spec: call.Spec{Dispatch: agree(3, "", agreement("a", "b", "c", "fix"))}, does: both("x"), calls: "a b c fix", want: "fix"},
		{name: "an answer that the gate rejects agrees with none", spec: call.Spec{Dispatch: agreement("a", "b", "c"), Done: call.Done{Must: []string{"a or c"}}},
			checks: checks, does: both("x"), calls: "a b c", want: "c"},
		{name: "one fails", spec: call.Spec{Dispatch: agreement("a", "b", "c")}, does: map[string]behaviour{"b": soft}, calls: "a b c", want: "c"},
		{name: "one fails in a way that ends the call", spec: call.Spec{Dispatch: agreement("a", "b", "c")}, does: map[string]behaviour{"b": fails("post/strike")}, calls: "a b", want: "!post/strike"},
		{name: "one is retried", spec: call.Spec{Dispatch: retry(1, 1, agreement("a", "b", "c"))}, calls: "a b b", want: "x",
			does: map[string]behaviour{"a": says("x"), "b": inTurn(soft, says("x"))}},
		{name: "one is down, none of them is asked", spec: call.Spec{Dispatch: agreement("a", "b", "c")}, down: []string{"b"}, calls: "c", want: "c", rejected: "b availability/down"},
		{name: "they count as one candidate", spec: call.Spec{Dispatch: retry(0, 0, agreement("a", "b", "c"))}, calls: "a b", want: "!eval/disagreed"},
		{name: "the next is down", spec: call.Spec{Dispatch: agreement("a", "b", "c")}, down: []string{"c"}, calls: "a b", want: "!eval/disagreed", rejected: "c availability/down"},
		{name: "the next is rejected", spec: call.Spec{Dispatch: agreement("a", "b", "c", "fix"), Done: call.Done{Must: []string{"fails"}}}, checks: checks,
			calls: "a b c fix", want: "!eval/must-failed", failed: "fails"},
		{name: "the policy's fallback is asked", spec: call.Spec{Dispatch: agreement("a", "b")}, policy: call.Policy{Default: call.Rules{Fallback: []string{"c"}}}, calls: "a b c", want: "c"},
		{name: "the budget pays for one", spec: call.Spec{Dispatch: agreement("a", "b", "c")}, budget: call.Budget{Roundtrips: new(1)}, calls: "a", want: "!" + reasons.BudgetExhausted},
		{name: "no money is left for the next", spec: call.Spec{Dispatch: agreement("a", "b", "c")}, budget: call.Budget{Roundtrips: new(2)}, calls: "a b", want: "!" + reasons.BudgetExhausted},
	})
}

// The record says why an agreement asked the next candidate, and counts all attempts.
func TestAgreementIsRecorded(t *testing.T) {
	for name, tc := range map[string]struct {
		spec            call.Spec
		does            map[string]behaviour
		want, disagreed string
		tried           int
	}{
		"agreed":   {call.Spec{}, map[string]behaviour{"a": says("x"), "b": says("x")}, "x", "", 2},
		"differ":   {call.Spec{}, nil, "c", "the answers of a and b differ", 3},
		"by check": {call.Spec{Dispatch: agree(2, "letters", agreement("a", "b", "c"))}, nil, "c", "letters: b is not a", 3},
		"a lane":   {call.Spec{}, map[string]behaviour{"b": fails(reasons.SoftTimeout)}, "c", "b: timeout/soft", 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			var all []call.Capability
			for _, id := range []string{"a", "b", "c"} {
				all = append(all, w.cap(tc.does[id], call.Metadata{ID: id}))
			}
			spec := tc.spec
			if spec.Dispatch.Candidates == nil {
				spec.Dispatch = agreement("a", "b", "c")
			}
			spec.Applicator = &call.Applicator{Registry: call.NewRegistry(all...), Checks: map[string]call.Check{"letters": sameLetters}}
			account := budget.New(call.Budget{})
			v := runCall(budget.With(t.Context(), account), spec, call.Budget{}, stone.Config{})
			if v.brief() != tc.want || v.rec.Disagreed != tc.disagreed || len(v.rec.Tried) != tc.tried || account.Spent().Roundtrips != tc.tried {
				t.Errorf("got %s, disagreed %q after %d attempts and %d round trips; want %s, %q, %d", v.brief(), v.rec.Disagreed, len(v.rec.Tried), account.Spent().Roundtrips, tc.want, tc.disagreed, tc.tried)
			}
		})
	}
}

func TestAgreementIsValidated(t *testing.T) {
	for _, tc := range []struct {
		dispatch call.Dispatch
		cap      string
		want     string
	}{
		{agreement("a"), "", "no-candidate: an agreement calls 2 candidates at once, but the call has only 1: add candidates"},
		{agreement("a", "b"), "a", "no-candidate: an agreement calls 2 candidates at once, but the call has only 1: add candidates"},
		{agreement("a", "x", "b"), "", "no-candidate: x cannot agree: cap/not-found"},
		{agree(1, "", agreement("a", "b")), "", "bad-option: agree.first is 1: want at least 2"},
		{agree(2, "", caps("a", "b")), "", "bad-option: agree needs the strategy agreement: set the strategy, or remove agree"},
		{agree(2, "leters", agreement("a", "b")), "", `unknown-check: unknown check "leters"`},
		{agree(2, "letters", agreement("a", "b")), "", `effect-not-granted: the check letters needs the effect "process", which the run does not grant: grant the effect, or remove what needs it`},
	} {
		app := &call.Applicator{
			Registry:   call.NewRegistry((&world{}).cap(nil, call.Metadata{ID: "a"}), (&world{}).cap(nil, call.Metadata{ID: "b"})),
			Checks:     map[string]call.Check{"letters": sameLetters},
			CheckFacts: map[string]call.CheckFacts{"letters": {Needs: []string{"process"}}},
		}
		p := call.New("ask", out, call.Spec{Applicator: app, Intent: "mail/sort", Cap: tc.cap, Dispatch: tc.dispatch})
		var got []string
		for _, f := range stone.Validate(p, stone.Given{Grant: []string{}}).Errors() {
			got = append(got, string(f.Type)+": "+f.Message)
		}
		if len(got) != 1 || got[0] != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
