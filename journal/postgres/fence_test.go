package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

func stepKey(run string, n int) step.Key {
	return step.Key{RunID: run, Path: fmt.Sprint("p/", n), Kind: "step", Name: "p", Digest: dag.ID{byte(n), byte(n >> 8)}}
}

// work returns work that counts its calls.
func work(calls *atomic.Int64) func(context.Context) (step.Record, error) {
	return func(context.Context) (step.Record, error) {
		calls.Add(1)
		return step.Record{Content: []byte(`1`), Time: time.Unix(1_800_000_000, 0)}, nil
	}
}

func do(t *testing.T, db *DB, key step.Key) step.Record {
	t.Helper()
	rec, err := db.Do(t.Context(), key, work(new(atomic.Int64)))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func isHeld(err error) bool { return errors.As(err, new(*journal.HeldError)) }

// pauseAt makes the next process that reaches a point wait there, after arm was called with
// what it does before.
func pauseAt(t *testing.T, point string) (arm func(first func()), paused, proceed chan struct{}) {
	t.Helper()
	var armed atomic.Pointer[func()]
	paused, proceed = make(chan struct{}), make(chan struct{})
	reached.Call(func(at string) {
		if at != point {
			return
		}
		if first := armed.Swap(nil); first != nil {
			(*first)()
			close(paused)
			<-proceed
		}
	})
	t.Cleanup(func() { reached.Call(nil) })
	return func(first func()) { armed.Store(&first) }, paused, proceed
}

// giveUp makes others believe at once that the owner of a run is dead.
func giveUp(t *testing.T, address, run string) {
	t.Helper()
	pgtest.Exec(t, address, "UPDATE stone.runs SET lease = 1 WHERE id = '"+run+"'")
}

// race lets the server commit the result of a step late: another process tries to take the run
// while the transaction is open, and its owner was checked. First is called before. It reports whether the result was acknowledged, and
// whether the other process worked on the step although it was.
func race(t *testing.T, address string, first func()) (acknowledged, repeated bool) {
	slow, next := open(t, address, Options{Lease: 80 * time.Second}), open(t, address, Options{})
	pgtest.Exec(t, address, "CREATE FUNCTION stone.late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF new.content = ''\\x32'' THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN new; END'")
	pgtest.Exec(t, address, "CREATE TRIGGER late BEFORE INSERT ON stone.records FOR EACH ROW EXECUTE FUNCTION stone.late()")
	do(t, slow, stepKey("r", 1))
	giveUp(t, address, "r")
	gate, err := pgconn.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer drop(gate)
	if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_lock(1)").ReadAll(); err != nil {
		t.Fatal(err)
	}
	waits := func(atGate bool) bool {
		found, err := rows(t.Context(), next.database.reader, func(v [][]byte) int64 { return integer(v[0]) },
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND (wait_event = 'advisory') = $1", atGate)
		if err != nil {
			t.Fatal(err)
		}
		return found[0] > 0
	}
	slowly := make(chan error, 1)
	go func() {
		_, err := slow.Do(context.Background(), stepKey("r", 2), func(context.Context) (step.Record, error) {
			first()
			return step.Record{Content: []byte(`2`)}, nil
		})
		slowly <- err
	}()
	for !waits(true) { // then its row is locked
		time.Sleep(time.Millisecond)
	}
	working, end := make(chan struct{}), make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			_, err := next.Do(context.Background(), stepKey("r", 2), func(context.Context) (step.Record, error) {
				close(working)
				<-end
				return step.Record{Content: []byte(`3`)}, nil
			})
			if !isHeld(err) {
				return
			}
		}
	}()
	for !repeated && !waits(false) {
		select {
		case <-working:
			repeated = true
		default:
		}
	}
	if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_unlock(1)").ReadAll(); err != nil {
		t.Fatal(err)
	}
	acknowledged = <-slowly == nil
	close(end)
	<-over
	return acknowledged, repeated
}

// A process takes a run over only between the transactions of its owner.
func TestTakeoverWaitsForCommit(t *testing.T) {
	if acknowledged, repeated := race(t, pgtest.Database(t), func() {}); !acknowledged || repeated {
		t.Errorf("the step was acknowledged: %v, and was repeated: %v; want that it is acknowledged and not repeated", acknowledged, repeated)
	}
}

