package sqlite

import (
	"os"
	"time"

	"github.com/stonelayer/stone/internal/flock"
)

// A queue lets the processes that write to a file take turns in the order in which they arrive. SQLite has no such queue:
// processes poll for its lock. A process that polls rarely may never acquire the lock, and many processes that poll often take CPU
// time from the lock's owner. Therefore a process first waits for a lock on the log file, which SQLite opens but never locks. The
// database is still protected by SQLite's own lock: without a queue, processes only wait longer.
type queue struct {
	log  *os.File // nil until the queue is first used
	wait *wait    // the current wait, or nil
}

type wait struct {
	turn   chan struct{} // receives a value when it is this process's turn
	missed chan struct{} // closed if nobody was waiting when the turn came, or if flock failed
}

// enter waits for this process's turn, at most for the given time, and reports whether the turn has come. The turn lasts until
// leave is called.
func (q *queue) enter(log string, most time.Duration) bool {
	if q.log == nil {
		var err error
		if q.log, err = os.Open(log); err != nil {
			q.log = nil
			return false
		}
	}
	limit := time.NewTimer(most)
	defer limit.Stop()
	for {
		if q.wait == nil {
			if first, err := flock.TryLock(q.log); first || err != nil {
				return first
			}
			q.wait = &wait{make(chan struct{}), make(chan struct{})}
			go q.wait.do(q.log)
		}
		select {
		case <-q.wait.turn:
			q.wait = nil
			return true
		case <-q.wait.missed:
			q.wait = nil
		case <-limit.C:
			return false // the next call of enter continues to wait
		}
	}
}

// do waits for the lock, and releases it immediately if nobody is waiting for the turn any more.
func (w *wait) do(log *os.File) {
	if flock.Lock(log) != nil {
		close(w.missed)
		return
	}
	select {
	case w.turn <- struct{}{}:
	default:
		_ = flock.Unlock(log)
		close(w.missed)
	}
}

func (q *queue) leave() { _ = flock.Unlock(q.log) } // if this fails, closing the file releases the lock

// close closes the log file, which also releases a turn that comes later.
func (q *queue) close() error {
	if q.log == nil {
		return nil
	}
	return q.log.Close()
}
