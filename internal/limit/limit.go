package limit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Limits limits the requests to a server. A zero field means unlimited.
type Limits struct {
	RequestsPerMinute int // the number of requests that start within any minute
	TokensPerMinute   int // tokens of inputs and answers; see Request.Tokens
	Concurrency       int // number of concurrent requests
}

// A Limiter delays requests until its limits and the server allow them to start. The zero Limiter has no limits of its own. It is
// safe for concurrent use.
type Limiter struct {
	limits Limits

	mu      sync.Mutex
	minute  minute
	running int
	queues  [2]queue // the queues for other and for interactive requests
	row     int      // number of interactive requests that have started in a row while others were waiting
	order   [2]order // order of each queue
	server  server
	timer   *time.Timer // calls advance at the time when the next request may start
}

// New returns a Limiter with the given limits. A negative limit means unlimited.
func New(l Limits) *Limiter { return &Limiter{limits: l} }

// Limits returns the limits that the Limiter was created with.
func (l *Limiter) Limits() Limits { return l.limits }

// A Request describes a request that waits to be sent to the server.
type Request struct {
	// Tokens is an estimate, which is reserved until Place.Leave reports the actual number. A request with more tokens than the
	// limit per minute waits until no other request has used tokens within the last minute.
	Tokens int
	// Patience is the maximum time for which the request waits for a server's pause to end. Zero means unlimited.
	Patience time.Duration
	// Waiting is called on the caller's goroutine, at intervals of Every, while the request is waiting. It may be nil.
	Waiting func(Wait)
	Every   time.Duration // zero means 5 seconds
}

// A Wait describes the current state of a waiting request.
type Wait struct {
	Reason  string        // why the request is waiting, such as "at most 60 requests a minute"
	Ahead   int           // number of requests before it in its queue
	Elapsed time.Duration // the time since the request started waiting
}

// String returns a description of the wait in words.
func (w Wait) String() string {
	s := fmt.Sprintf("waiting for %v: %s", w.Elapsed.Round(time.Second), w.Reason)
	if w.Ahead > 0 {
		s += fmt.Sprintf("; %d requests are ahead of it", w.Ahead)
	}
	return s
}

// A TooLateError reports a request that was not sent because it would have to wait beyond its deadline or its patience, no matter
// how many tokens the running requests use.
type TooLateError struct {
	Reason   string
	Wait     time.Duration // minimum waiting time
	Patience time.Duration // the request's Patience; zero if Wait exceeds the context's deadline
}

// Error returns a message with the length of the wait and the reason for it.
func (e *TooLateError) Error() string {
	beyond := "its deadline"
	if e.Patience > 0 {
		beyond = fmt.Sprintf("the longest wait of %v", e.Patience)
	}
	return fmt.Sprintf("no request may be sent for %v, beyond %s: %s", e.Wait.Round(time.Millisecond), beyond, e.Reason)
}

// Retryable returns true, because the same request can be sent later.
func (e *TooLateError) Retryable() bool { return true }

// A Rank determines the order in which the requests of a run start relative to other requests.
type Rank struct {
	// Interactive marks requests that a person is waiting for. They take precedence over others: see the package comment.
	Interactive bool `json:"interactive,omitempty"`
	// Tenant is the owner of the run. Tenants take turns: the tenant that was served least recently is next.
	Tenant string `json:"tenant,omitempty"`
	// Requests with a higher Priority start first. However, after three requests in a row have overtaken the request that has
	// waited longest, this request is next, regardless of its priority.
	Priority int `json:"priority,omitempty"`
}

type rankKey struct{}

// Ranked returns a copy of ctx in which requests have the given rank. Without Ranked, requests have the zero Rank.
func Ranked(ctx context.Context, r Rank) context.Context {
	return context.WithValue(ctx, rankKey{}, r)
}

// RankOf returns the rank of the requests made with the context ctx.
func RankOf(ctx context.Context) Rank {
	r, _ := ctx.Value(rankKey{}).(Rank)
	return r
}

type watchKey struct{}

// Watch returns a copy of ctx in which watch is called for each request that had to wait, with the duration of the wait. It is
// called even if the request is then refused. The calls may be concurrent.
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

// Enter waits until the request may be sent and returns its Place. The caller must call the Place's Leave method when the request
// has ended. If ctx is done first, the error is the cause of ctx; if the request would have to wait too long, it is a
// *TooLateError.
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

// wait waits until the waiter may start.
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

// state returns the current state of the waiter's wait.
func (l *Limiter) state(w *waiter) Wait {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, reason := l.mayStart(w.tokens, time.Now(), planned)
	return Wait{Reason: cmp.Or(reason, "others are ahead of it"), Ahead: l.ahead(w), Elapsed: time.Since(w.since)}
}

// remove removes a waiter that has given up from its queue, and calls advance, because the timer may have been set for this
// waiter.
func (l *Limiter) remove(w *waiter) {
	l.drop(w)
	l.advance()
}

// drop removes a waiter from its queue. If the caller is not advance, it must call advance afterwards.
func (l *Limiter) drop(w *waiter) {
	q := &l.queues[w.class]
	*q = slices.DeleteFunc(*q, func(other *waiter) bool { return other == w })
}

// A Place represents a request that has been allowed to start. Its methods may be called on a nil Place.
type Place struct {
	limiter  *Limiter
	number   uint64
	tokens   int    // number of reserved tokens
	spent    *spent // entry that counts the request and its tokens
	answered bool
	left     bool
}

// Leave reports that the request has ended and has used the given number of tokens. If the number is negative, it is unknown, and
// the estimate is kept. Only the first call has an effect.
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

// Heard records the limits that the server reported in its response to this request.
func (p *Place) Heard(a Answer) {
	if p == nil {
		return
	}
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.limiter.server.heard(p, a, time.Now())
	p.limiter.advance()
}

// order determines which waiter in a queue is next.
type order struct {
	row    int // number of requests in a row that have overtaken a request that has waited longer
	served map[string]uint64
	clock  uint64
}

// next returns the waiter whose turn it is, or nil if the queue is empty. It selects the waiter with the highest priority; among
// equals, the waiter whose tenant was served least recently; and among these, the waiter that has waited longest. After inRow
// waiters in a row have overtaken the longest-waiting one, that waiter is next.
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

// start records that a waiter starts. It must be called before the waiter leaves the queue.
func (o *order) start(q queue, w *waiter) {
	if o.row++; q[0] == w {
		o.row = 0
	}
	if o.served == nil || len(o.served) > 1000 && !slices.ContainsFunc(q, func(other *waiter) bool { return other.rank.Tenant != w.rank.Tenant }) {
		o.served = map[string]uint64{} // all waiters have the same tenant, so none loses its turn
	}
	o.clock++
	o.served[w.rank.Tenant] = o.clock
}
