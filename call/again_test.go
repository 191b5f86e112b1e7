package call_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// A run that failed without an answer asks again when it is resumed; who had
// answered is not asked again.
func TestWhatFailedIsAskedAgain(t *testing.T) {
	type text struct {
		Text string `json:"text"`
	}
	var first, second atomic.Int32
	var up atomic.Bool
	app := &call.Applicator{Registry: call.NewRegistry(
		call.Func(call.Metadata{ID: "post/open"}, func(context.Context, map[string]any) (text, error) {
			first.Add(1)
			return text{"opened"}, nil
		}),
		call.Func(call.Metadata{ID: "post/sort"}, func(context.Context, map[string]any) (text, error) {
			second.Add(1)
			if !up.Load() {
				return text{}, &call.Error{Type: reasons.Unavailable, Message: "closed today"}
			}
			return text{"sorted"}, nil
		}),
	)}
	opened, sorted := dag.NewType[text]("opened"), dag.NewType[text]("sorted")
	p := stone.Seq("post",
		call.New("open", opened, call.Spec{Applicator: app, Intent: "mail/open", Cap: "post/open"}),
		call.New("sort", sorted, call.Spec{Applicator: app, Intent: "mail/sort", Cap: "post/sort"}))

	memory := memdb.New(t)
	run := func() (stone.Result, error) {
		return stone.Run(context.Background(), p, stone.Config{RunID: "monday", Recorder: journal.Keep(memory, journal.Options{})})
	}
	if _, err := run(); err == nil {
		t.Fatal("the first run succeeded")
	}
	up.Store(true)
	result, err := run()
	if err != nil {
		t.Fatalf("resumed: %v", err)
	}
	if got, _ := sorted.From(result.DAG); got.Text != "sorted" {
		t.Errorf("got %+v", got)
	}
	if first.Load() != 1 || second.Load() != 2 {
		t.Errorf("asked %d and %d times, want once and twice", first.Load(), second.Load())
	}
}

// So does one whose check could not be made: the answer is not paid for again.
func TestWhoCouldNotCheckIsAskedAgain(t *testing.T) {
	var asked, checked atomic.Int32
	r := call.NewRegistry(
		call.Func(call.Metadata{ID: "post/write"}, func(context.Context, any) (string, error) { asked.Add(1); return "dear", nil }),
		call.Func(call.Metadata{ID: "post/proof"}, func(context.Context, any) (bool, error) {
			if checked.Add(1) == 1 {
				return false, &call.Error{Type: reasons.Unavailable, Message: "closed today"}
			}
			return true, nil
		}),
	)
	app := &call.Applicator{Registry: r, Checks: map[string]call.Check{"proof": call.CheckBy("proof", r, "post/proof")}}
	p := call.New("write", dag.NewType[string]("letter"), call.Spec{Applicator: app, Intent: "mail/write", Cap: "post/write", Done: call.Done{Must: []string{"proof"}}})
	memory := memdb.New(t)
	run := func() error {
		_, err := stone.Run(context.Background(), p, stone.Config{RunID: "tuesday", Recorder: journal.Keep(memory, journal.Options{})})
		return err
	}
	if err := run(); err == nil {
		t.Fatal("the first run succeeded")
	}
	if err := run(); err != nil || asked.Load() != 1 || checked.Load() != 2 {
		t.Errorf("resumed: %v; asked %d times and checked %d times, want once and twice", err, asked.Load(), checked.Load())
	}
}

// A call whose run is resumed with nothing left on its account goes the way that it
// went before: its candidates have answered, and cost nothing more.
func TestWhatWasPaidIsNotPaidAgain(t *testing.T) {
	for _, strategy := range []string{call.Cascade, call.Tournament, call.Race} {
		t.Run(strategy, func(t *testing.T) {
			var asked atomic.Int32
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			answer := func(id string, text string) call.Capability {
				return call.Func(call.Metadata{ID: id, Intents: []string{"mail/write"}, Cost: call.Cost{USD: 1}}, func(context.Context, any) (string, error) {
					asked.Add(1)
					return text, nil
				})
			}
			r := call.NewRegistry(answer("post/a", "short"), answer("post/b", "long enough"))
			var stop atomic.Bool
			stop.Store(true)
			app := &call.Applicator{Registry: r, Checks: map[string]call.Check{"long": func(ctx context.Context, s call.Subject) error {
				if string(s.Out) == `"short"` {
					return errors.New("too short")
				}
				if stop.Load() { // as when the process ends after the answers are there
					for strategy != call.Cascade && asked.Load() < 2 {
						runtime.Gosched()
					}
					cancel()
					return ctx.Err()
				}
				return nil
			}}}
			p := call.New("write", dag.NewType[string]("letter"), call.Spec{Applicator: app, Intent: "mail/write",
				Dispatch: call.Dispatch{Strategy: strategy}, Done: call.Done{Must: []string{"long"}}})
			memory := memdb.New(t)
			run := func(ctx context.Context) error {
				ctx = budget.With(ctx, budget.New(budget.Limits{USD: new(2.0), Roundtrips: new(2)}))
				_, err := stone.Run(ctx, p, stone.Config{RunID: "wednesday", Recorder: journal.Keep(memory, journal.Options{})})
				return err
			}
			if err := run(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("the first run ended with %v", err)
			}
			stop.Store(false)
			if err := run(context.Background()); err != nil || asked.Load() != 2 {
				t.Errorf("resumed: %v; %d were asked, want 2", err, asked.Load())
			}
		})
	}
}

