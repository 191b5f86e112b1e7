package sqlite

import (
	"os"
	"time"

	"github.com/stonelayer/stone/internal/flock"
)

// A queue lines up the processes that write to a file, in the order in which they come. SQLite
// has no queue: each process tries the lock again and again. One that tries seldom may never get
// it, and many that try often take the CPU from the one that has it. So a process first waits for
// the lock of the log, which SQLite opens and never locks. The lock of SQLite still protects the
// file: without a queue, processes only wait longer.
type queue struct {
	log  *os.File // nil until it is used
	wait *wait    // that has not ended, or nil
}

type wait struct {
	turn   chan struct{} // receives when it is this process's turn
	missed chan struct{} // closed when the turn came and nobody waited for it, or when flock failed
}

// enter waits for the turn of this process, for at most so long, and reports whether it has come. If so,
// it lasts until leave.
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
			return false // the next call waits on
		}
	}
}

// do waits for the lock, and gives it back if nobody waits for the turn any more.
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

// close gives a turn back that still comes, since it closes the file.
func (q *queue) close() error {
	if q.log == nil {
		return nil
	}
	return q.log.Close()
}
