package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/stonelayer/stone/internal/sse"
)

// Now, as the argument after of [Client.Events], requests only events that occur from now on.
const Now = "now"

// quiet is how long a stream may receive no data before the client regards it as broken. A server sends data at least every 15 s.
const quiet = 45 * time.Second

// Events yields the events of a run that follow the event with the id after, until the run is over. If after is empty, it yields
// all events; if after is [Now], only new events. If the connection breaks or the server restarts, Events reconnects. It yields
// each event once, unless an event with Reset announces that all events follow again. After an error, the iteration ends.
func (c *Client) Events(ctx context.Context, run, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s := stream{client: c, request: request{
			method: http.MethodGet, path: path("runs", run, "events"), accept: "text/event-stream", after: after, repeat: true,
		}}
		for w := forever(); ; {
			was := s.request.after
			err := s.read(ctx, yield)
			if errors.Is(err, errOver) {
				return
			}
			if s.request.after != was {
				w = forever() // the connection worked: the pauses after later failures start short again
			}
			if err := w.wait(ctx, err); err != nil {
				yield(Event{}, cmp.Or(context.Cause(ctx), err))
				return
			}
		}
	}
}

// A stream reads the events of a run, over one or more connections.
type stream struct {
	client  *Client
	request request
}

// errOver means that a stream has ended because the run is over or the caller has stopped the iteration.
var errOver = errors.New("the stream is over")

// read yields the events of one connection. The error is of the type unavailable if the connection broke.
func (s *stream) read(ctx context.Context, yield func(Event, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := s.client.send(ctx, s.request)
	if err != nil {
		return given(err)
	}
	defer resp.Body.Close()
	dead := time.AfterFunc(quiet, cancel)
	defer dead.Stop()
	var events sse.Reader
	for buffer := make([]byte, 32<<10); ; {
		n, err := resp.Body.Read(buffer)
		dead.Reset(quiet)
		events.Feed(buffer[:n])
		for {
			e, ok, err := events.Next()
			if err != nil {
				return err
			}
			if id := events.LastID(); id != "" {
				s.request.after = id
			}
			if !ok {
				break
			}
			event := Event{ID: s.request.after}
			if err := json.Unmarshal(e.Data, &event); err != nil {
				return fmt.Errorf("an event cannot be read: %w", err)
			}
			if !yield(event, nil) || event.Run != nil && event.Run.Over() {
				return errOver
			}
		}
		if err != nil {
			return unavailable{error: err}
		}
	}
}
