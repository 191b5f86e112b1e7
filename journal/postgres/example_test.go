package postgres_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
)

// Every process of a service can run this: one of them has the run, and another resumes it
// if that one dies.
func Example() {
	report := dag.NewType[string]("report")
	nightly := stone.Func0("report", report, func(context.Context) (string, error) { return "all well", nil })
	run := func(ctx context.Context) error {
		db, err := postgres.Open(ctx, "postgres://stone@db.example.com/stone?sslmode=verify-full", postgres.Options{})
		if err != nil {
			return err
		}
		defer db.Close()
		result, err := stone.Run(ctx, nightly, stone.Config{RunID: "nightly", Recorder: journal.Keep(db, journal.Options{})})
		if err == nil {
			fmt.Println(result.Node.Text())
		}
		return err
	}
	_ = run
}
