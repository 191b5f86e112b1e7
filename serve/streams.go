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
	maxStreams = 10_000 // maximum number of streams per server
	ownStreams = 100    // default number of streams per caller
)

// readPlaces returns the maximum number of concurrent reads, in total and for one tenant. The limits leave processors free for
// other tenants' starts and reads.
func readPlaces() (all, own int) {
	all = max(2, runtime.GOMAXPROCS(0))
	return all, all / 2
}

// A caller identifies a caller whose streams are counted. Callers with the same name share one limit.
type caller struct{ tenant, name string }

// admit counts a stream or a wait of a caller. It returns an error if the server is closing or the limit is reached. The caller
// of admit holds s.mu, and must call s.dismiss when the stream ends.
func (s *Server) admit(who Principal) error {
	most := cmp.Or(who.Streams, s.cfg.Streams, ownStreams)
	key := caller{who.Tenant, who.Name}
	switch {
	case s.closing():
		return closing()
	case s.streamsOf[key] >= most:
		return problem(problems.TooMuch, http.StatusTooManyRequests, "the caller has reached the limit of %d open streams and waits: close one", most)
	case s.streams >= maxStreams:
		return problem(problems.TooMuch, http.StatusServiceUnavailable, "the server has %d streams: retry later", maxStreams)
	}
	s.streams++
	s.streamsOf[key]++
	return nil
}

// dismiss stops counting a stream that was admitted. The caller holds s.mu.
func (s *Server) dismiss(who Principal) {
	key := caller{who.Tenant, who.Name}
	s.streams--
	if s.streamsOf[key]--; s.streamsOf[key] == 0 {
		delete(s.streamsOf, key)
	}
}

// hold counts a waiting request as one of its caller's streams until leave is called.
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

// waits maps routes whose requests may wait to functions that report whether a request does. A waiting request takes a reading
// place for every single read instead of one for its whole duration.
var waits = map[string]func(*http.Request) bool{
	"GET /v1/runs": streams, "GET /v1/questions": streams,
	"GET /v1/runs/{id}/result": func(r *http.Request) bool { return r.URL.Query().Has("wait") },
	"GET /v1/runs/{id}/events": func(*http.Request) bool { return true },
}

// reads reports whether a request occupies a reading place while its reply is created.
func (s *Server) reads(r route, req *http.Request) bool {
	wait := s.waits[r.pattern]
	return r.role == Read && strings.HasPrefix(r.pattern, "GET ") && (wait == nil || !wait(req))
}

type placeKey struct{}

// read takes a reading place, unless the request already has one.
func (s *Server) read(ctx context.Context, tenant string) (leave func(), err error) {
	if ctx.Value(placeKey{}) != nil {
		return func() {}, nil
	}
	return s.places.enter(ctx, nil, tenant)
}

// placed is the writer of a reply that is created in a reading place. The place is released when the reply is first written, so a
// slow client does not occupy it.
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

// Unwrap lets http.ResponseController find the underlying writer.
func (p placed) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// places limits concurrent reads. A tenant occupies at most own places. A free place goes to the waiting tenant that occupies the
// fewest or, if several do, to the one whose last turn was longest ago. So a tenant with many readers delays only itself.
type places struct {
	mu      sync.Mutex
	free    int
	own     int
	taken   map[string]int // occupied places, by tenant
	turn    int
	last    map[string]int // turn in which a tenant last received a place; kept while the tenant reads or waits
	waiting []*reader      // in order of arrival
}

type reader struct {
	tenant string
	enter  chan struct{} // closed when the reader has a place
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

// give assigns free places to waiting readers.
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

// before reports whether tenant a is served before tenant b.
func (p *places) before(a, b string) bool {
	if p.taken[a] != p.taken[b] {
		return p.taken[a] < p.taken[b]
	}
	return p.last[a] < p.last[b]
}
