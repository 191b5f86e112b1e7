package call_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
)

// A behaviour is what a fake capability does when it is asked.
type behaviour func(ctx context.Context, req *call.Request) (*call.Reply, error)

func says(text string) behaviour { return answers(fmt.Sprintf(`{"text":%q}`, text)) }

func answers(out string) behaviour {
	return func(context.Context, *call.Request) (*call.Reply, error) {
		return &call.Reply{Out: call.JSON(out)}, nil
	}
}

func fails(typ string) behaviour {
	return func(context.Context, *call.Request) (*call.Reply, error) { return nil, &call.Error{Type: typ} }
}

func failsOnce(typ string, after time.Duration) behaviour {
	return func(context.Context, *call.Request) (*call.Reply, error) {
		return nil, &call.Error{Type: typ, Retryable: true, RetryAfter: after}
	}
}

// failsAfter fails when it has read so many tokens.
func failsAfter(tokens int) behaviour {
	return func(context.Context, *call.Request) (*call.Reply, error) {
		return &call.Reply{Usage: call.Usage{Usage: budget.Usage{InputTokens: tokens}}}, &call.Error{Type: reasons.FormatDrift}
	}
}

func returns(err error) behaviour {
	return func(context.Context, *call.Request) (*call.Reply, error) { return nil, err }
}

func panics(context.Context, *call.Request) (*call.Reply, error) { panic("index out of range") }

func hangs(ctx context.Context, _ *call.Request) (*call.Reply, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func plans(text string) behaviour {
	return func(context.Context, *call.Request) (*call.Reply, error) {
		return &call.Reply{Type: call.Plan, Plan: []byte(text)}, nil
	}
}

func after(d time.Duration, then behaviour) behaviour {
	return func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		select {
		case <-time.After(d):
			return then(ctx, req)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// deaf does not notice its cancellation.
func deaf(d time.Duration, then behaviour) behaviour {
	return func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		time.Sleep(d)
		return then(ctx, req)
	}
}

// inTurn behaves in one way at each invocation; the last one repeats.
func inTurn(all ...behaviour) behaviour {
	var mu sync.Mutex
	return func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		mu.Lock()
		b := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		mu.Unlock()
		return b(ctx, req)
	}
}

// A world is capabilities that remember who was asked.
type world struct {
	mu        sync.Mutex
	calls     []string
	cancelled []string
}

// cap makes a capability. One without a behaviour says the name of its id.
func (w *world) cap(b behaviour, m call.Metadata) call.Capability {
	if b == nil {
		b = says(path.Base(m.ID))
	}
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		w.mu.Lock()
		w.calls = append(w.calls, m.ID)
		w.mu.Unlock()
		req.Voice.Say(event.Text, m.ID)
		reply, err := b(ctx, req)
		if ctx.Err() != nil {
			w.mu.Lock()
			w.cancelled = append(w.cancelled, m.ID)
			w.mu.Unlock()
		}
		return reply, err
	}}
}

// A verdict is how a call ended.
type verdict struct {
	out     string // "" if it failed
	failure string
	rec     call.Record
	err     error
	dag     dag.DAG
}

var out = dag.NewType[json.RawMessage]("out")

// runCall runs one call within the limits.
func runCall(ctx context.Context, spec call.Spec, limits call.Budget, cfg stone.Config) verdict {
	if limits != (call.Budget{}) {
		ctx = budget.With(ctx, budget.New(limits))
	}
	if spec.Intent == "" {
		spec.Intent = "mail/sort"
	}
	return runAshlar(ctx, call.New("ask", out, spec), cfg)
}

// runAshlar runs a pipeline that ends with a call.
func runAshlar(ctx context.Context, p stone.Ashlar, cfg stone.Config) verdict {
	res, err := stone.Run(ctx, p, cfg)
	v := verdict{err: err, dag: res.DAG}
	n := res.Node
	if err != nil {
		n = res.DAG.Latest()
		var f *stone.Failure
		var refused *stone.Invalid
		switch {
		case errors.As(err, &f):
			v.failure = string(f.Kind)
		case errors.As(err, &refused):
			v.failure = string(refused.Findings.Errors()[0].Type)
		}
	} else {
		v.out = n.JSON()
	}
	if rec := call.RecordOf(n); rec != nil {
		v.rec = *rec
	}
	return v
}

func wantCalls(t *testing.T, w *world, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := fmt.Sprint(w.calls); got != fmt.Sprint(want) {
		t.Errorf("asked %v, want %v", got, want)
	}
}

// brief returns the out as its text, or else the type of the failure.
func (v verdict) brief() string {
	var o struct{ Text string }
	if json.Unmarshal([]byte(v.out), &o) == nil && o.Text != "" {
		return o.Text
	}
	return cmp.Or(v.out, "!"+v.failure)
}

func holds(yes ...string) call.Check {
	return func(_ context.Context, s call.Subject) error {
		for _, id := range yes {
			if id == s.Request.Cap {
				return nil
			}
		}
		return errors.New("it does not hold")
	}
}

// judge is a capability that grades by the text of the out.
func judge(w *world, grades map[string]string) call.Capability {
	return call.Capability{
		Metadata: call.Metadata{ID: "judge/j", Intents: []string{terms.Grade}},
		Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
			var in struct{ Out struct{ Text string } }
			if err := json.Unmarshal(req.Input, &in); err != nil {
				return nil, err
			}
			grade := cmp.Or(grades[in.Out.Text], grades["*"])
			if grade == "panic" {
				panic("no mark")
			}
			return &call.Reply{Out: call.JSON(`{"score":` + grade + `}`)}, nil
		},
	}
}
