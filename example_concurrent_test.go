package stone_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// Steps that do not read each other's results run at the same time. The DAG is the same as with Seq.
func ExampleFlow() {
	page := dag.NewType[string]("page")
	words := dag.NewType[int]("words")
	title := dag.NewType[string]("title")
	line := dag.NewType[string]("line")
	p := stone.Flow("summary",
		stone.Func0("read", page, func(context.Context) (string, error) { return "stone: a wall", nil }),
		stone.Func("count", page, words, func(_ context.Context, s string) (int, error) { return len(strings.Fields(s)), nil }),
		stone.Func("title", page, title, func(_ context.Context, s string) (string, error) {
			before, _, _ := strings.Cut(s, ":")
			return before, nil
		}),
		stone.Func2("line", title, words, line, func(_ context.Context, title string, n int) (string, error) {
			return fmt.Sprintf("%s, %d words", title, n), nil
		}),
	)
	result, err := stone.Run(context.Background(), p, stone.Config{})
	fmt.Println(result.Node.Text(), err)
	// Output: stone, 3 words <nil>
}
