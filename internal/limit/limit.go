package limit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Limits restrict the requests to a server. Zero means unlimited.
type Limits struct {
	RequestsPerMinute int // started in any minute
	TokensPerMinute   int // tokens of input and answers; see Request.Tokens
	Concurrency       int // concurrent requests
}

// A Limiter lets requests start as its limits and the server allow. The zero value has no
// limits of its own. It is safe for concurrent use.
type Limiter struct {
	limits Limits

	mu      sync.Mutex
	minute  minute
	running int
	queues  [2]queue // one for other requests, one for interactive ones
	row     int      // interactive requests started in a row while others waited
	order   [2]order // of the queues
	server  server
	timer   *time.Timer // calls advance when only time delays the next request
}

// New returns a Limiter with the limits. Negative limits mean unlimited.
func New(l Limits) *Limiter { return &Limiter{limits: l} }

// Limits returns the limits with which the Limiter was created.
func (l *Limiter) Limits() Limits { return l.limits }

// A Request describes a request for a place.
type Request struct {
	// Tokens is an estimate, which is reserved until Place.Leave reports the actual number. A request with more tokens than the
	// limit per minute waits for a minute of its own.
	Tokens int
	// Patience is the longest server pause that the request accepts; zero means unlimited.
	Patience time.Duration
	// Waiting is called on the caller's goroutine, once in Every, while the request waits. It may be nil.
	Waiting func(Wait)
	Every   time.Duration // default 5 s
}

// A Wait describes how a request waits.
type Wait struct {
	Reason  string        // such as "at most 60 requests a minute"
	Ahead   int           // the requests before it in its queue
	Elapsed time.Duration // since it started to wait
}

// String returns the wait in words.
func (w Wait) String() string {
	s := fmt.Sprintf("waiting for %v: %s", w.Elapsed.Round(time.Second), w.Reason)
	if w.Ahead > 0 {
		s += fmt.Sprintf("; %d requests are before it", w.Ahead)
	}
	return s
}

// A TooLateError reports a request that was not sent because it would have to wait beyond its deadline or its patience, whatever
// running requests use.
type TooLateError struct {
	Reason   string
	Wait     time.Duration // at least
	Patience time.Duration // the request's Patience; zero if Wait exceeds the context's deadline
}

// Error returns the length of the wait and its reason.
func (e *TooLateError) Error() string {
	beyond := "its deadline"
	if e.Patience > 0 {
		beyond = fmt.Sprintf("the longest wait of %v", e.Patience)
	}
	return fmt.Sprintf("no request may be sent for %v, beyond %s: %s", e.Wait.Round(time.Millisecond), beyond, e.Reason)
}

// Retryable returns true: the same request may be sent later.
func (e *TooLateError) Retryable() bool { return true }

// A Rank determines when the requests of a run start relative to others.
type Rank struct {
	// Interactive marks requests that a person waits for. They start before others, see the package comment.
	Interactive bool `json:"interactive,omitempty"`
	// Tenant is the owner of the run. Tenants take turns: the tenant that was served least recently is next.
	Tenant string `json:"tenant,omitempty"`
	// Requests of higher Priority go first. One place in four goes to the request that has waited longest, whatever its priority.
	Priority int `json:"priority,omitempty"`
}

type rankKey struct{}

// Ranked returns a context whose requests have a rank. Requests of other contexts have the zero Rank.
func Ranked(ctx context.Context, r Rank) context.Context {
	return context.WithValue(ctx, rankKey{}, r)
}

// RankOf returns the rank of a context's requests.
func RankOf(ctx context.Context) Rank {
	r, _ := ctx.Value(rankKey{}).(Rank)
	return r
}

type watchKey struct{}

// Watch returns a context in which watch is called with the time that a request waited, even if it was then refused. It is not
// called for requests that need not wait. Several goroutines may call watch at once.
func Watch(ctx context.Context, watch func(time.Duration)) context.Context {
	return context.WithValue(ctx, watchKey{}, watch)
}

// A waiter is a request in a queue.
type waiter struct {
	tokens   int
	patience time.Duration
	class    int
	rank     Rank
	since    time.Time
	done     chan struct{} // closed when place or err is set
	place    *Place
	err      error
}

type queue []*waiter

