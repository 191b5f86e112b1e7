package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// reached is called at the points at which the tests kill the process.
var reached = func(string) {}

// A write is an intent, a result or, if it has neither, a sign of life.
type write struct {
	run    *run
	intent *intent
	row    *row

	abandoned atomic.Bool   // nobody waits for this intent any more
	done      chan struct{} // closed when the fields below are set
	err       error         // the run is not ours any more
}

// writer is the one goroutine that writes, and its connection.
type writer struct {
	db    *DB
	wake  chan struct{}
	stop  chan struct{}
	ended chan struct{}

	queued  sync.Mutex
	queue   []*write
	trouble error // why the last commit failed, nil if it did not
	closed  bool

	using sync.Mutex // conn and what was prepared on it
	conn  *sql.Conn
	stmt  struct{ begin, commit, rollback, beat, ours, record *sql.Stmt }
	stmts []*sql.Stmt
	lost  error // what close could not write
}

func (db *DB) startWriter() (*writer, error) {
	ctx := context.Background()
	conn, err := db.sql.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{db: db, conn: conn, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	for _, s := range []struct {
		into **sql.Stmt
		text string
	}{
		{&w.stmt.begin, "BEGIN IMMEDIATE"},
		{&w.stmt.commit, "COMMIT"},
		{&w.stmt.rollback, "ROLLBACK"},
		{&w.stmt.beat, "UPDATE runs SET beat = beat + 1 WHERE run = ? AND owner = ?"},
		{&w.stmt.ours, "SELECT count(*) FROM runs WHERE run = ? AND owner = ?"},
		{&w.stmt.record, "INSERT INTO records VALUES (?,?,?,?,?,?,?,?)"},
	} {
		if *s.into, err = conn.PrepareContext(ctx, s.text); err != nil {
			return nil, errors.Join(err, w.hangUp())
		}
		w.stmts = append(w.stmts, *s.into)
	}
	go w.loop()
	return w, nil
}

// put queues a write. Wait for its done.
func (w *writer) put(x *write) error {
	x.done = make(chan struct{})
	w.queued.Lock()
	if w.closed {
		w.queued.Unlock()
		return ErrClosed
	}
	w.queue = append(w.queue, x)
	w.queued.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // it is awake
	}
	return nil
}

// patience is how many times as long as for a write that fails is waited for one
// that the disk does not answer to: it may be busy.
const patience = 12

// wait waits until x is on the disk, though not for ever.
func (w *writer) wait(x *write) error {
	timer := time.NewTimer(w.db.opts.Retry)
	defer timer.Stop()
	for i := 1; ; i++ {
		select {
		case <-x.done:
			return x.err
		case <-timer.C:
		}
		w.queued.Lock()
		trouble := w.trouble
		w.queued.Unlock()
		if trouble == nil && i < patience {
			timer.Reset(w.db.opts.Retry)
			continue
		}
		x.abandoned.Store(true)
		if trouble != nil {
			return w.db.explain(trouble)
		}
		return fmt.Errorf("database %s: its disk did not answer for %v: check it, or set a longer Retry", w.db.file, patience*w.db.opts.Retry)
	}
}

