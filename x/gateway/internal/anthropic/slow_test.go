package anthropic

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/gateway/internal/openai"
)

// slow runs a model that takes a time.
type slow struct {
	openai.Backend
	takes time.Duration
	fails bool
	start time.Time
}

var text = dag.NewType[string]("text")

func (s *slow) Models() []openai.Model {
	return []openai.Model{{Model: talk.Model{Name: "slow", Ashlar: stone.Func("slow", text, text, func(_ context.Context, said string) (string, error) { return said, nil })}}}
}

func (s *slow) Start(context.Context, openai.Start) (api.Run, error) {
	s.start = time.Now()
	return api.Run{ID: "msg_slow", State: journal.Running}, nil
}

func (s *slow) Live(string) *openai.Live { return nil }

func (s *slow) Wait(ctx context.Context, id string) (api.Run, error) {
	run := api.Run{ID: id, State: journal.Running}
	select {
	case <-ctx.Done():
		return run, nil
	case <-time.After(s.takes - time.Since(s.start)):
	}
	if run.State = journal.Done; s.fails {
		run.State, run.Failure = journal.Failed, &journal.Failure{Kind: "eval/must-failed", Reason: "not polite"}
	} else {
		run.Result = &api.Node{Type: "text", Content: json.RawMessage(`"granite"`)}
	}
	return run, nil
}

// A stream starts when there is an answer, or after a while. A failure before that has a status.
func TestStreamStarts(t *testing.T) {
	for _, tt := range []struct {
		takes  time.Duration
		fails  bool
		status int
		events string
	}{
		{time.Second, false, 200, "message_start content_block_start content_block_delta content_block_stop message_delta message_stop"},
		{time.Second, true, 424, ""},
		{40 * time.Second, false, 200, "message_start ping ping content_block_start content_block_delta content_block_stop message_delta message_stop"},
		{40 * time.Second, true, 200, "message_start ping ping error"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/v1/messages", strings.NewReader(`{"model":"stone/slow","stream":true,"messages":[{"role":"user","content":"x"}]}`))
			w := httptest.NewRecorder()
			if err := post(w, r, &slow{takes: tt.takes, fails: tt.fails}); err != nil {
				Fail(w, err.(*openai.Error))
			}
			var events []string
			for line := range strings.Lines(w.Body.String()) {
				if name, ok := strings.CutPrefix(line, "event: "); ok {
					events = append(events, strings.TrimSpace(name))
				}
			}
			if got := strings.Join(events, " "); w.Code != tt.status || got != tt.events || tt.fails && !strings.Contains(w.Body.String(), `"message":"eval/must-failed: not polite"`) {
				t.Errorf("after %v: %d %q: %s", tt.takes, w.Code, got, w.Body)
			}
		})
	}
}
