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

// health holds the results of journal operations, which tell about its store. /readyz answers from it, and so
// at once, whatever the store does.
type health struct {
	log *slog.Logger

	mu      sync.Mutex
	asked   chan struct{} // closed when the first read ended; nil before it started
	asking  time.Time     // when the present read for /readyz started; zero if there is none
	read    error         // of the last read
	write   error         // of a write that failed, until one like it succeeds
	failed  writing       // that write
	written time.Time     // when it failed
	pause   time.Duration // how long it keeps the server from being ready
	down    bool          // the log says so
}

// A writing is a write to the store.
type writing struct {
	operation string
	size      int // about, in units of 16 KB
}

const (
	// unwritable is how long a failed write keeps a server from being ready, unless one like it succeeds before: on a full disk, a
	// small one may. Then the requests that it gets are the next try, after which it is twice as long.
	unwritable     = 10 * time.Second
	longUnwritable = 5 * time.Minute
	// unanswered is how long a read may take before the server is not ready.
	unanswered = 2 * time.Second
	// retryAfter is when a client should repeat a request that the store could not answer.
	retryAfter = "5"
)

// reads notes how a read ended.
func (h *health) reads(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && !errors.Is(err, journal.ErrUnavailable) {
		return // it says something about a run, and nothing about the store
	}
	h.read = err
	h.tell(err)
}

// writes notes how a write ended.
func (h *health) writes(w writing, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, journal.ErrUnavailable):
		if h.write == nil || time.Since(h.written) >= h.pause { // else it is the same trouble
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

// tell logs that the store is in trouble, and that it no longer is. Requests do not write to the log
// each time. The caller holds h.mu.
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

// ask starts a read unless there is one, and returns a channel that is closed when the first one has
// ended.
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
				h.read = err // any error: a store that is gone for good does no work either
			}
			if first {
				close(h.asked)
			}
		}()
	}
	return h.asked
}

// trouble returns why the store does not take work, or nil.
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

// ready says whether the server takes work: it is not closing, and its journal can be read and
// written. It waits for the journal only if that was never read, at most for a moment.
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

// unavailable is the problem of a request that the store could not answer, though it may later.
func unavailable() *api.Problem {
	return problem(problems.Unavailable, http.StatusServiceUnavailable, "the database does not answer, or cannot be written: send the request again")
}
