package bench

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // its store
)

func dbosContext(folder string) (dbos.Context, error) {
	return dbos.NewContext(context.Background(), dbos.Config{
		AppName: "bench", DatabaseURL: "sqlite:" + filepath.Join(folder, "dbos.db"), Logger: slog.New(slog.DiscardHandler), ApplicationVersion: "1",
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
	ctx, err := dbosContext(folder)
	if err != nil {
		return nil, nil, err
	}
	dbos.RegisterWorkflow(ctx, dbosLine)
	if err := dbos.Launch(ctx); err != nil {
		return nil, nil, err
	}
	work := func(number int) error {
		return atOnce(func(line int) error {
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