// The control: if the owner is only checked before the transaction, both work on the step.
func TestCheckWithoutLockIsNoFence(t *testing.T) {
	address := pgtest.Database(t)
	open(t, address, Options{})
	pgtest.Exec(t, address, "ALTER TABLE stone.records DROP CONSTRAINT records_pkey") // a fence too
	lock := fence
	defer func() { fence = lock }()
	unlock := func() {
		fence = "SELECT run, beat + 1, $3::bigint[] FROM stone.runs WHERE run = ANY($1::bigint[]) AND owner = ANY($2::text[]) AND beat >= ANY($4::bigint[])"
	}
	if acknowledged, repeated := race(t, address, unlock); !acknowledged || !repeated {
		t.Errorf("the step was acknowledged: %v, and was repeated: %v; so TestTakeoverWaitsForCommit shows nothing", acknowledged, repeated)
	}
}

// A process that was given up writes no intent, node, end or failure, but the results of
// its running steps are kept. The first result of a step wins.
func TestGivenUp(t *testing.T) {
	address := pgtest.Database(t)
	slow, next := open(t, address, Options{}), open(t, address, Options{})
	if _, err := slow.Acquire(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if err := slow.Begin(t.Context(), journal.RunInfo{ID: "r", Started: time.Unix(1, 0)}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
	do(t, slow, stepKey("r", 1))
	const steps = 5 // 2 to 6 are running when the process is given up
	var started, group sync.WaitGroup
	started.Add(steps)
	taken, late := make(chan struct{}), make(chan error, steps)
	for i := range steps {
		n := i + 2
		group.Go(func() {
			_, err := slow.Do(context.Background(), stepKey("r", n), func(context.Context) (step.Record, error) {
				started.Done()
				<-taken
				rec := step.Record{Content: []byte(`"late"`)}
				if n == 6 {
					rec = step.Record{Failure: &dag.FailureContent{Kind: "broken", Reason: "late"}}
				}
				return rec, nil
			})
			late <- err
		})
	}
	started.Wait()
	giveUp(t, address, "r")
	for _, err := next.Acquire(t.Context(), "r"); err != nil; _, err = next.Acquire(t.Context(), "r") {
		if !isHeld(err) {
			t.Fatal(err)
		}
		giveUp(t, address, "r")
	}
	do(t, next, stepKey("r", 2)) // it has no late result yet
	close(taken)
	group.Wait()
	for range steps {
		if err := <-late; !isHeld(err) {
			t.Errorf("a step of a process that was given up: %v, want a HeldError", err)
		}
	}
	if _, err := slow.Do(t.Context(), stepKey("r", 7), work(new(atomic.Int64))); !isHeld(err) {
		t.Errorf("a new step of a process that was given up: %v, want a HeldError", err)
	}
	if err := slow.End(t.Context(), "r", journal.Outcome{State: journal.Done}); !isHeld(err) && err == nil {
		t.Error("a process that was given up ended the run")
	}
	want := map[int]string{2: "1", 3: `"late"`, 4: `"late"`, 5: `"late"`, 6: "1", 7: "1"}
	for n, content := range want {
		if rec := do(t, next, stepKey("r", n)); string(rec.Content) != content || rec.Failure != nil {
			t.Errorf("step %d has the result %s, want %s", n, rec.Content, content)
		}
	}
	if err := next.End(t.Context(), "r", journal.Outcome{State: journal.Done}); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for row, err := range next.Follow(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Ended {
			paths = append(paths, row.Path)
		}
		if len(paths) == 7 {
			break
		}
	}
	if slices.Sort(paths); strings.Join(paths, " ") != "p/1 p/2 p/3 p/4 p/5 p/6 p/7" {
		t.Errorf("Follow has the results of %v, want each of 7 steps once", paths)
	}
	if info, err := next.Find(t.Context(), "r"); err != nil || info.State != journal.Done {
		t.Errorf("the run is %s, %v; want the end of its last owner", info.State, err)
	}
}

// A result that is put aside between two steps of the owner is found although the owner
// had looked before.
func TestAsideIsNoticed(t *testing.T) {
	address := pgtest.Database(t)
	slow, next := open(t, address, Options{}), open(t, address, Options{})
	do(t, slow, stepKey("r", 1))
	_, err := slow.Do(t.Context(), stepKey("r", 2), func(ctx context.Context) (step.Record, error) {
		giveUp(t, address, "r")
		for {
			if _, err := next.Do(ctx, stepKey("r", 3), work(new(atomic.Int64))); err == nil || !isHeld(err) {
				return step.Record{Content: []byte(`"late"`)}, err
			}
		}
	})
	if !isHeld(err) {
		t.Fatal(err)
	}
	var calls atomic.Int64
	rec, err := next.Do(t.Context(), stepKey("r", 2), work(&calls))
	if err != nil || calls.Load() > 0 || string(rec.Content) != `"late"` {
		t.Errorf("the step was repeated %d times and has the result %s, %v; want the late one", calls.Load(), rec.Content, err)
	}
	steps, err := next.Steps(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if !s.Recorded || s.PossiblyPaid() > 0 {
			t.Errorf("step %s: %+v; want a result and no attempt besides", s.Path, s)
		}
	}
}

// Steps that share a commit with steps of a run that was lost are recorded, and no work is repeated.
func TestLostRunAmongOthers(t *testing.T) {
	address := pgtest.Database(t)
	slow, next := open(t, address, Options{Lease: time.Minute}), open(t, address, Options{})
	do(t, slow, stepKey("lost", 1))
	do(t, slow, stepKey("kept", 1))
	giveUp(t, address, "lost")
	for _, err := next.Acquire(t.Context(), "lost"); err != nil; _, err = next.Acquire(t.Context(), "lost") {
		if !isHeld(err) {
			t.Fatal(err)
		}
	}
	var calls atomic.Int64
	id := slow.database.id.Load()
	err := inGoroutines(callers, func(i int) error {
		if i%4 > 0 {
			_, err := slow.Do(context.Background(), stepKey("kept", i+2), work(&calls))
			return err
		}
		if _, err := slow.Do(context.Background(), stepKey("lost", i+2), work(new(atomic.Int64))); !isHeld(err) {
			return fmt.Errorf("step %d of the lost run: %v, want a HeldError", i, err)
		}
		return nil
	})
	if err != nil || calls.Load() != callers*3/4 {
		t.Errorf("the steps were worked %d times, %v; want each once", calls.Load(), err)
	}
	if got := slow.database.id.Load(); got != id {
		t.Errorf("a process that lost a run became writer %d, want that it stays %d", got, id)
	}
	do(t, next, stepKey("lost", 2))
}

// A process of which the server knows another number, as after a failover, takes part as a new one, and tells so.
func TestNewNumberIsTold(t *testing.T) {
	address := pgtest.Database(t)
	db := open(t, address, Options{Lease: time.Minute}) // no beats meanwhile
	config, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	var told string
	config.OnNotification = func(_ *pgconn.PgConn, note *pgconn.Notification) { told = note.Payload }
	other, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer drop(other)
	if _, err := other.Exec(t.Context(), "LISTEN "+channel).ReadAll(); err != nil {
		t.Fatal(err)
	}
	tell := func(n int) {
		do(t, db, stepKey("r", n))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := other.WaitForNotification(ctx); err != nil {
			t.Fatal(err)
		}
	}
	tell(1)
	before := db.database.id.Load()
	pgtest.Exec(t, address, "DELETE FROM stone.writers")
	now := before
	for n := 2; n < 10 && (now == before || told != fmt.Sprint(now)); n++ { // commits before it may be told later
		tell(n)
		now = db.database.id.Load()
	}
	if now == before || told != fmt.Sprint(now) {
		t.Errorf("writer %d became %d and tells of commits as %s", before, now, told)
	}
}

// A process that stops within a transaction keeps its locks for a quarter of its lease.
func TestSilentTransactionIsEnded(t *testing.T) {
	arm, paused, proceed := pauseAt(t, "before commit")
	address := pgtest.Database(t)
	slow, next := open(t, address, Options{Lease: time.Second, Retry: 200 * time.Millisecond, RetryResults: 200 * time.Millisecond}), open(t, address, Options{})
	do(t, slow, stepKey("r", 1))
	arm(func() {})
	go func() { // reads, so that it begins before its commit
		_, _ = slow.Ask(context.Background(), journal.Question{Run: "r", Path: "ask", Name: "ask", Asked: time.Unix(1, 0)})
	}()
	<-paused
	defer close(proceed)
	var calls atomic.Int64
	for started := time.Now(); ; {
		_, err := next.Do(t.Context(), stepKey("r", 2), work(&calls))
		if err == nil {
			break
		}
		if !isHeld(err) || time.Since(started) > 20*time.Second {
			t.Fatal(err)
		}
	}
	if !do(t, next, stepKey("r", 1)).Replayed {
		t.Error("the step of the stopped process is not replayed")
	}
}

// The same is true of a process that stops while it sends a large result, also behind a pooler.
func TestHalfSentTransactionIsEnded(t *testing.T) {
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprint(pooled), func(t *testing.T) {
			s, address := own(t)
			n, through := newNetwork(t, s, address)
			slow, err := Open(t.Context(), through, Options{Lease: time.Second, Retry: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = slow.Close() }) // it loses a result
			slow.database.pool.pooled.Store(pooled)
			next := open(t, address, Options{})
			do(t, slow, stepKey("r", 1))
			n.cut.Store(half)
			go func() {
				_, _ = slow.Do(context.Background(), stepKey("r", 2), func(context.Context) (step.Record, error) {
					return step.Record{Content: bytes.Repeat([]byte("1"), 4<<20)}, nil
				})
			}()
			for n.cuts.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			for started := time.Now(); ; {
				if _, err = next.Do(t.Context(), stepKey("r", 3), work(new(atomic.Int64))); err == nil {
					return
				}
				if time.Since(started) > time.Minute {
					t.Fatalf("nobody can take the run of a process that stopped: %v", err)
				}
			}
		})
	}
}

