package call_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// An invocation that waits for a person is made when the person has answered: nothing is possibly
// paid, and the account has its money back.
func TestWaitingCostsNothing(t *testing.T) {
	name, greeting := dag.NewType[map[string]string]("name"), dag.NewType[string]("greeting")
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "greeter", Intents: []string{"text/greet"}, Cost: call.Cost{USD: 0.4}},
		func(ctx context.Context, in map[string]string) (string, error) { return "", kind.Waiting }))}
	p := call.New("greet", greeting, call.Spec{Applicator: app, Intent: "text/greet", Input: call.From(name)})
	input := dag.Of(name.With(map[string]string{"name": "Ada"}))
	j := memdb.New(t)
	account := budget.New(budget.Limits{USD: new(1.0)})
	for range 3 {
		_, err := stone.Run(budget.With(t.Context(), account), p, stone.Config{RunID: "r", Input: input, Recorder: journal.Keep(j, journal.Options{})})
		if !errors.Is(err, kind.Waiting) {
			t.Fatal(err)
		}
	}
	info, err := j.Find(t.Context(), "r")
	if err != nil || info.Usage != (budget.Total{}) || account.Spent().USD != 0 {
		t.Errorf("%+v, %v, the account has spent %+v", info.Usage, err, account.Spent())
	}
}
