package call_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
)

// grader is a judge that behaves in its own way and remembers what it was asked.
func grader(asked *[]*call.Request, b behaviour) call.Capability {
	return call.Capability{Metadata: call.Metadata{ID: "judge/j", Intents: []string{terms.Grade}}, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		*asked = append(*asked, req)
		return b(ctx, req)
	}}
}

// A judge that fails or gives no score is asked again, as often as the policy says.
func TestJudgeAttempts(t *testing.T) {
	for _, tc := range []struct {
		name   string
		max    int
		does   behaviour
		budget int
		asked  int
		want   string
	}{
		{"once where nothing is said", 0, inTurn(answers("17"), answers("1")), 9, 1, "!judge/invalid"},
		{"again", 3, inTurn(answers("17"), fails(reasons.Unavailable), answers("1")), 9, 3, "a"},
		{"not more often", 2, inTurn(answers("17"), panics, answers("1")), 9, 2, "!judge/invalid"},
		{"not after a low score", 3, answers("0.1"), 9, 1, "!eval/low-score"},
		{"not without money", 3, answers("17"), 3, 2, "!budget/exhausted"},
		{"never is wrong", -1, answers("1"), 9, 0, "!bad-option"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, on, half := &world{}, true, 0.6
				var asked []*call.Request
				app := app(w.cap(nil, call.Metadata{ID: "a"}), grader(&asked, tc.does))
				app.Policy.Default.Judge.On = &on
				app.Policy.Default.Done.ScoreMin = &half
				if tc.max != 0 {
					app.Policy.Intents = map[string]call.Rules{"mail/sort": {Judge: call.Judge{MaxAttempts: &tc.max}}}
				}
				v := runCall(t.Context(), call.Spec{Applicator: app, Cap: "a"}, call.Budget{Roundtrips: new(tc.budget)}, stone.Config{})
				if got := v.brief(); got != tc.want || len(asked) != tc.asked {
					t.Errorf("%s after %d questions, want %s after %d (%v)", got, len(asked), tc.want, tc.asked, v.err)
				}
				for i, req := range asked {
					if req.Attempt != i+1 {
						t.Errorf("question %d is attempt %d", i+1, req.Attempt)
					}
				}
			})
		})
	}
}

// The rubric of the intent is in the input of the judge. Another one is another call.
func TestRubric(t *testing.T) {
	w, on := &world{}, true
	keys := map[dag.ID]bool{}
	for _, tc := range []struct{ all, intent, want string }{{"all", "", "all"}, {"all", "own", "own"}, {"", "", ""}} {
		var asked []*call.Request
		app := app(w.cap(nil, call.Metadata{ID: "a"}), grader(&asked, answers("1")))
		app.Policy.Default.Judge = call.Judge{On: &on, Rubric: tc.all}
		app.Policy.Intents = map[string]call.Rules{"mail/sort": {Judge: call.Judge{Rubric: tc.intent}}}
		spec := call.Spec{Applicator: app, Intent: "mail/sort", Cap: "a"}
		runCall(t.Context(), spec, call.Budget{}, stone.Config{})
		if len(asked) != 1 {
			t.Fatalf("asked %d times", len(asked))
		}
		var in struct{ Rubric *string }
		if err := json.Unmarshal(asked[0].Input, &in); err != nil {
			t.Fatal(err)
		}
		if got := in.Rubric; (got == nil) != (tc.want == "") || got != nil && *got != tc.want {
			t.Errorf("the judge is given %s, want the rubric %q", asked[0].Input, tc.want)
		}
		if got := app.Effective(spec).Judge.Rubric; got != tc.want {
			t.Errorf("in force is %q, want %q", got, tc.want)
		}
		keys[call.New("ask", out, spec).Fingerprint()] = true
	}
	if len(keys) != 3 {
		t.Errorf("%d fingerprints of three rubrics", len(keys))
	}
}