// A process that is slower than the server allows is not stopped: its transactions are committed,
// although the server ends the first ones.
func TestSlowTransactionIsCommitted(t *testing.T) {
	need.Time(t)
	var slept atomic.Int64
	reached.Call(func(at string) {
		if at == "before commit" {
			time.Sleep(400 * time.Millisecond) // the server waits for 250 at first
			slept.Add(1)
		}
	})
	t.Cleanup(func() { reached.Call(nil) })
	db := open(t, pgtest.Database(t), Options{Lease: time.Second, RetryResults: 5 * time.Second})
	do(t, db, stepKey("r", 1))
	if slept.Load() < 4 {
		t.Errorf("%d transactions were slow, want more than the one that takes the run and the two of a step", slept.Load())
	}
}

// Of several processes that want a run whose owner died, one gets it.
func TestExpiredLeaseIsTakenOnce(t *testing.T) {
	address := pgtest.Database(t)
	open(t, address, Options{})
	pgtest.Exec(t, address, "INSERT INTO stone.runs (id, owner, beat, lease, outside) VALUES ('r', 'gone', 7, 100, '')")
	var group sync.WaitGroup
	var calls, won atomic.Int64
	for range 6 {
		db := open(t, address, Options{})
		group.Go(func() {
			_, err := db.Do(t.Context(), stepKey("r", 1), work(&calls))
			switch {
			case err == nil:
				won.Add(1)
			case !isHeld(err):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 || calls.Load() != 1 {
		t.Errorf("%d took the run over and worked %d times, want one and once", won.Load(), calls.Load())
	}
}

// Processes that make a run of one name at once do not fail.
func TestNewRunIsMadeOnce(t *testing.T) {
	address := pgtest.Database(t)
	var group sync.WaitGroup
	var won atomic.Int64
	for range 6 {
		db := open(t, address, Options{})
		group.Go(func() {
			for range 20 {
				_, err := db.Ask(t.Context(), journal.Question{Run: "asked", Path: "p", Name: "p", Asked: time.Unix(1, 0)})
				if err != nil {
					t.Error(err)
				}
			}
			_, err := db.Acquire(t.Context(), "r")
			if err == nil {
				won.Add(1)
			} else if !isHeld(err) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Errorf("%d processes hold the run, want one", won.Load())
	}
}
