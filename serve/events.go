package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// beat is how often an idle stream gets a comment, so that what lies between does not
// take it for dead.
const beat = 15 * time.Second

// getEvents streams a run: an event "step" for each start and end of a step, whose id is
// its position in the journal, and an event "state" for each state in which the run
// stops. The stream ends when the run is over. A client that comes back with
// Last-Event-ID misses nothing and gets nothing twice.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request, who Principal) error {
	from, err := position(r)
	if err != nil {
		return err
	}
	info, err := s.find(r, who)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	out := &eventStream{w: w, flush: http.NewResponseController(w), last: from}
	out.comment()
	for state := journal.State(""); ; {
		if err := s.follow(r.Context(), info.ID, out); err != nil || out.err != nil {
			return nil // the client has gone, or comes back
		}
		if info, err = s.exactly(r.Context(), info.ID); err != nil {
			return nil
		}
		if info.State != state && info.State != journal.Running {
			state = info.State
			described := run(who, info)
			out.send("state", 0, api.Event{Run: &described})
		}
		if out.err != nil || run(who, info).Over() || s.closing() {
			return nil
		}
		if waitFor(r.Context(), after(pollEvery)) != nil {
			return nil
		}
		out.idle()
	}
}

// position returns the row after which a client wants to go on.
func position(r *http.Request) (int64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, unreadable("Last-Event-ID is %q: want the id of an event", text)
	}
	return n, nil
}

// follow sends the rows of a run until nobody holds it.
func (s *Server) follow(ctx context.Context, run string, out *eventStream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a stream that is only waiting ends with the server
		select {
		case <-s.drain:
			cancel()
		case <-ctx.Done():
		}
	}()
	for row, err := range s.cfg.Journal.Follow(ctx, run, out.last) {
		if err != nil {
			return err
		}
		out.send("step", row.Seq, api.Event{Step: &row})
		if out.err != nil {
			return out.err
		}
	}
	return nil
}

// eventStream writes server-sent events.
type eventStream struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	last  int64 // the id of the last event
	wrote time.Time
	err   error // of the connection
}

// send writes an event. An id of 0 is none.
func (e *eventStream) send(name string, id int64, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		e.err = err
		return
	}
	frame := "event: " + name + "\n"
	if id > 0 {
		e.last = id
		frame = fmt.Sprintf("id: %d\n%s", id, frame)
	}
	e.write(fmt.Sprintf("%sdata: %s\n\n", frame, text))
}

func (e *eventStream) comment() { e.write(": \n\n") }

// idle writes a comment if nothing was written for a while.
func (e *eventStream) idle() {
	if time.Since(e.wrote) > beat {
		e.comment()
	}
}

func (e *eventStream) write(frame string) {
	// A client that reads nothing must not hold the server.
	_ = e.flush.SetWriteDeadline(time.Now().Add(bodyTime))
	if _, e.err = e.w.Write([]byte(frame)); e.err == nil {
		e.err = e.flush.Flush()
	}
	e.wrote = time.Now()
}
