package stone_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// spent is the error of a body that met the end of what the run may spend.
type spent struct{}

func (spent) Error() string       { return "nothing is left" }
func (spent) FailureKind() string { return "spent" }
func (spent) EndsRun() bool       { return true }

// lanesOf fails in the lanes for which fails returns an error.
func lanesOf(n int, fails func(int) error, opts ...stone.FanOption) stone.Ashlar {
	return stone.Seq("s", numbers(n), stone.Map("m", list, number, stone.Func("f", number, word, func(_ context.Context, n int) (string, error) {
		return fmt.Sprint(n), fails(n)
	}), opts...), last)
}

func TestLostLanesAreCounted(t *testing.T) {
	even := func(n int) error {
		if n%2 == 0 {
			return errors.New("even")
		}
		return nil
	}
	for _, tt := range []struct {
		name string
		p    stone.Ashlar
		want string
	}{
		{"none", lanesOf(4, func(int) error { return nil }), ""},
		{"some", lanesOf(5, even), "3 of 5 lanes lost"},
		{"of several fan-outs those that lost some", stone.Seq("all", stone.Seq("one", lanesOf(5, even)), stone.Seq("again", numbers(7), stone.Map("n", list, number, say("ok", "x")), last), stone.Seq("two", lanesOf(2, even))), "4 of 7 lanes lost"},
		{"too many", lanesOf(5, even, stone.AllLanes()), "3 of 5 lanes lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result, _ := stone.Run(t.Context(), tt.p, stone.Config{})
			if got := dag.CountLost(result.Lost).String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// An error of the run is no failure of the lane that met it: the run ends, and the
// resumed run does that lane.
func TestEndOfRunIsNoLostLane(t *testing.T) {
	left := false
	p := lanesOf(4, func(n int) error {
		if n >= 2 && !left {
			return spent{}
		}
		return nil
	})
	l := newLedger(t)
	result, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: l})
	if f := wantKind(t, err, "spent"); f.Path != "s/m[2]/f" && f.Path != "s/m[3]/f" {
		t.Errorf("the run ended at %s", f.Path)
	}
	if len(result.Lost) > 0 {
		t.Errorf("lost %v", result.Lost)
	}
	left = true
	l.nextRun()
	result, err = stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: l})
	if err != nil || result.Node.JSON() != `"4"` || len(result.Lost) > 0 {
		t.Errorf("resumed, it ended with %v, %v, %v; want all 4 lanes", result.Node, err, result.Lost)
	}
}

// A Rescue is a word of its own for it; resumed, the run goes the same way.
func TestRescuedEndOfRun(t *testing.T) {
	left := false
	p := stone.Rescue("r", lanesOf(4, func(n int) error {
		if n >= 2 && !left {
			return spent{}
		}
		return nil
	}), say("instead", "healed"))
	l := newLedger(t)
	first, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: l})
	if err != nil || first.Node.JSON() != `"healed"` {
		t.Fatalf("got %v, %v", first.Node, err)
	}
	left = true
	l.nextRun()
	again, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: l})
	if err != nil || again.Node.ID() != first.Node.ID() {
		t.Errorf("resumed, it went another way: %v, %v", again.Node, err)
	}
}

// A waiting lane is not lost, and the nodes of the others are kept.
func TestWaitingLaneIsNotLost(t *testing.T) {
	question := stone.Ask("ask", dag.Nothing, dag.NewType[stone.Answer]("answer"), func(struct{}) string { return "Well?" })
	other := errors.New("boom")
	p := stone.Seq("s", numbers(3), stone.Map("m", list, number, stone.Seq("lane",
		stone.Func("f", number, word, func(_ context.Context, n int) (string, error) {
			if n == 0 {
				return "", other
			}
			return "x", nil
		}), question)), last)
	result, err := stone.Run(t.Context(), p, stone.Config{Frontend: frontend(func(context.Context, ask.Question) (string, error) { return "", kind.Waiting })})
	wantKind(t, err, kind.Waiting)
	if got := dag.CountLost(result.Lost).String(); got != "1 of 3 lanes lost" {
		t.Errorf("got %q, want the one that failed", got)
	}
	if words, _ := dag.All(word).From(result.DAG); len(words) != 2 {
		t.Errorf("the lanes that wait left %q", words)
	}
}

// An answer would not help if too many lanes have failed: the run fails at once, and one
// resume retries the lane and asks again.
func TestHopelessQuestion(t *testing.T) {
	question := stone.Ask("ask", dag.Nothing, dag.NewType[stone.Answer]("answer"), func(struct{}) string { return "Well?" })
	broken, answers := true, false
	p := stone.Seq("s", numbers(2), stone.Map("m", list, number, stone.Seq("lane",
		stone.Func("f", number, word, func(_ context.Context, n int) (string, error) {
			if n == 0 && broken {
				return "", errors.New("boom")
			}
			return "x", nil
		}), question), stone.AllLanes()), last)
	j := memdb.New(t)
	run := func(resume bool) error {
		_, err := stone.Run(t.Context(), p, stone.Config{
			RunID: "r", Recorder: journal.Keep(j, journal.Options{Resume: resume}),
			Frontend: frontend(func(context.Context, ask.Question) (string, error) {
				if !answers {
					return "", kind.Waiting
				}
				return "yes", nil
			}),
		})
		return err
	}
	wantKind(t, run(false), kind.LanesFailed)
	broken = false
	wantKind(t, run(true), kind.Waiting)
	answers = true
	if err := run(true); err != nil {
		t.Error(err)
	}
}
