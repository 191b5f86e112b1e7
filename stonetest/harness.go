package stonetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// liveTimeout is the default Timeout of Live.
const liveTimeout = time.Minute

// grace is the time within which a run must end after its Timeout.
const grace = time.Second

// A Harness runs pipelines in one test and records their tool calls. Set its fields before the first run. Call Run and Fails from
// the test's goroutine; the other methods may be called from any goroutine.
type Harness struct {
	// Strict prevents tools without a stub from running, and fails the test if the model calls one.
	Strict bool
	// Timeout limits each run; zero means unlimited.
	Timeout time.Duration
	// Budget limits each run.
	Budget budget.Limits
	// AllowUnused permits a Mock to have unused answers when the test ends.
	AllowUnused bool
	// Config is passed on to stone.Run, except for its Input. Its Frontend answers the pipeline's questions.
	Config stone.Config

	t     testing.TB
	model llm.Model

	mu        sync.Mutex
	requests  []*llm.Request
	calls     []ToolCall
	firstCall int // the index of the first call of the last run
	stubbed   map[stubKey]bool
}

func newHarness(t testing.TB) *Harness {
	return &Harness{t: t, stubbed: map[stubKey]bool{}}
}

// Mock returns a harness whose model returns these answers in order. The test fails if the model is called more often, or if
// answers are left at the end. Concurrent lanes receive the answers in any order, so use MockFunc for them.
func Mock(t testing.TB, answers ...script.Answer) *Harness {
	t.Helper()
	for i, a := range answers {
		if err := checkAnswer(a); err != nil {
			t.Fatalf("stonetest.Mock: answer %d: %v", i+1, err)
		}
	}
	h := MockFunc(t, func(n int, req *llm.Request) script.Answer {
		if n < len(answers) {
			return answers[n]
		}
		return script.Fail(fmt.Errorf("the mock ran out: answer %d is asked for, it has %d%s", n+1, len(answers), lastSaid(req)))
	})
	t.Cleanup(func() {
		t.Helper()
		asked := len(h.Requests())
		switch {
		case asked > len(answers):
			t.Errorf("the mock ran out: answer %d was asked for, it has %d", asked, len(answers))
		case asked < len(answers) && !h.AllowUnused && !t.Failed():
			t.Errorf("%d of the mock's %d answers were not used: remove them, or set AllowUnused", len(answers)-asked, len(answers))
		}
	})
	return h
}

// lastSaid returns the last text that was sent to the model: the reason why an answer was not accepted, or the result of a tool.
func lastSaid(req *llm.Request) string {
	if len(req.Messages) == 0 {
		return ""
	}
	const most = 300 // the maximum length of the text
	last := req.Messages[len(req.Messages)-1]
	return fmt.Sprintf("; the model was told last (%s): %s", last.Role, text.Cut(text.Line(last.Text()), most))
}

// MockFunc returns a harness whose model calls answer for each request. N is the number of the request, counted from 0. Calls of
// answer are never concurrent.
func MockFunc(t testing.TB, answer func(n int, req *llm.Request) script.Answer) *Harness {
	h := newHarness(t)
	h.model = &observed{script.Func(answer), h}
	return h
}

// Live returns a harness around a model, usually a real one; see LiveModel. Its Timeout is one minute, which is too short for
// models that reason for a long time.
func Live(t testing.TB, model llm.Model) *Harness {
	t.Helper()
	if model == nil {
		t.Fatal("stonetest.Live: the model is nil: pass one, such as stonetest.LiveModel")
	}
	h := newHarness(t)
	h.model, h.Timeout = &observed{model, h}, liveTimeout
	return h
}

// Model returns the model of the harness, for the tested agents.
func (h *Harness) Model() llm.Model { return h.model }

// Requests returns the requests to the model so far, in order. They must not be modified.
func (h *Harness) Requests() []*llm.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// observed is a model that records its requests.
type observed struct {
	llm.Model
	h *Harness
}

