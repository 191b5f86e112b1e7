package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A place is the position of a client in the events of a run: the position of a row in the journal and the state, if any, that
// was sent after this row. A place is used as an event's id, so any server can continue a stream from it.
type place struct {
	seq   int64
	state journal.State
}

func (p place) String() string {
	if p.state == "" {
		return strconv.FormatInt(p.seq, 10)
	}
	return fmt.Sprintf("%d-%s", p.seq, p.state)
}

func readPlace(text string) (p place, err error) {
	seq, state, _ := strings.Cut(text, "-")
	if p.seq, err = strconv.ParseInt(seq, 10, 64); err != nil || p.seq < 0 || len(text) > 64 {
		return p, unreadable("Last-Event-ID is %q: want the id of an event, or \"now\"", text)
	}
	p.state = journal.State(state)
	return p, nil
}

// A frame is an event as it is sent to clients.
type frame struct {
	place
	text []byte
}

func newFrame(at place, name string, data api.Event) (frame, error) {
	text, err := json.Marshal(data)
	return frame{at, fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", at, name, text)}, err
}

func stepFrame(row journal.Row) (frame, error) {
	return newFrame(place{seq: row.Seq}, "step", api.Event{Step: &row})
}

// Limits of the frames that a feed keeps for slow or reconnecting clients.
const (
	maxFrames     = 1024
	maxFrameBytes = 1 << 20
)

// A feed holds the newest events of a run for all clients of a tenant that stream the run. One goroutine produces the events as
// long as there are clients.
type feed struct {
	s       *Server
	who     Principal
	run     string
	cancel  context.CancelFunc
	clients int // guarded by Server.mu

	mu     sync.Mutex
	from   place // all frames after this place are in the feed
	last   place
	frames []frame
	bytes  int
	again  context.CancelFunc // cancels the follower's context, so that the follower starts again at the place last
	news   chan struct{}      // closed when anything changes
	over   bool               // there will be no more frames
}

// A feedKey identifies a feed. Tenants know a run by different ids.
type feedKey struct{ tenant, run string }

// join adds a client at a place to the feed of a run. The client must call leave when it stops.
func (s *Server) join(who Principal, run string, at place) (f *feed, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(who); err != nil {
		return nil, nil, err
	}
	key := feedKey{who.Tenant, run}
	if f = s.feeds[key]; f == nil || f.ended() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(s.cfg.Base()))
		f = &feed{s: s, who: who, run: run, cancel: cancel, from: at, last: at, news: make(chan struct{})}
		s.feeds[key] = f
		go f.follow(ctx)
	}
	f.lower(at)
	f.clients++
	return f, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dismiss(who)
		if f.clients--; f.clients == 0 {
			f.cancel()
			if s.feeds[key] == f {
				delete(s.feeds, key)
			}
		}
	}, nil
}

func (f *feed) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// lower makes a feed start at an earlier place, if the feed has no frames yet.
func (f *feed) lower(at place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.frames) > 0 || at.seq >= f.from.seq {
		return
	}
	f.from, f.last = at, at
	if f.again != nil {
		f.again()
	}
}

// after returns the frames after a place. If there are none, it returns the channel news, which is closed when something changes.
// If behind is true, the feed no longer has the next frames, but the journal may have them.
func (f *feed) after(at place) (frames []frame, news <-chan struct{}, behind, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at.seq < f.from.seq {
		return nil, nil, true, false
	}
	next := len(f.frames)
	for next > 0 && f.frames[next-1].seq >= at.seq && f.frames[next-1].place != at {
		next--
	}
	for next < len(f.frames) && f.frames[next].seq == at.seq && f.frames[next].state == "" {
		next++
	}
	return f.frames[next:], f.news, false, f.over
}

// oldest returns the place after which all frames are in the feed.
func (f *feed) oldest() place {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.from
}

// start returns the place at which the follower starts, and a context that lower cancels.
func (f *feed) start(ctx context.Context) (context.Context, place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.again != nil {
		f.again()
	}
	ctx, f.again = context.WithCancel(ctx)
	return ctx, f.last
}

// add appends a frame that follows the given place and returns true. If this place is not the end of the feed, it returns false
// and does nothing.
func (f *feed) add(after place, next frame) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != after {
		return false
	}
	f.last = next.place
	f.frames = append(f.frames, next)
	for f.bytes += len(next.text); len(f.frames) > 1 && (len(f.frames) > maxFrames || f.bytes > maxFrameBytes); f.frames = f.frames[1:] {
		f.bytes -= len(f.frames[0].text)
		f.from = f.frames[0].place
	}
	f.wake()
	return true
}

// wake wakes the clients. The caller holds f.mu.
func (f *feed) wake() {
	close(f.news)
	f.news = make(chan struct{})
}

// follow adds frames to the feed until the run is over or ctx is done. After an error, a client that reconnects starts a new
// feed.
func (f *feed) follow(ctx context.Context) {
	defer func() {
		f.cancel()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.over = true
		f.wake()
	}()
	for was := (journal.RunInfo{}); ; {
		rows, at := f.start(ctx)
		for row, err := range f.s.rows(rows, f.who, f.run, at.seq) {
			if err != nil {
				break
			}
			next, err := stepFrame(row)
			if err != nil || !f.add(at, next) {
				break
			}
			at = next.place
		}
		info, err := f.s.exactly(ctx, f.run)
		if err != nil {
			return
		}
		// A state is sent only after all rows before it: no row was added since the rows were read.
		if rows.Err() == nil && info.State != journal.Running && info.State == was.State && info.Ended.Equal(was.Ended) {
			if told := (place{at.seq, info.State}); told != at {
				described := run(f.who, info)
				next, err := newFrame(told, "state", api.Event{Run: &described})
				if err != nil {
					return
				}
				if !f.add(at, next) {
					continue // a client has lowered the feed
				}
			}
			if over(info.State) {
				return
			}
		}
		changed := info.State != was.State || !info.Ended.Equal(was.Ended)
		if was = info; changed || rows.Err() != nil && ctx.Err() == nil {
			continue
		}
		if waitFor(ctx, after(pollEvery)) != nil {
			return
		}
	}
}
