package serve_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/serve"
)

// A window is a client of a server in the same process, which keeps what it is sent.
type window struct {
	mu     sync.Mutex
	header http.Header
	status int
	text   bytes.Buffer
}

func (w *window) Header() http.Header    { return w.header }
func (w *window) WriteHeader(status int) { w.status = status }
func (w *window) Flush()                 {}

func (w *window) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(text)
}

func (w *window) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// waitingRuns starts a server whose runs, "a" and others, all wait for an answer.
func waitingRuns(t testing.TB, ctx context.Context, names ...string) (*serve.Server, *counted) {
	c := &counted{DB: memdb.New(t)}
	s, err := serve.New(serve.Config{Journal: c, Pipelines: []serve.Pipeline{{Name: "page", Ashlar: servetest.NewSteps().Publish()}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, r := range []struct{ method, path, body string }{
			{"PUT", "/v1/runs/" + name, `{"pipeline":"page","input":{"text":"x"}}`}, {"GET", "/v1/runs/" + name + "/result?wait=30s", ""},
		} {
			req, err := http.NewRequestWithContext(ctx, r.method, r.path, strings.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			w := &window{header: http.Header{}}
			if s.As(serve.Principal{}).ServeHTTP(w, req); !strings.Contains(w.String(), `"id":"`+name) {
				t.Fatal(w)
			}
		}
	}
	return s, c
}

// watch streams the events of a run after a place until ctx is done.
func watch(t testing.TB, ctx context.Context, s *serve.Server, run, after string) (w *window, ended <-chan struct{}) {
	req, err := http.NewRequestWithContext(ctx, "GET", "/v1/runs/"+run+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	w, done := &window{header: http.Header{}}, make(chan struct{})
	go func() {
		defer close(done)
		s.As(serve.Principal{}).ServeHTTP(w, req)
	}()
	return w, done
}

// Whatever places the clients of a run that waits have named, the server looks at the run five times
// a second, and each client gets all events.
func TestIdleWatchers(t *testing.T) {
	for name, places := range map[string][]string{
		"ordinary":           {""},
		"many":               strings.Split(strings.Repeat(",", 99), ","),
		"beyond":             {"999999999999"},
		"beyond, then first": {"999999999999", ""},
		"first, then beyond": {"", "999999999999"},
		"a state, then none": {"999999999999-waiting", "999999999998-failed", "131072", "65536", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s, c := waitingRuns(t, ctx, "a")
				c.most.Store(2000) // ends a test that spins
				var windows []*window
				var ends []<-chan struct{}
				for _, at := range places {
					w, ended := watch(t, ctx, s, "a", at)
					windows, ends = append(windows, w), append(ends, ended)
					time.Sleep(time.Second)
				}
				const looks = 10
				before := c.follows.Load()
				time.Sleep(looks * 200 * time.Millisecond)
				synctest.Wait()
				if n := c.follows.Load() - before; n < looks-1 || n > looks+1 {
					t.Errorf("the run was read %d times, want %d", n, looks)
				}
				cancel()
				for i, w := range windows {
					<-ends[i]
					text := w.String()
					if want := strings.Count(windows[len(windows)-1].String(), "event: step"); places[i] != "65536" && places[i] != "131072" && strings.Count(text, "event: step") != want || strings.Count(text, "event: state") != 1 {
						t.Errorf("the client after %q got %s", places[i], text)
					}
					if reset := strings.HasPrefix(places[i], "9"); reset != strings.Contains(text, "id: 0\nevent: reset\ndata: {\"reset\":true}\n") {
						t.Errorf("the client after %q got %s", places[i], text)
					}
				}
				s.Close()
			})
		})
	}
}
