package sqlite

import (
	"os"
	"time"

	"github.com/stonelayer/stone/internal/flock"
)

// A queue orders the processes that write to a file by arrival. SQLite has no queue: processes poll for its lock. One that polls
// rarely may never get it, and many that poll often take the CPU from its owner. So a process first waits for the lock of the
// log, which SQLite opens but never locks. The lock of SQLite still protects the file: without a queue, processes only wait
// longer.
type queue struct {
	log  *os.File // nil until it is used
	wait *wait    // the current wait, or nil
}

type wait struct {
	turn   chan struct{} // receives when it is this process's turn
	missed chan struct{} // closed when nobody waited for the turn, or when flock failed
}

// enter waits for the turn of this process, at most for the given time, and reports whether it has come. The turn lasts until
// leave.
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
			return false // the next call continues to wait
		}
	}
}

// do waits for the lock, and releases it if nobody waits for the turn any more.
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

func (q *queue) leave() { _ = flock.Unlock(q.log) } // closing the file releases it too

// close also returns a later turn, because it closes the file.
func (q *queue) close() error {
	if q.log == nil {
		return nil
	}
	return q.log.Close()
}
