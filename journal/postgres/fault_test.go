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

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/test/journaltest"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// A commit whose answer was lost is looked up, and written again if it did not happen. The
// work is never repeated.
func TestUnknownCommit(t *testing.T) {
	need.Time(t)
	s, address := own(t)
	n, through := newNetwork(t, s, address)
	db := open(t, through, Options{Lease: 2 * time.Second, Retry: 20 * time.Second})
	number := 0
	for _, how := range []string{lost, answer, delayed} {
		for range 5 {
			number++
			var calls atomic.Int64
			_, err := db.Do(t.Context(), stepKey("r", number), func(ctx context.Context) (step.Record, error) {
				n.cut.Store(how)
				return work(&calls)(ctx)
			})
			if err != nil || calls.Load() != 1 {
				t.Fatalf("%s: the step was worked %d times, %v", how, calls.Load(), err)
			}
		}
	}
	if n.cuts.Load() != int64(number) {
		t.Errorf("%d connections were lost, want %d", n.cuts.Load(), number)
	}
	checkRun(t, address, "r", number)
}

// The control: without looking, a commit that happened is written again, and refused.
func TestUnknownCommitIsNotAssumedLost(t *testing.T) {
	need.Time(t)
	s, address := own(t)
	n, through := newNetwork(t, s, address)
	looked := mark
	defer func() { mark = looked }()
	mark = "SELECT 0::bigint WHERE $1 > 0"
	db := open(t, through, Options{Retry: 20 * time.Second})
	_, err := db.Do(t.Context(), stepKey("r", 1), func(ctx context.Context) (step.Record, error) {
		n.cut.Store(answer)
		return work(new(atomic.Int64))(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "records_pkey") {
		t.Errorf("a commit that is taken as lost: %v, want that it is refused", err)
	}
}

// checkRun resumes a run, and checks that it has exactly one result for each step.
func checkRun(t *testing.T, address, run string, steps int) {
	t.Helper()
	db := open(t, address, Options{})
	for _, err := db.Acquire(t.Context(), run); err != nil; _, err = db.Acquire(t.Context(), run) {
		if !isHeld(err) {
			t.Fatal(err)
		}
		giveUp(t, address, run)
	}
	for i := range steps {
		if rec := do(t, db, stepKey(run, i+1)); !rec.Replayed {
			t.Errorf("step %d is not recorded", i+1)
		}
	}
	found, err := rows(t.Context(), db.database.reader, func(v [][]byte) int64 { return integer(v[0]) },
		"SELECT count(*) FROM stone.records WHERE digest IS NOT NULL")
	if err != nil || found[0] != int64(steps) {
		t.Errorf("%d results are recorded, %v; want %d", found[0], err, steps)
	}
}

// A server that crashes and starts again repeats no work and fails no step.
func TestServerRestarts(t *testing.T) {
	need.Time(t)
	s, address := own(t)
	db := open(t, address, Options{Lease: time.Minute, Retry: time.Minute})
	const steps, restarts = 400, 4
	calls := make([]atomic.Int64, steps)
	over := make(chan error, 1)
	go func() {
		over <- inGoroutines(steps, func(i int) error {
			_, err := db.Do(context.Background(), stepKey("r", i+1), func(ctx context.Context) (step.Record, error) {
				time.Sleep(10 * time.Millisecond)
				return work(&calls[i])(ctx)
			})
			return err
		})
	}()
	for range restarts {
		time.Sleep(30 * time.Millisecond)
		if err := errors.Join(s.Crash(), s.Start()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if n := calls[i].Load(); n != 1 {
			t.Errorf("step %d was worked %d times", i+1, n)
		}
	}
	checkRun(t, address, "r", steps)
}

// Close does not wait for a server that is gone.
func TestCloseWithoutServer(t *testing.T) {
	s, address := own(t)
	db, err := Open(t.Context(), address, Options{Lease: 200 * time.Millisecond, Retry: 200 * time.Millisecond, RetryResults: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for crashed := false; !crashed; { // a busy server may not even let the step start in time
		_, err = db.Do(t.Context(), stepKey("r", 1), func(ctx context.Context) (step.Record, error) {
			crashed = true
			if err := s.Crash(); err != nil {
				t.Error(err)
			}
			return work(new(atomic.Int64))(ctx)
		})
	}
	if err == nil || !strings.Contains(err.Error(), "does not answer: check that the server is running") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a result without a server: %v", err)
	}
	if err := db.Close(); err == nil || !strings.Contains(err.Error(), "lost results: 1") {
		t.Errorf("Close: %v, want the number of lost results", err)
	}
}

// Everything works behind a pooler that gives each transaction another connection.
func TestPooler(t *testing.T) {
	need.Time(t)
	s, address := own(t)
	through := s.Pooler(t)
	journaltest.TestJournal(t, func() func() journal.Journal {
		address := s.Database(t)
		return func() journal.Journal { return open(t, through(address), Options{Lease: time.Second, Listen: address}) }
	})
	poll = time.Hour
	t.Cleanup(func() { poll = time.Second })
	follows(t, open(t, through(address), Options{}), open(t, through(address), Options{Listen: address}))
}

// A DB whose named statements are unknown to the server, as behind a pooler, does without names, and repeats no work.
func TestNamesAreGivenUp(t *testing.T) {
	address := pgtest.Database(t)
	db := open(t, address, Options{Lease: time.Minute}) // no beats meanwhile
	for n := range 3 {
		do(t, db, stepKey("r", n+1))
	}
	named := 0
	if err := exchange(t.Context(), db.database.writer, statement{text: "SELECT FROM pg_prepared_statements", each: func([][]byte) { named++ }}); err != nil || named == 0 {
		t.Fatalf("the server keeps %d statements, %v", named, err)
	}
	if db.database.pool.pooled.Load() {
		t.Fatal("names are given up without a reason")
	}
	if err := exchange(t.Context(), db.database.writer, statement{text: "DEALLOCATE ALL"}); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	if _, err := db.Do(t.Context(), stepKey("r", 4), work(&calls)); err != nil || calls.Load() != 1 {
		t.Errorf("a step was worked %d times, %v", calls.Load(), err)
	}
	if !db.database.pool.pooled.Load() {
		t.Error("names are still in use")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	checkRun(t, address, "r", 4)
}

// follows checks that a journal hears of steps of another one although it does not poll.
func follows(t *testing.T, writing, following *DB) {
	t.Helper()
	do(t, writing, stepKey("r", 1))
	var steps sync.WaitGroup
	defer steps.Wait()
	seen := 0
	for row, err := range following.Follow(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if !row.Ended {
			continue
		}
		if seen++; seen == 20 {
			return
		}
		key := stepKey("r", seen+1)
		steps.Go(func() {
			if _, err := writing.Do(context.Background(), key, work(new(atomic.Int64))); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFollowIsWoken(t *testing.T) {
	poll = time.Hour
	t.Cleanup(func() { poll = time.Second })
	address := pgtest.Database(t)
	follows(t, open(t, address, Options{}), open(t, address, Options{}))
}

// Without notifications, followers poll.
func TestFollowPolls(t *testing.T) {
	poll = 10 * time.Millisecond
	t.Cleanup(func() { poll = time.Second })
	address := pgtest.Database(t)
	following := open(t, address, Options{})
	following.database.listening = following.database.config.Copy()
	following.database.listening.Database = "none"
	follows(t, open(t, address, Options{}), following)
}

// Results that exceed a page and a statement are read and written in parts.
func TestLargeContents(t *testing.T) {
	address := pgtest.Database(t)
	const steps, size = 10, 3 << 20
	read := func() (replayed int) {
		db := open(t, address, Options{})
		defer db.Close()
		var n atomic.Int64
		err := inGoroutines(steps, func(i int) error {
			rec, err := db.Do(context.Background(), stepKey("r", i+1), func(context.Context) (step.Record, error) {
				return step.Record{Content: bytes.Repeat([]byte{byte('a' + i)}, size)}, nil
			})
			if err == nil && (len(rec.Content) != size || rec.Content[size-1] != byte('a'+i)) {
				err = fmt.Errorf("the content of step %d was changed", i+1)
			}
			if rec.Replayed {
				n.Add(1)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return int(n.Load())
	}
	if n := read(); n != 0 {
		t.Errorf("%d steps of a new run were replayed", n)
	}
	if n := read(); n != steps {
		t.Errorf("%d steps were replayed, want %d", n, steps)
	}
	mostContent = 4 << 20
	t.Cleanup(func() { mostContent = 256 << 20 })
	db := open(t, address, Options{})
	_, err := db.Do(t.Context(), stepKey("r", 100), func(context.Context) (step.Record, error) {
		return step.Record{Content: make([]byte, mostContent+1)}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "the result of p/100 has 4 MB: at most 4 MB can be kept") {
		t.Errorf("a result that is too large: %v", err)
	}
}

// A result of many megabytes and one of every byte are kept.
func TestContents(t *testing.T) {
	address := pgtest.Database(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	contents := []string{fmt.Sprintf("%q", bytes.Repeat([]byte("0123456789"), 2<<20)), fmt.Sprintf("%q", all), `"\u0000 \ud83d\ude00"`, `""`}
	for range 2 {
		db := open(t, address, Options{})
		for i, content := range contents {
			rec, err := db.Do(t.Context(), stepKey("r", i+1), func(context.Context) (step.Record, error) {
				return step.Record{Content: []byte(content)}, nil
			})
			if err != nil || string(rec.Content) != content {
				t.Errorf("content %d was changed, %v", i, err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A closed journal opens no connection again.
func TestReadAfterClose(t *testing.T) {
	db, err := Open(t.Context(), pgtest.Database(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	do(t, db, stepKey("r", 1))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Steps(t.Context(), "r"); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Steps after Close: %v, want ErrClosed", err)
	}
	if n := len(db.database.pool.places); n > 0 {
		t.Errorf("%d connections are open after Close", n)
	}
}

// A process that is cut off from the database loses its run to one that is not. The result
// of its running step is kept when it is connected again, although what it sent before
// arrives then too.
func TestPartition(t *testing.T) {
	need.Time(t)
	s, address := own(t)
	n, through := newNetwork(t, s, address)
	slow := open(t, through, Options{Lease: time.Second, Retry: time.Second, RetryResults: time.Minute})
	next := open(t, address, Options{})
	do(t, slow, stepKey("r", 1))
	late := make(chan error, 1)
	working := make(chan struct{})
	go func() {
		_, err := slow.Do(context.Background(), stepKey("r", 2), func(context.Context) (step.Record, error) {
			n.gate.Lock()
			close(working)
			return step.Record{Content: []byte(`"late"`)}, nil
		})
		late <- err
	}()
	<-working
	for {
		_, err := next.Do(t.Context(), stepKey("r", 3), work(new(atomic.Int64)))
		if err == nil {
			break
		}
		if !isHeld(err) {
			t.Fatal(err)
		}
	}
	n.gate.Unlock()
	if err := <-late; !isHeld(err) {
		t.Errorf("the step of the process that was cut off: %v, want a HeldError", err)
	}
	if rec := do(t, next, stepKey("r", 2)); string(rec.Content) != `"late"` {
		t.Errorf("the step has the result %s, want that of the process that was cut off", rec.Content)
	}
	if err := next.Release("r"); err != nil {
		t.Fatal(err)
	}
	checkRun(t, address, "r", 3)
}

// Processes that ask questions in each other's runs while they write their own never deadlock.
func TestCrossedQuestions(t *testing.T) {
	address := pgtest.Database(t)
	one, two := open(t, address, Options{}), open(t, address, Options{})
	var group sync.WaitGroup
	for i, db := range []*DB{one, two} {
		own, other := fmt.Sprint("r", i), fmt.Sprint("r", 1-i)
		do(t, db, stepKey(own, 1))
		group.Go(func() {
			if err := inGoroutines(200, func(n int) error {
				if n%2 == 0 {
					_, err := db.Do(context.Background(), stepKey(own, n+2), work(new(atomic.Int64)))
					return err
				}
				path := fmt.Sprint("ask/", i, "/", n)
				_, err := db.Ask(context.Background(), journal.Question{Run: other, Path: path, Name: "ask", Asked: time.Unix(1, 0)})
				return errors.Join(err, db.Answer(context.Background(), other, path, ask.Answer{Response: "yes"}))
			}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	defer func() {
		if err := errors.Join(one.Close(), two.Close()); err != nil {
			t.Error(err)
		}
		if n := deadlocks(t, address); n > 0 {
			t.Errorf("the server found %d deadlocks", n)
		}
	}()
	for i := range 2 {
		questions, err := one.Questions(t.Context(), fmt.Sprint("r", i))
		if err != nil || len(questions) != 100 || slices.ContainsFunc(questions, journal.Question.Open) {
			t.Errorf("run %d has %d questions, %v; want 100, all answered", i, len(questions), err)
		}
	}
}

// deadlocks returns the number of deadlocks in a database. A connection reports its own when it ends,
// so deadlocks first waits until there are no other connections.
func deadlocks(t *testing.T, address string) int64 {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer drop(conn)
	ask := func(query string) (n int64) {
		if err := exchange(t.Context(), conn, statement{text: query, each: func(v [][]byte) { n = integer(v[0]) }}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for ask("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()") > 1 {
		time.Sleep(10 * time.Millisecond)
	}
	return ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
}

// A run costs few round trips, besides what its steps cost.
func TestRoundTrips(t *testing.T) {
	server, straight := own(t)
	net, address := newNetwork(t, server, straight)
	db := open(t, address, Options{Lease: time.Hour})
	run := func(id string, steps int) int64 {
		before := net.trips.Load()
		begin(t, db, id)
		for n := range steps {
			do(t, db, stepKey(id, n))
		}
		leave(t, db, id, journal.Done)
		return net.trips.Load() - before
	}
	for n := range 3 {
		run(fmt.Sprint("warm-", n), 2) // the server keeps the statements then
	}
	// To read the lease; to begin to take the run, to insert it, to commit; two or three each to start, end and leave it.
	if got := run("empty", 0); got > 12 {
		t.Errorf("a run without steps: %d round trips, want at most 12", got)
	}
	// One for its intent, and one for its result.
	if got := run("steps", 10) - run("one", 1); got > 20 {
		t.Errorf("9 steps: %d round trips, want at most 20", got)
	}
	// The server hears of a large content before it gets it.
	begin(t, db, "large")
	large := func(n int) int64 {
		before := net.trips.Load()
		_, err := db.Do(t.Context(), stepKey("large", n), func(context.Context) (step.Record, error) {
			return step.Record{Content: bytes.Repeat([]byte("1"), 1<<20)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return net.trips.Load() - before
	}
	if got := min(large(1), large(2)); got != 3 {
		t.Errorf("a step with a large content: %d round trips, want one for its intent and two for its result", got)
	}
}
