package journaltest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// A locked journal fails the first calls that read or write questions.
type locked struct {
	journal.Journal
	ask, answer atomic.Int64 // number of calls that will still fail
}

var errLocked = errors.New("the store is locked by another program: end that program")

func (l *locked) Ask(ctx context.Context, q journal.Question) (journal.Question, error) {
	if l.ask.Add(-1) >= 0 {
		return q, errLocked
	}
	return l.Journal.Ask(ctx, q)
}

func (l *locked) Answer(ctx context.Context, run, path string, a ask.Answer) error {
	if l.answer.Add(-1) >= 0 {
		return errLocked
	}
	return l.Journal.Answer(ctx, run, path, a)
}

// testQuestionTrouble checks that an error of the store does not count as an answer, is not handled by a Rescue, and does not lose
// a lane: the run ends, and asks again when it is resumed.
func testQuestionTrouble(t *testing.T, j tested) {
	sure := stone.Ask("sure", dag.Nothing, reply, func(struct{}) string { return "really?" },
		stone.Retry{Attempts: 3, Kinds: []kind.Kind{kind.Error}})
	yes := stone.Func0("default", reply, func(context.Context) (stone.Answer, error) { return stone.Answer{Response: "yes"}, nil })
	read := stone.Func0("read", plan, func(context.Context) ([]int, error) { return []int{0, 1}, nil })
	count := stone.Reduce(stone.Func("count", dag.All(reply), final, func(context.Context, []stone.Answer) (string, error) { return "ok", nil }))
	for name, p := range map[string]stone.Ashlar{
		"rescue": stone.Rescue("rescued", sure, yes),
		"lanes":  stone.Seq("all", read, stone.Map("each", plan, item, sure), count),
	} {
		for _, answering := range []bool{false, true} {
			cfg := config()
			cfg.RunID = name
			store := &locked{Journal: j}
			store.ask.Store(100)
			if answering {
				cfg.RunID += "-answering"
				store.ask.Store(0)
				store.answer.Store(100)
				cfg.Frontend = person(func(context.Context, ask.Question) (string, error) { return "no", nil })
			}
			_, err := stone.Run(t.Context(), p, kept(cfg, store, journal.Options{}))
			if f, ok := errors.AsType[*stone.Failure](err); !ok || f.Kind != kind.Recorder || !errors.Is(err, errLocked) {
				t.Errorf("%s: %v, want %s because the store is locked", cfg.RunID, err, kind.Recorder)
			}
			steps, err := j.Steps(t.Context(), cfg.RunID)
			must(t, err)
			for _, s := range steps {
				if s.Name == "sure" && s.Recorded {
					t.Errorf("%s: recorded of the question: %+v", cfg.RunID, s)
				}
			}
			cfg.Frontend = person(func(context.Context, ask.Question) (string, error) { return "no", nil })
			result, err := stone.Run(t.Context(), p, kept(cfg, j.open(), journal.Options{}))
			must(t, err)
			answers, err := dag.All(reply).From(result.DAG)
			must(t, err)
			if want := map[string]int{"rescue": 1, "lanes": 2}[name]; len(answers) != want || answers[0].Response != "no" {
				t.Errorf("%s: resumed, it has the answers %+v, want %d times no", cfg.RunID, answers, want)
			}
		}
	}
}
