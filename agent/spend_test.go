package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

var spentOn = dag.NewType[agent.Text]("spent-on")

// looping is an agent that calls a missing tool, turn after turn, each of 30 tokens.
func looping(wait time.Duration) stone.Ashlar {
	in, out := 10, 20
	model := script.Func(func(int, *llm.Request) script.Answer {
		a := script.Call("nothing", `{}`)
		a.Reply.Usage = llm.Usage{InputTokens: &in, OutputTokens: &out}
		a.Wait = wait
		return a
	})
	return agent.New("loop", spentOn, model, agent.Config{User: agent.Say("go on"), MaxTurns: 50})
}

func TestAgentsDrawOnTheAccount(t *testing.T) {
	for _, test := range []struct {
		limits budget.Limits
		want   string        // the limit that ended it
		spent  budget.Amount // by then
	}{
		{budget.Limits{Roundtrips: new(3)}, "max-roundtrips", budget.Amount{Roundtrips: 3, Tokens: 90}},
		{budget.Limits{Tokens: new(100)}, "max-tokens", budget.Amount{Roundtrips: 4, Tokens: 120}},
	} {
		account := budget.New(test.limits)
		_, err := stone.Run(budget.With(context.Background(), account), looping(0), stone.Config{})
		if exhausted, ok := errors.AsType[*budget.ExhaustedError](err); !ok || exhausted.Limit != test.want {
			t.Errorf("%+v ended with %v, want %s exhausted", test.limits, err, test.want)
		}
		if account.Spent() != test.spent {
			t.Errorf("%+v: spent %+v, want %+v", test.limits, account.Spent(), test.spent)
		}
	}
}

func TestAgentsEndWithTheTimeOfTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := budget.With(context.Background(), budget.New(budget.Limits{Latency: new(3500 * time.Millisecond)}))
		start := time.Now()
		_, err := stone.Run(ctx, looping(time.Second), stone.Config{})
		if f, ok := errors.AsType[*stone.Failure](err); !ok || f.Kind != budget.Kind {
			t.Errorf("ended with %v, want kind %s", err, budget.Kind)
		}
		if took := time.Since(start); took != 3500*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// A resumed run is charged the same as a run without interruption.
func TestReplayedTurnsAreCharged(t *testing.T) {
	memory := memdb.New(t)
	spent := func(interruptAt int) budget.Amount {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		one := 1
		model := script.Func(func(_ int, req *llm.Request) script.Answer {
			turn := (len(req.Messages) + 1) / 2 // each turn adds an answer and a result
			if turn == interruptAt {
				cancel()
			}
			a := script.Call("nothing", `{}`)
			if turn == 4 {
				a = script.Text("done")
			}
			a.Reply.Usage = llm.Usage{InputTokens: &one}
			return a
		})
		account := budget.New(budget.Limits{})
		p := agent.New("four", spentOn, model, agent.Config{User: agent.Say("go on"), MaxTurns: 9})
		stone.Run(budget.With(ctx, account), p, stone.Config{RunID: "r", Recorder: memory})
		return account.Spent()
	}
	if got := spent(3).Roundtrips; got > 3 {
		t.Fatalf("an interrupted run made %d turns, want at most 3", got)
	}
	if got, want := spent(0), (budget.Amount{Roundtrips: 4, Tokens: 4}); got != want {
		t.Errorf("resumed, it has spent %+v, want %+v", got, want)
	}
}

// The account bounds the turns of all resumes together.
func TestTheAccountHoldsForAllResumes(t *testing.T) {
	memory := memdb.New(t)
	for i := range 4 {
		account := budget.New(budget.Limits{Roundtrips: new(3)}) // as in another process
		_, err := stone.Run(budget.With(t.Context(), account), looping(0), stone.Config{RunID: "r", Recorder: journal.Keep(memory, journal.Options{})})
		if _, ok := errors.AsType[*budget.ExhaustedError](err); !ok {
			t.Errorf("resumed %d times: %v, want that the account is exhausted", i, err)
		}
	}
	info, err := memory.Find(t.Context(), "r")
	if err != nil || info.Usage.Usage != (budget.Usage{InputTokens: 30, OutputTokens: 60}) {
		t.Errorf("%+v was used, %v; want three turns", info.Usage, err)
	}
}
