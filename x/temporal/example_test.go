package temporal_test

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/sdk/client"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/x/temporal"
)

var summary = dag.NewType[string]("summary")

// open connects to the servers that the examples use.
func open(ctx context.Context) (client.Client, journal.Journal, stone.Ashlar, error) {
	pipeline := stone.Func0("summarise", summary, func(context.Context) (string, error) { return "…", nil })
	c, err := client.NewLazyClient(client.Options{HostPort: "temporal:7233"})
	if err != nil {
		return nil, nil, pipeline, err
	}
	db, err := postgres.Open(ctx, "postgres://stone@db/stone", postgres.Options{})
	return c, db, pipeline, err
}

// One worker of a pool executes the run.
func ExampleStart() {
	ctx := context.Background()
	c, db, pipeline, err := open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = temporal.Start(ctx, c, db, temporal.Run{ID: "nightly", Pipeline: pipeline, Pool: "models"})
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := temporal.Wait(ctx, c, "nightly")
	fmt.Println(state, err)
}

// The chunks of a run are processed by all workers of a pool.
func ExampleChildren() {
	ctx := context.Background()
	c, db, _, err := open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	chunks, items := dag.NewType[[][]string]("chunks"), dag.NewType[[]string]("items")
	labels, joined := dag.NewType[[]string]("labels"), dag.NewType[[]string]("joined")
	chunk := stone.Func("classify", items, labels, func(_ context.Context, texts []string) ([]string, error) { return texts, nil })
	join := stone.Func("join", dag.All(labels), joined, func(_ context.Context, all [][]string) ([]string, error) { return slices.Concat(all...), nil })
	workers := temporal.Children(c, db, "models")
	classify := journal.Elsewhere("classify", chunk, budget.Limits{USD: new(1.0)}, workers)
	pipeline := stone.Seq("all",
		stone.Map("chunks", chunks, items, classify, stone.AllLanes()),
		stone.Reduce(join),
	)
	run := temporal.Run{ID: "nightly", Pipeline: pipeline, Input: dag.Of(chunks.With([][]string{{"a", "b"}, {"c"}})), Pool: "models"}
	fmt.Println(temporal.Start(ctx, c, db, run))
}
