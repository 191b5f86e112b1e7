package eval_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/x/eval"
)

// TestOutOfMoney exhausts the budget of an evaluation, in answers or in judges. When it is resumed
// with more, it makes only the missing calls, and its report has no errors.
func TestOutOfMoney(t *testing.T) {
	for _, c := range []struct {
		name                  string
		answer, judge, enough float64
	}{
		{"answers", .01, .001, .025},
		{"judges", .001, .01, .025},
		{"the first judge", .001, .01, .005},
	} {
		t.Run(c.name, func(t *testing.T) {
			var answers, judges atomic.Int32
			app := &call.Applicator{Registry: call.NewRegistry(
				call.Func(call.Metadata{ID: "model", Intents: []string{"say"}, Cost: call.Cost{USD: c.answer}}, func(context.Context, any) (any, error) {
					answers.Add(1)
					return "A", nil
				}),
				call.Func(call.Metadata{ID: "judge", Intents: []string{terms.Grade}, Cost: call.Cost{USD: c.judge}}, func(context.Context, any) (any, error) {
					judges.Add(1)
					return map[string]any{"score": 1}, nil
				}),
			)}
			p := call.New("say", reply, call.Spec{Applicator: app, Intent: "say", Input: call.From(asked)})
			scores, err := eval.Read(app, "judge:Is it right?")
			if err != nil {
				t.Fatal(err)
			}
			db := memdb.New(t)
			run := func(usd float64) (eval.Report, error) {
				return eval.Run(budget.With(t.Context(), budget.New(budget.Limits{USD: new(usd)})), eval.Config{Pipeline: p, Data: rows("a", "b", "c", "d"), Scorers: scores},
					stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})})
			}
			if r, err := run(c.enough); !errors.As(err, new(*budget.ExhaustedError)) {
				t.Fatalf("%+v, %v", r, err)
			}
			r, err := run(1)
			if err != nil {
				t.Fatal(err)
			}
			if s := r.Scores[0]; s.Right != 4 || s.Errors != 0 || len(r.Failures) != 0 {
				t.Errorf("%+v", r)
			}
			if answers.Load() != 4 || judges.Load() != 4 {
				t.Errorf("%d answers and %d judges were asked, want 4 each", answers.Load(), judges.Load())
			}
		})
	}
}
