package stone_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// A plan made during the run is validated and then run within its grant. Its nodes are kept beside the node of the leaf that ran
// it.
func ExampleBody_RunDynamic() {
	note := dag.NewType[string]("note")
	outcome := dag.NewType[int]("outcome")
	worker := stone.New("worker", outcome, func(ctx context.Context, d dag.DAG) (int, error) {
		d, err := dag.Origin(d)
		if err != nil {
			return 0, err
		}
		plan := stone.Seq("plan", stone.Func0("note", note, func(context.Context) (string, error) { return "done", nil }))
		lane := stone.In(ctx).RunDynamic(plan, d, []string{})
		if lane.Failed() {
			return 0, lane.Cause()
		}
		_, err = stone.In(ctx).Keep(d, lane)
		return lane.Len() - d.Len(), err
	})
	result, err := stone.Run(context.Background(), worker, stone.Config{})
	notes, _ := dag.All(note).From(result.DAG)
	fmt.Println(result.Node.Text(), notes, err)
	// Output: 1 [done] <nil>
}
