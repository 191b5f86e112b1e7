package stone_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

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
