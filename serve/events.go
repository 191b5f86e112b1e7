package serve

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// beat is the interval between comments on an idle stream. The comments make proxies keep the connection open.
const beat = 15 * time.Second

// getEvents streams a run: it sends an event "step" when a step starts or ends, and an event "state" when the run stops. The
// stream ends when the run is over or the server shuts down. A client that reconnects with Last-Event-ID, to any server that
// shares the journal, receives every event once. If the run no longer has this event, because the run was removed and started
// again or the journal lost rows, the stream sends an event "reset" and then all events from the first step on. With said=true,
// the stream also sends events "said" with the answers that models are writing, if this process executes the run. A client that
// reconnects after the end gets status 204 and no stream, which stops an EventSource.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request, who Principal) error {
	info, err := s.find(r, who)
	if err != nil {
		return err
	}
	listens := listener{s: s}
	if text := r.URL.Query().Get("said"); text != "" {
		said, err := strconv.ParseBool(text)
		if err != nil {
			return unreadable("said is %q: want true or false", text)
		}
		if said {
			listens.run = info.ID
		}
	}
	at, reset, err := s.placeOf(r, info.ID)
	if err != nil {
		return err
	}
	if at.state != "" && !reset && r.Header.Get("Last-Event-ID") != "" && s.nothingAfter(r.Context(), info, at) {
		w.WriteHeader(http.StatusNoContent) // stops an EventSource from reconnecting
		return nil
	}
	f, leave, err := s.join(who, info.ID, at)
	if err != nil {
		return err
	}
	defer leave()
	out := newEventStream(w)
	out.at = at
	// A client whose stream starts at "now" must know its place in the stream before the first event.
	out.write([]byte(": \n"))
	if at != (place{}) && at.String() != r.Header.Get("Last-Event-ID") {
		out.write([]byte("id: " + at.String() + "\n"))
	}
	out.write([]byte("\n"))
	if reset {
		next, err := newFrame(place{}, "reset", api.Event{Reset: true})
		if err != nil {
			return err
		}
		out.write(next.text)
	}
	out.send()
	s.stream(r, who, f, out, &listens)
	return nil // the client is gone or will reconnect
}

// nothingAfter reports whether no event can follow a place, because the state there is the last event of the run.
func (s *Server) nothingAfter(ctx context.Context, info journal.RunInfo, at place) bool {
	last, err := s.cfg.Journal.Last(ctx, info.ID)
	return err == nil && last == at.seq && info.State == at.state && api.Run{State: info.State}.Over()
}

// placeOf returns the place after which a request's stream starts. The place is given by the header Last-Event-ID or else by the
// parameter after, which may be "now". The result reset is true if the run has no such place; the stream then starts at the first
// step.
func (s *Server) placeOf(r *http.Request, run string) (at place, reset bool, err error) {
	text := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if text == "" {
		return at, false, nil
	}
	if text != "now" {
		if at, err = readPlace(text); err != nil {
			return at, false, err
		}
	}
	last, err := s.cfg.Journal.Last(r.Context(), run)
	switch {
	case err != nil:
		return at, false, err
	case text == "now":
		return place{seq: last}, false, nil
	case at.seq > last:
		return place{}, true, nil
	}
	return at, false, nil
}

// still reports whether a caller may still read its stream.
func (s *Server) still(r *http.Request, who Principal) bool {
	if _, inside := r.Context().Value(callerKey{}).(Principal); inside {
		return true
	}
	now, err := s.access().Principal(s.withToken(r))
	return err == nil && now.Tenant == who.Tenant && now.may(Read)
}

// A pulse keeps the connection of a stream alive while nothing happens.
type pulse struct {
	s     *Server
	r     *http.Request
	who   Principal
	beats *time.Ticker
}

func newPulse(s *Server, r *http.Request, who Principal) pulse {
	return pulse{s, r, who, time.NewTicker(beat)}
}

func (p pulse) stop() { p.beats.Stop() }

// wait returns true when there is news or a piece of an answer, or after a beat. It returns false if the stream must end because
// the client is gone, the client may no longer read the run, or the server is closing.
func (p pulse) wait(out *eventStream, news, said <-chan struct{}) bool {
	select {
	case <-news:
	case <-said:
	case <-p.beats.C:
		if !p.s.still(p.r, p.who) {
			return false
		}
		out.write([]byte(": \n\n"))
		out.send()
	case <-p.s.drain:
		return false
	case <-p.r.Context().Done():
		return false
	}
	return true
}

// stream sends the events of a feed until the feed ends, the client is gone or is no longer permitted to read it, or the server
// shuts down.
func (s *Server) stream(r *http.Request, who Principal, f *feed, out *eventStream, listens *listener) {
	p := newPulse(s, r, who)
	defer p.stop()
	for out.err == nil {
		frames, news, behind, over := f.after(out.at)
		switch {
		case behind:
			if err := s.catchUp(r.Context(), f, out); err != nil {
				return
			}
			continue
		case len(frames) > 0:
			for _, next := range frames {
				out.frame(next)
			}
			out.send()
			continue
		case over:
			return
		}
		if !p.wait(out, news, listens.tell(out)) {
			return
		}
	}
}

// catchUp reads the rows that the feed has already dropped from the journal, and sends them. If the journal has none, the stream
// continues at the feed's first frame, so each call makes progress.
func (s *Server) catchUp(ctx context.Context, f *feed, out *eventStream) error {
	from := f.oldest()
	frames, err := s.earlier(ctx, f, out.at)
	if err != nil {
		return err
	}
	for _, next := range frames {
		out.frame(next)
	}
	if len(frames) == 0 && out.at.seq < from.seq {
		out.at = from
	}
	out.send()
	return out.err
}

// earlier reads the next rows after a place, up to the first row of the feed. All are read before any is sent, so a slow client
// does not delay others.
func (s *Server) earlier(ctx context.Context, f *feed, at place) (frames []frame, err error) {
	leave, err := s.places.enter(ctx, s.drain, f.who.Tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	const most = 64
	for row, err := range s.rows(ctx, f.who, f.run, at.seq) {
		if err != nil {
			return nil, err
		}
		next, err := stepFrame(row)
		if err != nil {
			return nil, err
		}
		frames = append(frames, next)
		if _, _, behind, _ := f.after(next.place); !behind || len(frames) == most {
			break
		}
	}
	return frames, nil
}

// An eventStream writes server-sent events.
type eventStream struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	at    place // place of the last event sent
	err   error // first error when writing to the connection
}

// newEventStream sets the headers of a reply that is a stream of events.
func newEventStream(w http.ResponseWriter) *eventStream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	return &eventStream{w: w, flush: http.NewResponseController(w)}
}

func (e *eventStream) frame(f frame) {
	if e.write(f.text); e.err == nil {
		e.at = f.place
	}
}

func (e *eventStream) write(text []byte) {
	if e.err != nil {
		return
	}
	// A client that reads nothing must not block the server.
	_ = e.flush.SetWriteDeadline(time.Now().Add(bodyTime))
	_, e.err = e.w.Write(text)
}

// send sends the written text.
func (e *eventStream) send() {
	if e.err == nil {
		e.err = e.flush.Flush()
	}
}

// over reports whether a run in the given state has stopped and will not continue by itself.
func over(state journal.State) bool {
	return state == journal.Done || state == journal.Failed || state == journal.Canceled
}