// loop commits what is queued. What cannot be written is kept and tried again.
func (w *writer) loop() {
	defer close(w.ended)
	beats := time.NewTicker(max(w.db.opts.Lease/4, time.Millisecond))
	defer beats.Stop()
	var kept []*write
	var pause time.Duration
	for stopped := false; !stopped; {
		var again <-chan time.Time
		wake := w.wake
		if pause > 0 {
			again, wake = time.After(pause), nil
		}
		var signs []*write
		var left []*run
		select {
		case <-again:
		case <-wake:
			w.gather()
		case <-beats.C:
			signs, left = w.db.signs()
		case <-w.stop:
			stopped = true
		}
		group := append(append(kept, w.take()...), signs...)
		err := w.commit(group)
		for _, r := range left {
			// If it cannot be said that a run is nobody's, whoever wants
			// it finds no sign of life.
			_ = w.db.letGo(r)
		}
		if kept = nil; err == nil {
			pause = 0
			continue
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		for _, x := range group {
			if x.row != nil || x.intent != nil && !x.abandoned.Load() {
				kept = append(kept, x)
			}
		}
	}
	w.giveUp(kept)
}

// gather lets those who were woken by the last commit join the next one, as long
// as more of them come: every commit waits for the disk.
func (w *writer) gather() {
	for before, now := -1, 0; now > before; {
		runtime.Gosched()
		w.queued.Lock()
		before, now = now, len(w.queue)
		w.queued.Unlock()
	}
}

func (w *writer) take() []*write {
	w.queued.Lock()
	defer w.queued.Unlock()
	group := w.queue
	w.queue = nil
	return group
}

// giveUp ends the waiting for what close could not write.
func (w *writer) giveUp(kept []*write) {
	results := 0
	for _, x := range append(kept, w.take()...) {
		if x.row != nil {
			results++
		}
		x.err = ErrClosed
		close(x.done)
	}
	if results > 0 {
		w.lost = fmt.Errorf("results that are lost: %d: %w", results, w.db.explain(w.trouble))
	}
}

// commit writes a group in one transaction. Without an error everybody in it has
// an answer, otherwise nobody has and nothing is written.
func (w *writer) commit(group []*write) error {
	if len(group) == 0 {
		return nil
	}
	w.using.Lock()
	t, err := w.atomically(func(t *transaction) error {
		if err := t.apply(group); err != nil {
			return err
		}
		reached("before commit")
		return nil
	})
	var held map[*run]error
	if err == nil {
		reached("after commit")
		held = t.holders()
	}
	w.using.Unlock()
	w.queued.Lock()
	w.trouble = err
	w.queued.Unlock()
	if err != nil {
		return err
	}
	settle(group, held)
	return nil
}

// atomically does all that f does, or nothing. The writer must be locked.
func (w *writer) atomically(f func(*transaction) error) (*transaction, error) {
	t := &transaction{writer: w}
	err := w.exec(w.stmt.begin)
	if err != nil {
		return t, err
	}
	if err = f(t); err == nil {
		err = w.exec(w.stmt.commit)
	}
	if err != nil {
		// A rollback that fails has nothing to roll back: SQLite did so
		// itself, as it does when the disk is full.
		_ = w.exec(w.stmt.rollback)
	}
	t.stands(err == nil)
	return t, err
}

// now executes one statement, and says how many rows it changed.
func (w *writer) now(ctx context.Context, statement string, args ...any) (int64, error) {
	w.using.Lock()
	defer w.using.Unlock()
	if w.conn == nil {
		return 0, ErrClosed
	}
	result, err := w.conn.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// change is a transaction of its own. One that fails is tried again for a while,
// as a group is.
func (db *DB) change(f func(*transaction) error) error {
	begun := time.Now()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		db.out.using.Lock()
		var err error
		if db.out.conn == nil {
			err = ErrClosed
		} else {
			_, err = db.out.atomically(f)
		}
		db.out.using.Unlock()
		if err == nil || !passing(err) || time.Since(begun) > db.opts.Retry {
			return db.explain(err)
		}
		time.Sleep(pause)
	}
}

func (w *writer) exec(s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(context.Background(), args...)
	return err
}

func (w *writer) close() error {
	w.queued.Lock()
	w.closed = true
	w.queued.Unlock()
	close(w.stop)
	<-w.ended
	w.using.Lock()
	defer w.using.Unlock()
	_, err := w.conn.ExecContext(context.Background(), "UPDATE runs SET owner = '' WHERE owner = ?", w.db.owner)
	if w.lost != nil { // whatever else there is has the same cause
		w.hangUp()
		return w.lost
	}
	return errors.Join(w.db.explain(err), w.hangUp())
}

// hangUp closes the connection. A statement that stays open would keep SQLite from
// closing the file and removing its log.
func (w *writer) hangUp() error {
	var errs []error
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	errs = append(errs, w.conn.Close())
	w.conn = nil
	return errors.Join(errs...)
}