// A check that was added is noticed before anything runs: what is recorded has not
// passed it.
func TestChangedChecksAreNoticed(t *testing.T) {
	write := func(context.Context, any) (string, error) { return "letter", nil }
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "post/write"}, write))}
	memory := memdb.New(t)
	for i, must := range [][]string{nil, nil, {"non-empty"}} {
		p := call.New("write", dag.NewType[string]("letter"), call.Spec{Applicator: app, Intent: "mail/write", Cap: "post/write", Done: call.Done{Must: must}})
		_, err := stone.Run(t.Context(), p, stone.Config{RunID: "friday", Recorder: journal.Keep(memory, journal.Options{})})
		changed, noticed := errors.AsType[*journal.ChangedError](err)
		if noticed != (i == 2) || noticed && !strings.HasPrefix(changed.Changes[0], "the settings of write changed") || !noticed && err != nil {
			t.Errorf("run %d with the checks %q: %v", i, must, err)
		}
	}
}

// What a failed attempt has cost counts, also after it was tried again.
func TestFailedAttemptsAreCounted(t *testing.T) {
	var asked atomic.Int32
	wrote := func(_ context.Context, req *call.Request) (*call.Reply, error) {
		reply := &call.Reply{Out: call.JSON(`"letter"`), Usage: call.Usage{Usage: budget.Usage{InputTokens: 10, USD: 0.25}}}
		if asked.Add(1) == 1 {
			return reply, &call.Error{Type: reasons.Unavailable, Message: "cut off in mid-answer"}
		}
		return reply, nil
	}
	app := &call.Applicator{Registry: call.NewRegistry(call.Capability{Metadata: call.Metadata{ID: "post/write", Cost: call.Cost{USD: 1}}, Invoke: wrote})}
	p := call.New("write", dag.NewType[string]("letter"), call.Spec{Applicator: app, Intent: "mail/write", Cap: "post/write"})
	memory := memdb.New(t)
	for i, want := range []budget.Usage{{InputTokens: 10, USD: 0.25}, {InputTokens: 20, USD: 0.5}} {
		account := budget.New(budget.Limits{USD: new(5.0)})
		_, err := stone.Run(budget.With(t.Context(), account), p, stone.Config{RunID: "thursday", Recorder: journal.Keep(memory, journal.Options{})})
		if (err == nil) != (i == 1) {
			t.Errorf("run %d: %v", i, err)
		}
		info, err := memory.Find(t.Context(), "thursday")
		if err != nil || info.Usage.Usage != want {
			t.Errorf("run %d used %+v, %v; want %+v", i, info.Usage, err, want)
		}
		if got := account.Spent(); got.USD != want.USD || got.Tokens != want.InputTokens || got.Roundtrips != i+1 {
			t.Errorf("run %d: the account has spent %+v, want %+v", i, got, want)
		}
	}
}

// A service that answers a known Key with its first reply is asked anew once a step before it was done again: the request at
// the same place is another one. What is asked again after a crash has its first Key.
func TestKeyFollowsWhatIsAsked(t *testing.T) {
	word, letter := dag.NewType[string]("word"), dag.NewType[string]("letter")
	said, crash := "dear", true
	replies, keys := map[string]string{}, []string{}
	service := call.Capability{Metadata: call.Metadata{ID: "post/write"}, Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
		keys = append(keys, req.Key)
		if replies[req.Key] == "" {
			replies[req.Key] = string(req.Input)
		}
		if crash {
			crash = false
			return nil, kind.Waiting // the reply is lost
		}
		return &call.Reply{Out: call.JSON(replies[req.Key])}, nil
	}}
	app := &call.Applicator{Registry: call.NewRegistry(service)}
	p := stone.Seq("post", stone.Func0("word", word, func(context.Context) (string, error) { return said, nil }),
		call.New("write", letter, call.Spec{Applicator: app, Intent: "mail/write", Cap: "post/write", Input: call.From(word)}))
	memory := memdb.New(t)
	run := func(again ...string) string {
		t.Helper()
		result, err := stone.Run(t.Context(), p, stone.Config{RunID: "sunday", Recorder: journal.Keep(memory, journal.Options{Again: again})})
		if err != nil {
			return err.Error()
		}
		return result.Node.JSON()
	}
	lost := run()
	first := run()
	said = "hello"
	second, third := run("post/word"), run("post/write")
	if first != `"dear"` || second != `"hello"` || third != `"hello"` {
		t.Errorf("after %q the answers are %s, %s and %s", lost, first, second, third)
	}
	if len(keys) != 4 || keys[0] != keys[1] || keys[1] == keys[2] || keys[2] == keys[3] {
		t.Errorf("the keys are %q", keys)
	}
}