// Enter waits until the request may be sent. The caller must call Leave on the place when the request is over. The end of the
// context ends the wait. The error is the context's cause or a *TooLateError.
func (l *Limiter) Enter(ctx context.Context, r Request) (*Place, error) {
	w := &waiter{tokens: max(r.Tokens, 0), patience: r.Patience, rank: RankOf(ctx), since: time.Now(), done: make(chan struct{})}
	if w.rank.Interactive {
		w.class = 1
	}
	deadline, _ := ctx.Deadline()
	l.mu.Lock()
	l.queues[w.class] = append(l.queues[w.class], w)
	l.advance()
	if w.place == nil && w.err == nil && !deadline.IsZero() {
		if at, reason := l.earliest(w); at.After(deadline) {
			w.err = &TooLateError{Reason: reason, Wait: at.Sub(w.since)}
			l.remove(w)
		}
	}
	place, err := w.place, w.err
	l.mu.Unlock()
	if place != nil || err != nil {
		return place, err
	}
	defer pause(ctx)()
	if watch, ok := ctx.Value(watchKey{}).(func(time.Duration)); ok {
		defer func() { watch(time.Since(w.since)) }()
	}
	return l.wait(ctx, r, w)
}

// wait waits until the waiter has a place.
func (l *Limiter) wait(ctx context.Context, r Request, w *waiter) (*Place, error) {
	tell := time.NewTicker(cmp.Or(r.Every, 5*time.Second))
	defer tell.Stop()
	for {
		select {
		case <-w.done:
			return w.place, w.err
		case <-ctx.Done():
			l.mu.Lock()
			place, err := w.place, w.err
			l.remove(w)
			l.mu.Unlock()
			if place == nil && err == nil {
				return nil, context.Cause(ctx)
			}
			return place, err
		case <-tell.C:
			if r.Waiting != nil {
				r.Waiting(l.state(w))
			}
		}
	}
}

// state describes how the waiter waits.
func (l *Limiter) state(w *waiter) Wait {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, reason := l.mayStart(w.tokens, time.Now(), planned)
	return Wait{Reason: cmp.Or(reason, "others are before it"), Ahead: l.ahead(w), Elapsed: time.Since(w.since)}
}

// remove removes a waiter that gives up from its queue. The timer may have been set for it, so the queue advances.
func (l *Limiter) remove(w *waiter) {
	l.drop(w)
	l.advance()
}

// drop removes a waiter from its queue. The caller must be advance or advance afterwards.
func (l *Limiter) drop(w *waiter) {
	q := &l.queues[w.class]
	*q = slices.DeleteFunc(*q, func(other *waiter) bool { return other == w })
}

// A Place is an admitted request. Its methods may be called on a nil Place.
type Place struct {
	limiter  *Limiter
	number   uint64
	tokens   int    // reserved
	spent    *spent // where they are counted
	answered bool
	left     bool
}

// Leave ends the request. Tokens is its usage; a negative number means that it is unknown, and keeps
// the estimate. Only the first call counts.
func (p *Place) Leave(tokens int) {
	if p == nil {
		return
	}
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	l.running--
	l.server.answered(p)
	l.minute.settle(p, tokens, time.Now())
	if l.server.probe == p {
		l.server.probe = nil
	}
	l.advance()
}

// Heard notes the server's limits from its answer to this request.
func (p *Place) Heard(a Answer) {
	if p == nil {
		return
	}
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.limiter.server.heard(p, a, time.Now())
	p.limiter.advance()
}

// order decides whose turn it is in a queue.
type order struct {
	row    int // started in a row before a longer-waiting one
	served map[string]uint64
	clock  uint64
}

// next returns the waiter whose turn it is, or nil: the highest priority, then the tenant served least recently, then the longest
// wait. After inRow waiters have passed the longest-waiting one, it is next.
func (o *order) next(q queue) *waiter {
	if len(q) == 0 {
		return nil
	}
	best := q[0]
	if o.row >= inRow {
		return best
	}
	for _, w := range q[1:] {
		if w.rank.Priority > best.rank.Priority || w.rank.Priority == best.rank.Priority && o.served[w.rank.Tenant] < o.served[best.rank.Tenant] {
			best = w
		}
	}
	return best
}

// start notes that a waiter starts, before it leaves the queue.
func (o *order) start(q queue, w *waiter) {
	if o.row++; q[0] == w {
		o.row = 0
	}
	if o.served == nil || len(o.served) > 1000 && !slices.ContainsFunc(q, func(other *waiter) bool { return other.rank.Tenant != w.rank.Tenant }) {
		o.served = map[string]uint64{} // no waiter can lose its turn
	}
	o.clock++
	o.served[w.rank.Tenant] = o.clock
}
