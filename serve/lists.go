package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone/journal"
)

// A list is a list of runs or questions that callers may watch.
type list struct {
	name string // unique among the lists of the caller's tenant
	read func(context.Context) (any, error)
}

// sendList replies with a list. A caller that accepts an event stream receives the list at once and again after each change. An
// event's id is the digest of the list: a client that reconnects with this id, to any server that shares the journal, receives
// the next event once the list differs. A client therefore always receives the newest list, but may miss earlier versions.
func (s *Server) sendList(w http.ResponseWriter, r *http.Request, who Principal, l list) error {
	if !streams(r) {
		all, err := l.read(r.Context())
		if err != nil {
			return err
		}
		return reply(w, http.StatusOK, all)
	}
	watched, leave, err := s.watch(who, l)
	if err != nil {
		return err
	}
	defer leave()
	out := newEventStream(w)
	out.write([]byte(": \n\n"))
	out.send()
	p := newPulse(s, r, who)
	defer p.stop()
	for at := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")); out.err == nil; {
		id, event, news, over := watched.now()
		switch {
		case over:
			return nil // the client reconnects
		case id != "" && id != at:
			at = id
			out.write(event)
			out.send()
			continue
		}
		if !p.wait(out, news, nil) {
			return nil
		}
	}
	return nil // the client has gone
}

// streams reports whether the sender of a request accepts a stream of events.
func streams(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// watched is a list that is read once for all clients of a tenant that are watching it, until the last client leaves. Only the
// newest event is kept, so a slow client costs no more than a fast one.
type watched struct {
	cancel  context.CancelFunc
	clients int // guarded by Server.mu

	mu    sync.Mutex
	id    string // id of the event; empty until the list has been read
	event []byte
	news  chan struct{} // closed when anything changes
	over  bool          // the list cannot be read
}

// watch adds a client to a watched list. The client must call leave when it stops watching.
func (s *Server) watch(who Principal, l list) (w *watched, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(who); err != nil {
		return nil, nil, err
	}
	key := feedKey{who.Tenant, l.name}
	if w = s.lists[key]; w == nil || w.ended() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(s.cfg.Base()))
		w = &watched{cancel: cancel, news: make(chan struct{})}
		s.lists[key] = w
		go w.follow(ctx, s, who.Tenant, l)
	}
	w.clients++
	return w, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dismiss(who)
		if w.clients--; w.clients == 0 {
			w.cancel()
			if s.lists[key] == w {
				delete(s.lists, key)
			}
		}
	}, nil
}

// listsOf returns the number of lists that a tenant's clients are watching.
func (s *Server) listsOf(tenant string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.lists {
		if key.tenant == tenant {
			n++
		}
	}
	return n
}

// now returns the newest event, its id, and the channel news, which is closed when anything changes.
func (w *watched) now() (id string, event []byte, news <-chan struct{}, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.id, w.event, w.news, w.over
}

func (w *watched) ended() bool {
	_, _, _, over := w.now()
	return over
}

// set sets the values that now returns.
func (w *watched) set(id string, event []byte, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.id, w.event, w.over = id, event, over
	close(w.news)
	w.news = make(chan struct{})
}

// restListed is the minimum pause between two reads of a list.
const restListed = 100 * time.Millisecond

// follow reads the list whenever the journal has changed. It then pauses for at least four times the duration of the read,
// multiplied by the number of lists that the tenant is watching. So the reads for one tenant use less than a quarter of one
// processor.
func (w *watched) follow(ctx context.Context, s *Server, tenant string, l list) {
	defer w.cancel()
	for range s.cfg.Journal.Changes(ctx) {
		leave, err := s.places.enter(ctx, nil, tenant)
		if err != nil {
			break
		}
		start := time.Now()
		id, event, err := s.readList(ctx, l)
		took := time.Since(start)
		leave()
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Error("a watched list could not be read", "list", l.name, "error", err)
			}
			break
		}
		if was, _, _, _ := w.now(); id != was {
			w.set(id, event, false)
		}
		if waitFor(ctx, after(max(restListed, 4*took*time.Duration(s.listsOf(tenant))))) != nil {
			break
		}
	}
	w.set("", nil, true)
}

// readList reads a list and returns its event and the event's id.
func (s *Server) readList(ctx context.Context, l list) (id string, event []byte, err error) {
	all, err := l.read(ctx)
	if err != nil {
		return "", nil, err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(text)
	id = hex.EncodeToString(sum[:16])
	return id, fmt.Appendf(nil, "id: %s\nevent: list\ndata: %s\n\n", id, text), nil
}

// each yields the runs that a query selects, reading q.Limit runs at a time. An error ends the iteration.
func each(ctx context.Context, from journal.Journal, q journal.Query) iter.Seq2[journal.RunInfo, error] {
	return func(yield func(journal.RunInfo, error) bool) {
		for q.Limit = cmp.Or(q.Limit, maxPage); ; {
			runs, more, err := pageOf(ctx, from, q)
			if err != nil {
				yield(journal.RunInfo{}, err)
				return
			}
			for _, info := range runs {
				if !yield(info, nil) {
					return
				}
			}
			if !more {
				return
			}
			q.Before = runs[len(runs)-1].ID
		}
	}
}
