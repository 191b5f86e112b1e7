package serve

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"

	"github.com/stonelayer/stone/internal/problems"
)

const (
	maxStreams = 10_000 // of a server
	ownStreams = 100    // default number of streams per caller
)

// readPlaces returns the number of concurrent reads, in total and for one tenant, so that other tenants always have processors
// for their starts and reads.
func readPlaces() (all, own int) {
	all = max(2, runtime.GOMAXPROCS(0))
	return all, all / 2
}

// A caller has streams of its own. Callers with the same name share them.
type caller struct{ tenant, name string }

// admit counts a stream or a wait of a caller. It returns an error if the server is closing or there are too many. It requires
// s.mu; call s.dismiss when the stream ends.
func (s *Server) admit(who Principal) error {
	most := cmp.Or(who.Streams, s.cfg.Streams, ownStreams)
	key := caller{who.Tenant, who.Name}
	switch {
	case s.closing():
		return closing()
	case s.streamsOf[key] >= most:
		return problem(problems.TooMuch, http.StatusTooManyRequests, "the caller has %d open streams and waits, which is the most: close one", most)
	case s.streams >= maxStreams:
		return problem(problems.TooMuch, http.StatusServiceUnavailable, "the server has %d streams: retry later", maxStreams)
	}
	s.streams++
	s.streamsOf[key]++
	return nil
}

// dismiss ends a stream that was admitted. The caller holds s.mu.
func (s *Server) dismiss(who Principal) {
	key := caller{who.Tenant, who.Name}
	s.streams--
	if s.streamsOf[key]--; s.streamsOf[key] == 0 {
		delete(s.streamsOf, key)
	}
}

// hold counts a request that waits as a stream of its caller, until leave is called.
func (s *Server) hold(who Principal) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(who); err != nil {
		return nil, err
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dismiss(who)
	}, nil
}

// waits maps routes whose requests may wait to a function that reports whether one does. Such requests take a place for each
// read.
var waits = map[string]func(*http.Request) bool{
	"GET /v1/runs": streams, "GET /v1/questions": streams,
	"GET /v1/runs/{id}/result": func(r *http.Request) bool { return r.URL.Query().Has("wait") },
	"GET /v1/runs/{id}/events": func(*http.Request) bool { return true },
}

// reads reports whether a request to a route takes a reading place while its reply is created.
func (s *Server) reads(r route, req *http.Request) bool {
	wait := s.waits[r.pattern]
	return r.role == Read && strings.HasPrefix(r.pattern, "GET ") && (wait == nil || !wait(req))
}

type placeKey struct{}

// read takes a reading place, unless the request has one.
func (s *Server) read(ctx context.Context, tenant string) (leave func(), err error) {
	if ctx.Value(placeKey{}) != nil {
		return func() {}, nil
	}
	return s.places.enter(ctx, nil, tenant)
}

// placed is a reply that is created in a reading place. The place is released once the reply exists, so a slow client occupies
// none.
type placed struct {
	http.ResponseWriter
	leave func()
}

func (p placed) WriteHeader(status int) {
	p.leave()
	p.ResponseWriter.WriteHeader(status)
}

func (p placed) Write(text []byte) (int, error) {
	p.leave()
	return p.ResponseWriter.Write(text)
}

// Unwrap is for http.ResponseController.
func (p placed) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// places are the reading places. A tenant has at most own of them. A free place goes to the waiting tenant with the fewest
// places, and among those to the one that has waited longest since its last place: a tenant with many readers delays only itself.
type places struct {
	mu      sync.Mutex
	free    int
	own     int
	taken   map[string]int // by tenant
	turn    int
	last    map[string]int // the turn at which a tenant got its last place, while it reads or waits
	waiting []*reader      // in order of arrival
}

type reader struct {
	tenant string
	enter  chan struct{} // closed when it has a place
}

func newPlaces(all, own int) *places {
	return &places{free: all, own: own, taken: map[string]int{}, last: map[string]int{}}
}

// enter waits for a place until ctx is done or drain is closed. The reader must call leave.
func (p *places) enter(ctx context.Context, drain <-chan struct{}, tenant string) (leave func(), err error) {
	r := &reader{tenant, make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, r)
	p.give()
	p.mu.Unlock()
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leave(r)
	}
	select {
	case <-r.enter:
		return leave, nil
	default:
	}
	select {
	case <-r.enter:
		return leave, nil
	case <-drain:
		err = closing()
	case <-ctx.Done():
		err = cmp.Or(context.Cause(ctx), errors.New("the reader has gone"))
	}
	leave()
	return nil, err
}

// leave gives up the place of a reader, or its wait for one.
func (p *places) leave(r *reader) {
	select {
	case <-r.enter:
		p.free++
		p.taken[r.tenant]--
	default:
		for i, other := range p.waiting {
			if other == r {
				p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
				break
			}
		}
	}
	p.give()
	if p.taken[r.tenant] == 0 && !p.waits(r.tenant) {
		delete(p.taken, r.tenant)
		delete(p.last, r.tenant)
	}
}

func (p *places) waits(tenant string) bool {
	for _, r := range p.waiting {
		if r.tenant == tenant {
			return true
		}
	}
	return false
}

// give assigns the free places in turn.
func (p *places) give() {
	for p.free > 0 {
		next := -1
		for i, r := range p.waiting {
			if p.taken[r.tenant] < p.own && (next < 0 || p.before(r.tenant, p.waiting[next].tenant)) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		r := p.waiting[next]
		p.waiting = append(p.waiting[:next], p.waiting[next+1:]...)
		p.turn++
		p.free--
		p.taken[r.tenant]++
		p.last[r.tenant] = p.turn
		close(r.enter)
	}
}

// before reports whether a tenant comes before another.
func (p *places) before(a, b string) bool {
	if p.taken[a] != p.taken[b] {
		return p.taken[a] < p.taken[b]
	}
	return p.last[a] < p.last[b]
}