// Stream implements llm.Model.
func (m *observed) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		kept := *req
		kept.Messages, kept.Tools = slices.Clone(req.Messages), slices.Clone(req.Tools)
		m.h.mu.Lock()
		m.h.requests = append(m.h.requests, &kept)
		m.h.mu.Unlock()
		m.Model.Stream(ctx, req)(yield)
	}
}

// Check implements llm.Checker.
func (m *observed) Check() error {
	if c, ok := m.Model.(llm.Checker); ok {
		return c.Check()
	}
	return nil
}

// Info implements llm.Informer.
func (m *observed) Info() llm.Info {
	if i, ok := m.Model.(llm.Informer); ok {
		return i.Info()
	}
	return llm.Info{}
}

// Run runs p on a DAG and returns the result. If the run fails, the test fails at once.
func (h *Harness) Run(p stone.Ashlar, in dag.DAG) stone.Result {
	h.t.Helper()
	res, err := h.run(p, in)
	if err != nil {
		h.t.Fatalf("%s", h.explain(err))
	}
	return res
}

// Fails runs p on a DAG and returns the failure of the run. If the run does not end with
// a failure of that kind, the test fails at once.
func (h *Harness) Fails(p stone.Ashlar, in dag.DAG, want kind.Kind) *stone.Failure {
	h.t.Helper()
	_, err := h.run(p, in)
	failure, failed := errors.AsType[*stone.Failure](err)
	switch {
	case err == nil:
		h.t.Fatalf("the run did not fail, want a failure of kind %q%s", want, h.trail())
	case !failed || failure.Kind != want:
		h.t.Fatalf("want a failure of kind %q: %s", want, h.explain(err))
	}
	return failure
}

func (h *Harness) run(p stone.Ashlar, in dag.DAG) (stone.Result, error) {
	h.t.Helper()
	if h.Strict {
		p = rebuild(p, guarded)
	}
	h.mu.Lock()
	h.firstCall = len(h.calls)
	h.mu.Unlock()
	cfg := h.Config
	cfg.Input = in
	cfg.Watch = event.All(event.Func(slog.LevelInfo, h.watch), cfg.Watch)
	ctx := context.WithValue(h.t.Context(), harnessKey{}, h)
	if h.Budget != (budget.Limits{}) {
		ctx = budget.With(ctx, budget.New(h.Budget))
	}
	res, err := h.bounded(ctx, p, cfg)
	if h.Strict {
		h.checkStrict()
	}
	return res, err
}

// bounded runs p on the current goroutine or, if the time is limited, on another goroutine, so that even a step that ignores its
// context cannot block the test.
func (h *Harness) bounded(ctx context.Context, p stone.Ashlar, cfg stone.Config) (stone.Result, error) {
	if h.Timeout <= 0 {
		return stone.Run(ctx, p, cfg)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.Timeout, stone.Fail(kind.Timeout, "the run took longer than the %v of the harness", h.Timeout))
	defer cancel()
	type result struct {
		stone.Result
		err error
	}
	done := make(chan result, 1)
	go func() {
		// The error of a run in which a stub has called t.FailNow.
		r := result{err: errors.New("a step called runtime.Goexit: use t.Error in stubs, not t.Fatal")}
		defer func() { done <- r }()
		r.Result, r.err = stone.Run(ctx, p, cfg)
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		select {
		case r = <-done:
		case <-time.After(grace):
			r.err = stone.Fail(kind.Timeout, "the run took longer than the %v of the harness and still runs: a step ignores its context", h.Timeout)
		}
	}
	return r.Result, r.err
}

// explain returns the error of a run, followed by the tool calls before it.
func (h *Harness) explain(err error) string {
	text := "the run failed: " + err.Error()
	if refused, ok := errors.AsType[*stone.Invalid](err); ok {
		var b strings.Builder
		b.WriteString("the pipeline is invalid:")
		for _, f := range refused.Findings.Errors() {
			b.WriteString("\n\t" + f.String())
		}
		text = b.String()
	}
	return text + h.trail()
}
