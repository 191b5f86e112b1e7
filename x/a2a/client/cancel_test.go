package client_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	tasks "github.com/stonelayer/stone/internal/remote"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/serve"
)

// A run that waits for its agents is canceled with their tasks, although no process has it. Nothing else starts.
func TestCancelWaiting(t *testing.T) {
	r := newRemote(t, options{Streams: true})
	db := memdb.New(t)
	started := 0
	topics, done := dag.NewType[[]string]("topics"), dag.NewType[int]("done")
	p := stone.Seq("all",
		stone.Map("each", topics, topic, pipeline(r.url)),
		stone.Reduce(stone.Func("then", dag.Lanes(found), done, func(context.Context, []map[string]any) (int, error) { started++; return 1, nil }, stone.Effects())),
	)
	cfg := func(resume bool) stone.Config {
		c := stone.Config{RunID: "trip", Recorder: journal.Keep(db, journal.Options{Resume: resume})}
		if !resume {
			c.Input = dag.Of(topics.With([]string{"ask", "gate", "ask"}))
		}
		return c
	}
	if _, err := stone.Run(t.Context(), p, cfg(false)); !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	cancel := func() error {
		return tasks.Cancel(t.Context(), p, stone.Config{RunID: "trip"}, journal.Options{Resume: true}, db)
	}
	state := func() journal.State {
		info, err := db.Find(t.Context(), "trip")
		if err != nil {
			t.Fatal(err)
		}
		return info.State
	}
	if paths, err := tasks.Tasks(t.Context(), db, "trip"); err != nil || len(paths) != 2 {
		t.Fatalf("%q, %v", paths, err)
	}
	if err := cancel(); err != nil || r.canceled != 2 || r.count() != 3 || started != 0 || state() != journal.Waiting {
		t.Errorf("%v, canceled %d of %d, started %d, %s", err, r.canceled, r.count(), started, state())
	}
	if err := journal.Cancel(t.Context(), db, "trip"); err != nil || state() != journal.Canceled {
		t.Errorf("%v, %s", err, state())
	}
}

// An agent out of reach is named, and leaves the run as it was.
func TestCancelUnreachable(t *testing.T) {
	r := newRemote(t, options{})
	db := memdb.New(t)
	_, err := stone.Run(t.Context(), pipeline(r.url), stone.Config{RunID: "trip", Recorder: journal.Keep(db, journal.Options{}), Input: dag.Of(topic.With("ask"))})
	if !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	err = tasks.Cancel(t.Context(), pipeline("http://127.0.0.1:1"), stone.Config{RunID: "trip"}, journal.Options{Resume: true, Force: true}, db)
	if info, _ := db.Find(t.Context(), "trip"); err == nil || !strings.Contains(err.Error(), "1 of 1: ") || info.State != journal.Waiting {
		t.Errorf("%v, %s", err, info.State)
	}
}

// A server cancels the tasks of a run that it cancels.
func TestCancelAtServer(t *testing.T) {
	r := newRemote(t, options{Streams: true})
	db := memdb.New(t)
	s, err := serve.New(serve.Config{Journal: db, Log: slog.New(slog.DiscardHandler), Pipelines: []serve.Pipeline{{Name: "plan", Ashlar: pipeline(r.url)}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
	send := func(method, path, body string) string {
		req := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		return w.Body.String()
	}
	send(http.MethodPut, "/v1/runs/trip", `{"pipeline":"plan","input":"ask"}`)
	if got := send(http.MethodGet, "/v1/runs/trip/result?wait="+time.Minute.String(), ""); !strings.Contains(got, `"waiting"`) {
		t.Fatal(got)
	}
	if got := send(http.MethodPost, "/v1/runs/trip/cancel", ""); !strings.Contains(got, `"canceled"`) || r.canceled != 1 {
		t.Errorf("canceled %d: %s", r.canceled, got)
	}
}

// The command cancels the tasks of a run, and the run alone if it cannot reach the agent.
func TestCancelCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	r := newRemote(t, options{Streams: true})
	line := func(url string, args ...string) (int, string) {
		var out strings.Builder
		code := cli.Run(t.Context(), cli.Config{
			Pipeline: func() stone.Ashlar { return pipeline(url) }, Name: "plan", Args: append(args, "--db", "stone.db"), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		})
		return code, out.String()
	}
	for id, c := range map[string]struct {
		url, want string
		canceled  int
	}{
		"near": {r.url, "run near is canceled\n", 1},
		"far":  {"http://127.0.0.1:1", "its tasks at other agents were not canceled: 1 of 1: the agent cannot be reached", 0},
	} {
		if code, out := line(r.url, "run", "--input", `"ask"`, "--id", id); code != 3 {
			t.Fatalf("%d %s", code, out)
		}
		before := r.canceled
		if code, out := line(c.url, "cancel", id); code != 0 || !strings.Contains(out, c.want) || !strings.HasSuffix(out, "run "+id+" is canceled\n") || r.canceled-before != c.canceled {
			t.Errorf("%s: %d, canceled %d: %s", id, code, r.canceled-before, out)
		}
		if code, out := line(r.url, "runs"); code != 0 || !strings.Contains(out, "canceled") {
			t.Errorf("%d %s", code, out)
		}
	}
}
