package stone_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/step"
)

// remembers is a recorder of nothing whose other process has recorded the steps with some paths.
type remembers struct{ paths []string }

func (remembers) Do(ctx context.Context, _ step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	return work(ctx)
}

func (r remembers) Has(key step.Key) bool {
	return key.RunID == "r" && key.Kind == "step" && key.Name != "" && slices.Contains(r.paths, key.Path)
}

// A body is told which of its steps the recorder has, and, in a further attempt, which an earlier
// attempt has made.
func TestBodyRecorded(t *testing.T) {
	type answer struct{ recorded, repeated bool }
	var got []answer
	look := func(ctx context.Context, name string) {
		recorded, repeated := stone.In(ctx).Recorded(name)
		got = append(got, answer{recorded, repeated})
	}
	out := dag.NewType[int]("out")
	tried := 0
	p := stone.Seq("all", stone.Func0("leaf", out, func(ctx context.Context) (int, error) {
		for _, name := range []string{"a/b", "new"} {
			look(ctx, name)
		}
		tried++
		if _, err := stone.Step(ctx, "new", 1, func(ctx context.Context, _ int) (int, error) {
			look(ctx, "new") // a step of the step
			return 1, nil
		}); err != nil {
			return 0, err
		}
		look(ctx, "new") // made by this attempt
		if tried == 1 {
			return 0, errors.New("once more")
		}
		return 1, nil
	}, stone.Retry{Attempts: 2}))
	look(t.Context(), "a/b")
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: remembers{[]string{"all/leaf/a%2Fb", "all/leaf~2/a%2Fb"}}}); err != nil {
		t.Fatal(err)
	}
	want := []answer{
		{false, false}, // outside a run
		{true, false}, {false, false}, {false, false}, {false, false},
		{true, false}, {false, true}, {false, true}, // the second attempt takes the step from the first
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
