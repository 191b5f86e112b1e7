package agent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
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
