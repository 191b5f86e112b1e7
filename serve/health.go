package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// health holds the results of recent journal operations, which show whether the store works, so that /readyz can answer at once
// even if the store does not.
type health struct {
	log *slog.Logger

	mu      sync.Mutex
	asked   chan struct{} // closed when the first read ends; nil before it starts
	asking  time.Time     // start of the current read for /readyz, or zero
	read    error         // error of the last read
	write   error         // error of a failed write, until a similar one succeeds
	failed  writing       // the write that failed
	written time.Time     // time of the failure
	pause   time.Duration // time during which the error makes the server unready
	down    bool          // the problem has been logged
}

// A writing is a write to the store.
type writing struct {
	operation string
	size      int // approximate size in units of 16 KB
}

const (
	// unwritable is how long a failed write makes a server unready. A write of the same kind and at least the same size that
	// succeeds ends it earlier; a smaller one may succeed even on a full disk. After this time, the next requests try again; if
	// they fail, the time doubles.
	unwritable     = 10 * time.Second
	longUnwritable = 5 * time.Minute
	// unanswered is how long a read may be pending before the server counts as unready.
	unanswered = 2 * time.Second
	// retryAfter is how long a client should wait before it repeats a request that the store could not answer.
	retryAfter = "5"
)

// reads records the outcome of a read.
func (h *health) reads(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && !errors.Is(err, journal.ErrUnavailable) {
		return // the error concerns a run, not the store
	}
	h.read = err
	h.tell(err)
}

// writes records the outcome of a write.
func (h *health) writes(w writing, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, journal.ErrUnavailable):
		if h.write == nil || time.Since(h.written) >= h.pause { // otherwise the earlier problem continues
			h.pause = min(max(2*h.pause, unwritable), longUnwritable)
		}
		h.write, h.failed, h.written = err, w, time.Now()
	case err != nil:
		return
	case w.operation == h.failed.operation && w.size >= h.failed.size:
		h.write, h.pause = nil, 0
	case h.write != nil && time.Since(h.written) >= h.pause:
		h.write = nil
	}
	h.tell(err)
}

// tell logs the beginning and the end of a problem with the store, so that not every request logs it. The caller must hold h.mu.
func (h *health) tell(err error) {
	switch {
	case err != nil && !h.down:
		h.down = true
		h.log.Error("the journal is unavailable", "error", err)
	case h.down && h.read == nil && h.write == nil:
		h.down = false
		h.log.Info("the journal is available again")
	}
}

// ask starts a read unless one is running, and returns a channel that is closed when the first read has ended.
func (h *health) ask(read func(context.Context) error) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.asked == nil
	if first {
		h.asked = make(chan struct{})
	}
	if h.asking.IsZero() {
		h.asking = time.Now()
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			err := read(ctx)
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.asking = (time.Time{}); h.read == nil {
				h.read = err // any error, not only ErrUnavailable: a store that has been removed is unusable, too
			}
			if first {
				close(h.asked)
			}
		}()
	}
	return h.asked
}

// trouble returns an error if the store does not work, and nil otherwise.
func (h *health) trouble() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.read != nil:
		return h.read
	case h.write != nil && time.Since(h.written) < h.pause:
		return h.write
	case !h.asking.IsZero() && time.Since(h.asking) > unanswered:
		return errors.New("no answer")
	}
	return nil
}

// ready handles /readyz. The server is ready if it is not closing and its journal can be read and written. The handler waits for
// the journal, for a short time, only before the first read.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.closing() {
		s.fail(w, r, closing())
		return
	}
	asked := s.health.ask(func(ctx context.Context) error {
		_, err := s.cfg.Journal.Runs(ctx, oneRun)
		return err
	})
	known := true
	select {
	case <-asked:
	case <-after(unanswered):
		known = false
	}
	if !known || s.health.trouble() != nil {
		w.Header().Set("Retry-After", retryAfter)
		s.fail(w, r, unavailable())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// unavailable returns the problem sent for a request that the store could not answer but may be able to answer later.
func unavailable() *api.Problem {
	return problem(problems.Unavailable, http.StatusServiceUnavailable, "the database does not answer, or cannot be written: send the request again")
}
