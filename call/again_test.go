package call_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// A run that failed because nobody answered asks again when it is resumed; who had
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
				return text{}, &call.Error{Type: call.Unavailable, Message: "closed today"}
			}
			return text{"sorted"}, nil
		}),
	)}
	opened, sorted := dag.NewType[text]("opened"), dag.NewType[text]("sorted")
	p := stone.Seq("post",
		call.New("open", opened, call.Spec{Applicator: app, Intent: "mail/open", Cap: "post/open"}),
		call.New("sort", sorted, call.Spec{Applicator: app, Intent: "mail/sort", Cap: "post/sort"}))

	var memory journal.Memory
	run := func() (stone.Result, error) {
		return journal.Run(context.Background(), p, stone.Config{RunID: "monday"}, &memory, journal.Options{})
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
				return false, &call.Error{Type: call.Unavailable, Message: "closed today"}
			}
			return true, nil
		}),
	)
	app := &call.Applicator{Registry: r, Checks: map[string]call.Check{"proof": call.CheckBy("proof", r, "post/proof")}}
	p := call.New("write", dag.NewType[string]("letter"), call.Spec{Applicator: app, Intent: "mail/write", Cap: "post/write", Done: call.Done{Must: []string{"proof"}}})
	var memory journal.Memory
	run := func() error {
		_, err := journal.Run(context.Background(), p, stone.Config{RunID: "tuesday"}, &memory, journal.Options{})
		return err
	}
	if err := run(); err == nil {
		t.Fatal("the first run succeeded")
	}
	if err := run(); err != nil || asked.Load() != 1 || checked.Load() != 2 {
		t.Errorf("resumed: %v; asked %d times and checked %d times, want once and twice", err, asked.Load(), checked.Load())
	}
}
