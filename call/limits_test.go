package call_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/limit"
)

// TestWaits has invocations wait: for their capability, and within it for the server of several. The waits
// are seen, are in no timeout, and end with the context.
func TestWaits(t *testing.T) {
	server := func(l *limit.Limiter) behaviour {
		return func(ctx context.Context, req *call.Request) (*call.Reply, error) {
			place, err := l.Enter(ctx, limit.Request{})
			if err != nil {
				return nil, err
			}
			defer place.Leave(0)
			return after(time.Second, says("a"))(ctx, req)
		}
	}
	for name, test := range map[string]struct {
		limits call.Limits
		shared limit.Limits
		sees   string
	}{
		"for the capability": {call.Limits{PerMinute: 1, Timeout: 5 * time.Second}, limit.Limits{}, "a: waiting for 5s: at most 1 requests a minute"},
		"for the server":     {call.Limits{Timeout: 5 * time.Second}, limit.Limits{RequestsPerMinute: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{}
				app := app(w.cap(server(limit.New(test.shared)), call.Metadata{ID: "a", Limits: test.limits}))
				var mu sync.Mutex
				seen := ""
				watch := event.Func(slog.LevelDebug, func(e event.Event) {
					mu.Lock()
					defer mu.Unlock()
					if p, ok := e.Data.(event.Progress); ok && seen == "" {
						seen = p.Message
					}
				})
				run := func(ctx context.Context) verdict {
					return runCall(ctx, call.Spec{Applicator: app}, call.Budget{}, stone.Config{Watch: watch})
				}
				begin := time.Now()
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						if v := run(t.Context()); v.err != nil {
							t.Error(v.err)
						}
					})
				}
				time.Sleep(time.Second)
				gone := errors.New("gone")
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, gone)
				defer cancel()
				begun := time.Now()
				if v := run(ctx); v.err == nil || time.Since(begun) > 10*time.Second {
					t.Errorf("with a deadline: %v after %v", v.err, time.Since(begun))
				}
				all.Wait()
				if d := time.Since(begin); d != 2*time.Minute+time.Second {
					t.Errorf("three, one a minute, took %v", d)
				}
				if !strings.HasPrefix(seen, test.sees) {
					t.Errorf("seen: %q", seen)
				}
				if s := app.Registry.State("a"); s != (call.State{}) {
					t.Errorf("the capability is blamed for waits: %+v", s)
				}
			})
		})
	}
}
