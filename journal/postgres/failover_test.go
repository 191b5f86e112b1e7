package postgres

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/step"
)

// replicated returns a server with a standby, a database on them, and its address on both.
func replicated(t *testing.T) (primary, standby *pgtest.Server, address, both string) {
	t.Helper()
	primary = pgtest.New(t, "fsync=off", "wal_level=replica", "max_wal_senders=4")
	address = primary.Database(t)
	standby = primary.Standby(t, "fsync=off")
	return primary, standby, address, pgtest.On(t, address, primary, standby)
}

// With synchronous replication, a failover to the standby loses no result and repeats no work: the
// run continues on the new primary.
func TestSynchronousFailover(t *testing.T) {
	need.Time(t)
	primary, standby, address, both := replicated(t)
	pgtest.Exec(t, address, "ALTER SYSTEM SET synchronous_standby_names = 'standby'")
	pgtest.Exec(t, address, "SELECT pg_reload_conf()")
	db := open(t, both, Options{Lease: time.Minute, Retry: time.Minute})
	const steps, before = 200, 60
	calls := make([]atomic.Int64, steps)
	var ended atomic.Int64
	half, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- inGoroutines(steps, func(i int) error {
			_, err := db.Do(context.Background(), stepKey("r", i+1), func(ctx context.Context) (step.Record, error) {
				if i >= before {
					<-half // so that some steps run during the failover
				}
				return work(&calls[i])(ctx)
			})
			if ended.Add(1) == before/2 {
				close(half)
			}
			return err
		})
	}()
	<-half
	if err := errors.Join(primary.Crash(), standby.Promote()); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if n := calls[i].Load(); n != 1 {
			t.Errorf("step %d was worked %d times", i+1, n)
		}
	}
	checkRun(t, pgtest.On(t, address, standby), "r", steps)
}

// With asynchronous replication, a failover loses the results that the standby did not have yet,
// although they were acknowledged. The process that held the run gives it up, and a process that resumes
// it repeats the lost steps.
func TestAsynchronousFailover(t *testing.T) {
	need.Time(t)
	primary, standby, address, both := replicated(t)
	db := open(t, both, Options{Retry: time.Minute})
	do(t, db, stepKey("r", 1))
	pgtest.Exec(t, address, "DO $$ BEGIN WHILE coalesce(pg_current_wal_lsn() > (SELECT replay_lsn FROM pg_stat_replication), true) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$")
	if err := standby.Crash(); err != nil {
		t.Fatal(err)
	}
	do(t, db, stepKey("r", 2)) // acknowledged, and lost
	if err := errors.Join(primary.Crash(), standby.Start(), standby.Promote()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Do(t.Context(), stepKey("r", 3), work(new(atomic.Int64))); !isHeld(err) || !strings.Contains(err.Error(), "has lost commits that it had acknowledged") {
		t.Errorf("after the failover its process continues a run that has lost a result: %v", err)
	}
	giveUp(t, pgtest.On(t, address, standby), "r")
	next := open(t, pgtest.On(t, address, standby), Options{})
	for _, err := next.Acquire(t.Context(), "r"); err != nil; _, err = next.Acquire(t.Context(), "r") {
		if !isHeld(err) {
			t.Fatal(err)
		}
	}
	for n, kept := range []bool{true, false, false} {
		if rec := do(t, next, stepKey("r", n+1)); rec.Replayed != kept {
			t.Errorf("after the failover, step %d is replayed: %v", n+1, rec.Replayed)
		}
	}
}
