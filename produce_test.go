package stone_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/finding"
	"github.com/stonelayer/stone/kind"
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

// opener is a RunRecorder that notes its calls.
type opener struct {
	step.Recorder
	openErr, beginErr error
	calls             []string
}

func (o *opener) OpenRun(_ context.Context, _ stone.Ashlar, cfg stone.Config) (stone.RunRecord, error) {
	o.calls = append(o.calls, "open")
	cfg.RunID, cfg.Recorder = "opened", nil
	return stone.RunRecord{
		Config: cfg,
		Begin: func(ctx context.Context) (context.Context, error) {
			o.calls = append(o.calls, "begin")
			return ctx, o.beginErr
		},
		End: func(_ stone.Result, err error) error {
			o.calls = append(o.calls, "end")
			return err
		},
	}, o.openErr
}

func TestRunRecorder(t *testing.T) {
	full := errors.New("the disk is full")
	letters := dag.Of(asked.With("four"))
	for name, c := range map[string]struct {
		opener *opener
		input  dag.DAG
		calls  string // "check" is the validation, "body" the leaf
		err    func(error) bool
	}{
		"a run":               {&opener{}, letters, "open check begin body end", func(err error) bool { return err == nil }},
		"an invalid pipeline": {&opener{}, dag.DAG{}, "open check end", func(err error) bool { return errors.As(err, new(*finding.Invalid)) }},
		"open fails":          {&opener{openErr: full}, letters, "open", func(err error) bool { return errors.Is(err, full) }},
		"begin fails":         {&opener{beginErr: full}, letters, "open check begin end", func(err error) bool { return errors.Is(err, full) }},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.opener
			p := stone.Func("count", asked, length, func(_ context.Context, s string) (int, error) {
				o.calls = append(o.calls, "body")
				return len(s), nil
			}, stone.Detail{Check: func() []finding.Finding { o.calls = append(o.calls, "check"); return nil }})
			res, err := stone.Run(t.Context(), p, stone.Config{Recorder: o, Input: c.input})
			if got := strings.Join(o.calls, " "); got != c.calls || !c.err(err) || res.RunID != "opened" || res.DAG.Len() < c.input.Len() {
				t.Errorf("got %q with run %q, %d nodes and %v; want %q", got, res.RunID, res.DAG.Len(), err, c.calls)
			}
		})
	}
}

func TestRecorderThatWrapsTheRun(t *testing.T) {
	w := &wrapper{}
	res, err := stone.Run(t.Context(), countLetters(), stone.Config{Recorder: w})
	if n, _ := length.From(res.DAG); err != nil || n != 5 || res.RunID != "wrapped" || w.runs != 1 || w.result.RunID != res.RunID {
		t.Errorf("got %+v, %v after %d runs: want the length of the name of the pipeline", res, err, w.runs)
	}
}

// An input that cannot be written is what the run reports, not what it lacks then.
func TestInputWithoutJSON(t *testing.T) {
	number, half := dag.NewType[float64]("number"), dag.NewType[float64]("half")
	ran := false
	p := stone.Func("halve", number, half, func(_ context.Context, n float64) (float64, error) { ran = true; return n / 2, nil })
	res, err := stone.Run(t.Context(), p, stone.Config{Input: dag.Of(number.With(math.Inf(1)))})
	failure, ok := errors.AsType[*stone.Failure](err)
	if !ok || failure.Kind != kind.BadContent || ran || res.DAG.Latest().Type() != "failure" {
		t.Errorf("got %v (ran %v), want bad-content before anything ran", err, ran)
	}
	if _, err := stone.Run(t.Context(), p, stone.Config{Input: dag.Of(number.With(1))}); err != nil || !ran {
		t.Errorf("got %v, ran %v", err, ran)
	}
}
