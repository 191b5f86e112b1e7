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

// grace is how long a run may continue after its Timeout before the test fails.
const grace = time.Second

// A Harness runs pipelines in one test and records their tool calls. Set its fields before the first run. Call Run and Fails from
// the test's goroutine; the other methods may be called from any goroutine.
type Harness struct {
	// Strict prevents tools without a stub from running. If the model calls one, the test fails.
	Strict bool
	// Timeout limits the duration of each run. Zero means unlimited.
	Timeout time.Duration
	// Budget limits each run.
	Budget budget.Limits
	// AllowUnused permits a Mock to have unused answers when the test ends.
	AllowUnused bool
	// Config is the configuration for stone.Run; its Input is ignored. Config.Frontend answers the pipeline's questions.
	Config stone.Config

	t     testing.TB
	model llm.Model

	mu        sync.Mutex
	requests  []*llm.Request
	calls     []ToolCall
	firstCall int // index of the last run's first call
	stubbed   map[stubKey]bool
}

func newHarness(t testing.TB) *Harness {
	return &Harness{t: t, stubbed: map[stubKey]bool{}}
}

// Mock returns a harness whose model returns the given answers in order. The test fails if the model is called too often or,
// unless AllowUnused is set, if answers are left when the test ends. If concurrent lanes call the model, use MockFunc instead,
// because the lanes receive the answers in any order.
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

// lastSaid returns the last text that was sent to the model, such as the reason why an answer was rejected or the result of a
// tool.
func lastSaid(req *llm.Request) string {
	if len(req.Messages) == 0 {
		return ""
	}
	const most = 300 // the maximum length of the text
	last := req.Messages[len(req.Messages)-1]
	return fmt.Sprintf("; the model was told last (%s): %s", last.Role, text.Cut(text.Line(last.Text()), most))
}

// MockFunc returns a harness whose model calls the function answer for each request and returns its result. The argument n is the
// number of the request, counted from 0. Calls of answer are never concurrent.
func MockFunc(t testing.TB, answer func(n int, req *llm.Request) script.Answer) *Harness {
	h := newHarness(t)
	h.model = &observed{script.Func(answer), h}
	return h
}

// Live returns a harness that uses model, usually a real model; see LiveModel. The harness has a Timeout of one minute; increase
// it for models that reason longer.
func Live(t testing.TB, model llm.Model) *Harness {
	t.Helper()
	if model == nil {
		t.Fatal("stonetest.Live: the model is nil: pass one, such as stonetest.LiveModel")
	}
	h := newHarness(t)
	h.model, h.Timeout = &observed{model, h}, liveTimeout
	return h
}

// Model returns the model of the harness. The agents under test must use it.
func (h *Harness) Model() llm.Model { return h.model }

// Requests returns the requests that the model has received so far, in order. The caller must not modify them.
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

// Run runs p on the DAG in and returns the result. If the run fails, the test fails at once.
func (h *Harness) Run(p stone.Ashlar, in dag.DAG) stone.Result {
	h.t.Helper()
	res, err := h.run(p, in)
	if err != nil {
		h.t.Fatalf("%s", h.explain(err))
	}
	return res
}

// Fails runs p on the DAG in and returns the failure of the run. If the run does not end with a failure of kind want, the test
// fails at once.
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

// bounded runs p. If the run has a time limit, bounded uses another goroutine, so that even a step that ignores its context
// cannot block the test.
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
		// the result if a stub calls t.FailNow, which ends this goroutine
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

// explain returns the text of a run's error, followed by a list of the run's tool calls.
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
