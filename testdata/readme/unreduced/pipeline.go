// Package unreduced is the pipeline that the README shows refused: nothing combines the
// lanes of its fan-out.
package unreduced

import (
	"context"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

var (
	poem = dag.NewType[[]string]("poem")
	line = dag.NewType[string]("line")
	loud = dag.NewType[string]("loud")
	text = dag.NewType[string]("text")
)

func Pipeline() stone.Ashlar {
	return stone.Seq("shout",
		stone.Func0("read", poem, func(context.Context) ([]string, error) { return []string{"every step"}, nil }),
		stone.Map("each-line", poem, line, stone.Func("upper", line, loud, func(_ context.Context, s string) (string, error) {
			return strings.ToUpper(s), nil
		}), stone.AllLanes()),
		stone.Func("join", dag.All(loud), text, func(_ context.Context, s []string) (string, error) {
			return strings.Join(s, "\n"), nil
		}),
	)
}
