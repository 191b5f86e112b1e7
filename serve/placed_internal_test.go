package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/x/gateway"
	"github.com/stonelayer/stone/x/ui"
)

// waiting is a journal whose reads wait until they are let on.
type waiting struct {
	journal.Journal
	inside chan string
	on     chan struct{}
}

func (w *waiting) Runs(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	w.inside <- "runs"
	<-w.on
	return w.Journal.Runs(ctx, q)
}

func (w *waiting) Find(ctx context.Context, id string) (journal.RunInfo, error) {
	w.inside <- "find"
	<-w.on
	return w.Journal.Find(ctx, id)
}

// A tenant has at most half of the places for reading, whatever it reads: lists, runs, texts and pages. Another tenant gets one at once.
func TestReadsTakePlaces(t *testing.T) {
	j := &waiting{memdb.New(t), make(chan string, 100), make(chan struct{})}
	s, err := New(Config{Journal: j, Protocols: []Protocol{ui.Part, gateway.Part}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	get := func(tenant, path string) {
		for _, r := range append(s.table(), s.pageRoutes()...) {
			if pattern := strings.NewReplacer("GET ", "", "{$}", "").Replace(r.pattern); pattern == strings.Split(strings.Replace(path, "run-a", "{id}", 1), "?")[0] {
				s.handle(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), r, Principal{Tenant: tenant})
				return
			}
		}
		t.Errorf("no route for %s", path)
	}
	paths := []string{"/v1/runs", "/v1/runs?text=zzzz", "/", "/v1/runs/run-a", "/runs/run-a", "/v1/threads", "/v1/runs/run-a/result", "/questions", "/overview", "/v1/runs/run-a/questions"}
	done := make(chan struct{}, 100)
	for range 3 {
		for _, path := range paths {
			go func() { get("acme", path); done <- struct{}{} }()
		}
	}
	_, own := readPlaces()
	for range own {
		<-j.inside
	}
	go func() { get("beta", "/v1/runs"); done <- struct{}{} }()
	<-j.inside // without waiting for acme
	select {
	case what := <-j.inside:
		t.Errorf("acme has more than %d places: %s", own, what)
	case <-time.After(50 * time.Millisecond):
	}
	close(j.on)
	for range 3*len(paths) + 1 {
		<-done
	}
	if s.places.free != s.places.own*2 && s.places.free < 2 || len(s.places.taken) > 0 {
		t.Errorf("places are left over: %d free, %v taken", s.places.free, s.places.taken)
	}
}

// The stream of a turn reads in a place, and has none while it waits.
func TestStreamsReadInPlaces(t *testing.T) {
	a, b := dag.NewType[string]("a"), dag.NewType[string]("b")
	page := stone.Func("page", a, b, func(_ context.Context, text string) (string, error) { return text, nil })
	s, err := New(Config{Journal: memdb.New(t), Protocols: []Protocol{ui.Part, gateway.Part}, Pipelines: []Pipeline{{Ashlar: page}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, own := readPlaces()
	for range own {
		leave, err := s.places.enter(t.Context(), nil, "acme")
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	ctx, gone := context.WithCancel(t.Context())
	gone()
	out := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/v1/ui/page/chat/stream", nil).WithContext(ctx)
	s.As(Principal{Tenant: "acme"}).ServeHTTP(out, r)
	if out.Code != http.StatusServiceUnavailable {
		t.Errorf("the look-up of a turn waits for no place: %d", out.Code)
	}
	of := stone.Config{RunID: "run-a", Input: dag.Of(a.With("x")), Recorder: journal.Keep(s.cfg.Journal, journal.Options{})}
	if _, err := stone.Run(t.Context(), page, of); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.hear(ctx, Principal{Tenant: "acme"}, journal.RunInfo{ID: "run-a"}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the record of a turn is read without a place: %v", err)
	}
}
