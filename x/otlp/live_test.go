package otlp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/event"
)

// watchRun passes the events of a run to a watcher, and returns how many spans it has.
func watchRun(w event.Watcher, run string, steps int) int {
	pass := func(span string, d event.Data) {
		w.Watch(context.Background(), event.Event{Run: run, Span: span, Name: "n", Time: time.Now(), Data: d})
	}
	pass("", event.RunStarted{})
	for i := range steps {
		pass(fmt.Sprint(i), event.StepStarted{Form: "leaf"})
		pass(fmt.Sprint(i), event.StepDone{Form: "leaf", OK: true})
	}
	pass("", event.RunEnded{OK: true})
	return steps + 1
}

func live(t *testing.T, c http.RoundTripper) (l *Live, said *[]string) {
	said = new([]string)
	l, err := NewLive(Config{URL: "http://c", Client: &http.Client{Transport: c, Timeout: requestTime}}, func(line string) { *said = append(*said, line) })
	if err != nil {
		t.Fatal(err)
	}
	return l, said
}

// Spans are sent while their run is running, a broken connection is tried again, and Close sends the rest.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(n int) *http.Response {
			if n < 3 {
				return &http.Response{} // a connection that breaks
			}
			return nil
		}}
		l, said := live(t, c)
		n := watchRun(l, "r", 3)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(c.spans) != n {
			t.Errorf("%d spans of %d before the end", len(c.spans), n)
		}
		n += watchRun(l, "s", 1)
		l.Watch(t.Context(), event.Event{Run: "t", Data: event.RunStarted{}})
		l.Close()
		if len(c.spans) != n+1 || len(*said) > 0 {
			t.Errorf("%d spans of %d, said %q", len(c.spans), n+1, *said)
		}
		watchRun(l, "late", 1)
		l.Close()
	})
}

// stuck is a collector that never answers.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

// A run never waits for a collector, what it holds is bounded, and what it lost is said once.
func TestLiveIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, said := live(t, stuck{})
		before := time.Now()
		for i := range 40 {
			watchRun(l, fmt.Sprint(i), 1000)
		}
		long := strings.Repeat("x", maxText)
		for i := range 8192 {
			l.Watch(t.Context(), event.Event{Run: "long", Data: event.StepFailed{Kind: long, Reason: fmt.Sprint(i)}})
		}
		if held := l.held.Load(); held > maxHeld+1<<20 {
			t.Errorf("%d bytes are held", held)
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("the runs waited %v", waited)
		}
		time.Sleep(5 * time.Minute)
		before = time.Now()
		l.Close()
		if waited := time.Since(before); waited > lastTime {
			t.Errorf("Close took %v", waited)
		}
		if held := l.held.Load(); held != 0 {
			t.Errorf("%d bytes are held at the end", held)
		}
		if len(*said) != 2 || !strings.HasPrefix((*said)[0], "telemetry: spans are dropped: the collector is too slow") ||
			!strings.HasPrefix((*said)[1], "telemetry: 4") || !strings.Contains((*said)[1], " spans were dropped: ") {
			t.Errorf("said %q", *said)
		}
	})
}

// Nobody listens: the command ends at once, and says so.
func TestLiveUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, said := live(t, &collector{answer: func(int) *http.Response { return &http.Response{} }})
		watchRun(l, "r", 1)
		before := time.Now()
		l.Close()
		want := "telemetry: 2 of 2 spans were dropped: the collector at http://c/v1/traces cannot be reached: unexpected EOF"
		if len(*said) != 1 || (*said)[0] != want || time.Since(before) != 0 {
			t.Errorf("said %q after %v", *said, time.Since(before))
		}
	})
}
