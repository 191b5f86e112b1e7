package agent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// A leaf's Retry respects the model's error: whether a retry can help, how long to
// wait, and how many attempts the model has made itself.
func TestRetryKnowsTheModel(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		calls int
		least time.Duration
	}{
		"unauthorized":     {&llm.HTTPError{Status: 401}, 1, 0},
		"not found":        {&llm.HTTPError{Status: 404}, 1, 0},
		"bad request":      {&llm.ProviderError{Type: "invalid_request_error"}, 1, 0},
		"busy":             {&llm.HTTPError{Status: 429, RetryAfter: 2 * time.Minute}, 3, 4 * time.Minute},
		"broken":           {&llm.HTTPError{Status: 500}, 3, 0},
		"empty":            {&llm.EmptyResponseError{}, 3, 0},
		"tried four times": {&llm.RetriedError{Tried: 4, Err: &llm.HTTPError{Status: 500}}, 1, 0},
		"tried only twice": {&llm.RetriedError{Tried: 2, Err: &llm.HTTPError{Status: 500}}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := model(tt.err, tt.err, tt.err, tt.err)
				a := agent.New("talk", note, m, agent.Config{User: agent.Say("go"), Options: []stone.LeafOption{stone.Retry{Attempts: 3}}})
				start := time.Now()
				_, err := run(t, a, stone.Config{})
				if err == nil || m.calls() != tt.calls || time.Since(start) < tt.least {
					t.Errorf("%d requests in %v, %v; want %d in at least %v", m.calls(), time.Since(start), err, tt.calls, tt.least)
				}
			})
		})
	}
}

// A retried leaf continues where the attempt before it failed: no tool runs twice and no answer is requested twice.
func TestRetryGoesOn(t *testing.T) {
	for _, kept := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			paid, cfg := 0, stone.Config{RunID: "r"}
			if kept {
				cfg.Recorder = journal.Keep(memdb.New(t), journal.Options{})
			}
			pay := tool("pay", func(string) (agent.Result, error) {
				paid++
				return agent.Result{Text: "paid"}, nil
			})
			m := model(calls("pay", `{"text":"1"}`), calls("pay", `{"text":"2"}`), &llm.TruncatedError{}, says("done"))
			a := agent.New("talk", note, m, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.Use(pay)},
				Options: []stone.LeafOption{stone.Retry{Attempts: 3, Backoff: time.Second}}})
			if _, err := run(t, a, cfg); err != nil || m.calls() != 4 || paid != 2 {
				t.Errorf("%d requests, paid %d times, %v; want 4 and 2", m.calls(), paid, err)
			}
		})
	}
}
