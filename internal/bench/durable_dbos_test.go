//go:build !alone

package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // its store
)

func dbosContext(folder string) (dbos.Context, error) {
	return dbosOpen("sqlite:" + filepath.Join(folder, "dbos.db"))
}

func dbosOpen(address string) (dbos.Context, error) {
	return dbos.NewContext(context.Background(), dbos.Config{
		AppName: "bench", DatabaseURL: address, Logger: slog.New(slog.DiscardHandler), ApplicationVersion: "1",
	})
}

func dbosStep(ctx dbos.Context, v kilo) (kilo, error) {
	return dbos.RunAsStep(ctx, func(context.Context) (kilo, error) { return v.next(), nil }, dbos.WithStepName("step"))
}

func dbosLine(ctx dbos.Context, v kilo) (_ int, err error) {
	for range durableSteps {
		if v, err = dbosStep(ctx, v); err != nil {
			return 0, err
		}
	}
	return v.N, nil
}

// dbosDurable has a workflow for each line. Its store commits with synchronous=NORMAL:
// acknowledged writes may be lost on a power loss.
func dbosDurable(folder string) (func(int) error, func() error, error) {
	work, done, err := dbosFleet("sqlite:" + filepath.Join(folder, "dbos.db"))
	return func(number int) error { return work(number, durableLines) }, done, err
}

// dbosFleet has a workflow for each run.
func dbosFleet(address string) (func(number, runs int) error, func() error, error) {
	ctx, err := dbosOpen(address)
	if err != nil {
		return nil, nil, err
	}
	dbos.RegisterWorkflow(ctx, dbosLine)
	if err := dbos.Launch(ctx); err != nil {
		return nil, nil, err
	}
	work := func(number, runs int) error {
		return together(runs, func(line int) error {
			handle, err := dbos.RunWorkflow(ctx, dbosLine, aKilo, dbos.WithWorkflowID(fmt.Sprintf("run-%d-%d", number, line)))
			if err != nil {
				return err
			}
			n, err := handle.GetResult()
			if err == nil && n != durableSteps {
				err = fmt.Errorf("%d of %d steps ran", n, durableSteps)
			}
			return err
		})
	}
	return work, func() error { return dbos.Shutdown(ctx, time.Minute) }, nil
}

// dbosReached gets the time at which a workflow reaches its first new step.
var dbosReached = make(chan time.Time)

func dbosLong(ctx dbos.Context, steps int) (_ int, err error) {
	v := aKilo
	for range steps {
		if v, err = dbosStep(ctx, v); err != nil {
			return 0, err
		}
	}
	return dbos.RunAsStep(ctx, func(context.Context) (int, error) {
		dbosReached <- time.Now()
		select {} // as if the process ended here
	})
}

// dbosResume recovers the workflow at the start of another context, as another
// process would.
func dbosResume(folder string, steps int) (func() (time.Time, error), error) {
	start := func(run func(dbos.Context) error) (reached time.Time, err error) {
		ctx, err := dbosContext(folder)
		if err != nil {
			return reached, err
		}
		dbos.RegisterWorkflow(ctx, dbosLong)
		if err := dbos.Launch(ctx); err != nil {
			return reached, err
		}
		if err := run(ctx); err != nil {
			return reached, err
		}
		select {
		case reached = <-dbosReached:
		case <-time.After(5 * time.Minute):
			return reached, errors.New("the workflow was not recovered")
		}
		_ = dbos.Shutdown(ctx, time.Millisecond) // it reports that the workflow still runs
		return reached, nil
	}
	_, err := start(func(ctx dbos.Context) error {
		_, err := dbos.RunWorkflow(ctx, dbosLong, steps, dbos.WithWorkflowID("run"))
		return err
	})
	return func() (time.Time, error) { return start(func(dbos.Context) error { return nil }) }, err
}
