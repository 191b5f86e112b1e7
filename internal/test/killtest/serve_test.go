//go:build unix

package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// asking is a pipeline with a fan-out, a question and a step after it.
func asking(work func(path string) error) stone.Ashlar {
	note := func(ctx context.Context) error {
		at := stone.In(ctx)
		return work(at.RunID() + "/" + at.Path())
	}
	lanes := func(dag.DAG) ([]int, error) { return []int{1, 2, 3, 4, 5}, nil }
	agreed := dag.NewType[stone.Answer]("agreed")
	return stone.Seq("asking",
		stone.Map("fan", dag.ReaderFunc(lanes), item, stone.Func("lane", item, draft, func(ctx context.Context, i int) (string, error) {
			return fmt.Sprint("lane ", i), note(ctx)
		})),
		stone.Reduce(stone.Func("join", dag.All(draft), joined, func(ctx context.Context, all []string) (string, error) {
			return strings.Join(all, ", "), note(ctx)
		})),
		stone.Ask("agree", joined, agreed, func(text string) string { return text + "?" }, stone.Choices("yes", "no")),
		stone.Func("act", agreed, dag.NewType[string]("acted"), func(ctx context.Context, a stone.Answer) (string, error) {
			return a.Response, note(ctx)
		}),
	)
}

// serveAt serves the runs of a journal until term is done.
func serveAt(term context.Context, address string, j *witness, work func(string) error) error {
	j.served = true
	cfg := serve.Config{Journal: j, Scan: 100 * time.Millisecond, Pipelines: []serve.Pipeline{{Name: "asking", Result: "acted", Ashlar: asking(work)}}}
	cfg.Webhooks = []serve.Webhook{{Name: "told", URL: os.Getenv(childHook), Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, Private: true}}
	s, err := serve.New(cfg)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // it ends with the process
	s.Run(term)
	return server.Close()
}

// mail has the webhooks that arrived: their types, each with the name of its run.
type mail struct {
	mu   sync.Mutex
	came map[string]chan struct{} // closed when the first one is there
}

// of returns the channel that is closed when a webhook of the type about the run has come.
func (m *mail) of(kind, run string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.came == nil {
		m.came = map[string]chan struct{}{}
	}
	name := kind + " " + run
	if m.came[name] == nil {
		m.came[name] = make(chan struct{})
	}
	return m.came[name]
}

// put notes a webhook, which may come more than once.
func (m *mail) put(kind, run string) {
	came := m.of(kind, run)
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-came:
	default:
		close(came)
	}
}

// serve is a round in which a server is killed while callers start runs, watch them, and
// contradict each other in their answers once a webhook has told them of the question, and a
// receiver gets webhooks.
func (v *victim) serve() {
	v.Helper()
	var told mail
	start := time.Now()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// What a killed server was sending is sent again after a minute. Refused then, it waits as long again: a standstill here.
		if rand.N(4) == 0 && time.Since(start) < 30*time.Second {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var n api.Notice
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			w.WriteHeader(http.StatusBadRequest) // the server was killed
			return
		}
		switch {
		case n.Run != nil:
			told.put(n.Type, n.Run.ID)
		case n.Question != nil:
			told.put(n.Type, n.Question.Run)
		}
	}))
	defer receiver.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0") // for a free port
	if err != nil {
		v.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		v.Fatal(err)
	}
	v.env = append(v.env, childHTTP+"="+address, childHook+"="+receiver.URL, childSlow+"=30ms")
	p := v.start("")
	const runs = 4
	var ended sync.WaitGroup
	over := make(chan struct{})
	for i := range runs {
		c := &api.Client{URL: "http://" + address, Patience: 10 * time.Minute}
		id := fmt.Sprint("run-", i)
		ended.Go(func() { use(v.T, c, id, &told) })
	}
	go func() { ended.Wait(); close(over) }()
	isOver := func() bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	}
	for v.faults < 4 && !isOver() {
		pieces := len(v.entries("lines")) + rand.N(runs*3)
		v.await("the server does nothing", func() bool { return isOver() || p.over() || len(v.entries("lines")) >= pieces })
		time.Sleep(rand.N(50 * time.Millisecond))
		v.shoot(p)
		if p.ProcessState.ExitCode() >= 0 {
			v.Fatalf("the server ended with %v: %s", p.Wait(), &p.errs)
		}
		v.killed[p.Process.Pid] = true
		v.faults++
		p = v.start("")
	}
	v.await("the runs do not end", isOver)
	for i := range runs {
		done := told.of("run.done", fmt.Sprint("run-", i))
		v.await("a webhook is missing", func() bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		})
	}
	v.shoot(p)
	v.killed[p.Process.Pid] = true
	if n := len(v.lines()); n != runs*7 {
		v.gone += runs*7 - n
		v.Errorf("%d pieces of work were done, want %d: %v", n, runs*7, v.lines())
	}
	v.audit()
}

// use starts a run, watches it, lets two people answer its question when they are told of it, and
// checks its end.
func use(t *testing.T, c *api.Client, id string, told *mail) {
	ctx := t.Context()
	if _, err := c.Start(ctx, id, api.Start{Pipeline: "asking"}); err != nil {
		t.Errorf("start %s: %v", id, err)
		return
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		seen, last := map[string]bool{}, journal.State("")
		for e, err := range c.Events(ctx, id, "") {
			if err != nil {
				t.Errorf("events of %s: %v", id, err)
				return
			}
			if e.Step != nil && seen[e.ID] {
				t.Errorf("%s: event %s came twice", id, e.ID)
			}
			if seen[e.ID] = true; e.Run != nil {
				last = e.Run.State
			}
		}
		if last != journal.Done {
			t.Errorf("%s: its watcher saw the state %q last", id, last)
		}
	})
	for {
		run, err := c.Result(ctx, id)
		if err != nil {
			t.Errorf("result of %s: %v", id, err)
			return
		}
		if run.Over() {
			questions, err := c.Questions(ctx, id)
			if err != nil || run.State != journal.Done || len(questions) != 1 || run.Result == nil || string(run.Result.Content) != fmt.Sprintf("%q", questions[0].Response) {
				t.Errorf("%s: %+v, questions %+v, %v; want the answer as its result", id, run, questions, err)
			}
			return
		}
		select {
		case <-told.of("question.asked", id):
		case <-time.After(20 * time.Millisecond):
			continue
		case <-ctx.Done():
			return
		}
		var people sync.WaitGroup
		for _, response := range []string{"yes", "no"} {
			people.Go(func() {
				_, err := c.Answer(ctx, id, api.Answer{Question: "asking/agree", Response: response})
				var problem *api.Problem
				if err != nil && errors.As(err, &problem) && problem.Type != problems.Conflict {
					t.Errorf("answer %s: %v", id, err)
				}
			})
		}
		people.Wait()
	}
}
