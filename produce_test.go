package stone_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/finding"
	"github.com/stonelayer/stone/step"
)

var (
	asked  = dag.NewType[string]("asked")
	length = dag.NewType[int]("length")
)

func countLetters() stone.Ashlar {
	return stone.Func("count", asked, length, func(_ context.Context, s string) (int, error) { return len(s), nil })
}

func TestProduce(t *testing.T) {
	cfg := stone.Config{Input: dag.Of(asked.With("four"))}
	if n, err := stone.Produce(t.Context(), countLetters(), length, cfg); n != 4 || err != nil {
		t.Errorf("got %d, %v, want 4", n, err)
	}
	if all, err := stone.Produce(t.Context(), countLetters(), dag.All(length), cfg); len(all) != 1 || err != nil {
		t.Errorf("got %v, %v, want one", all, err)
	}
	if s, err := stone.Produce(t.Context(), countLetters(), asked, cfg); s != "four" || err != nil {
		t.Errorf("got %q, %v, want what is in the input", s, err)
	}
	if p, err := stone.Produce(t.Context(), countLetters(), dag.Maybe(dag.NewType[int]("other")), cfg); p != nil || err != nil {
		t.Errorf("got %v, %v, want nil", p, err)
	}
}

// Produce reports a type that p cannot produce before anything runs.
func TestProduceOfWhatNobodyProduces(t *testing.T) {
	ran := false
	p := stone.Func0("count", length, func(context.Context) (int, error) { ran = true; return 1, nil })
	_, err := stone.Produce(t.Context(), p, dag.NewType[int]("lenght"), stone.Config{})
	invalid, ok := errors.AsType[*finding.Invalid](err)
	if !ok || ran || invalid.Findings[0].Type != "missing-producer" || invalid.Findings[0].Suggestion != "length" {
		t.Errorf("got %v (ran %v), want a finding with a suggestion", err, ran)
	}
}

// wrapper is a Recorder that gives a run its id and its input and keeps its result.
type wrapper struct {
	step.Recorder
	result stone.Result
	err    error
	runs   int
}

func (w *wrapper) OpenRun(_ context.Context, p stone.Ashlar, cfg stone.Config) (stone.RunRecord, error) {
	w.runs++
	cfg.RunID, cfg.Recorder = "wrapped", nil
	cfg.Input = dag.Of(asked.With(p.Name()))
	return stone.RunRecord{Config: cfg, End: func(result stone.Result, err error) error {
		w.result, w.err = result, err
		return err
	}}, nil
}

func TestRecorderThatWrapsTheRun(t *testing.T) {
	w := &wrapper{}
	res, err := stone.Run(t.Context(), countLetters(), stone.Config{Recorder: w})
	if n, _ := length.From(res.DAG); err != nil || n != 5 || res.RunID != "wrapped" || w.runs != 1 || w.result.RunID != res.RunID {
		t.Errorf("got %+v, %v after %d runs: want the length of the name of the pipeline", res, err, w.runs)
	}
}
