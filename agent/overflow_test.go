package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm"
)

// narrow is a model that takes requests of at most window bytes, as a server would say it, and wants a
// call of echo in each of its turns. It tells no usage.
type narrow struct {
	window, turns int
	asked         []int // bytes of the requests that were answered
	refused       int
}

func (m *narrow) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	length := 0
	for _, message := range req.Messages {
		length += len(transcript([]llm.Message{message}))
	}
	if length > m.window {
		m.refused++
		return model(&llm.HTTPError{Status: 400, Body: fmt.Sprintf(`{"error":{"message":"prompt is too long: %d tokens > %d maximum"}}`, length, m.window)}).Stream(ctx, req)
	}
	m.asked = append(m.asked, length)
	if len(m.asked) == m.turns {
		return model(says("done")).Stream(ctx, req)
	}
	return model(calls("echo", fmt.Sprintf(`{"text":"%d %s"}`, len(m.asked), strings.Repeat("x", 500)))).Stream(ctx, req)
}

// TestOverflow has a model whose window no table tells, and which is smaller than every default.
func TestOverflow(t *testing.T) {
	talk := func(m llm.Model, use ...agent.Middleware) stone.Ashlar {
		return agent.New("talk", note, m, agent.Config{User: agent.Say("begin"), Use: append([]agent.Middleware{agent.Use(echo())}, use...)})
	}
	compact := func() agent.Middleware { return agent.Compact(agent.CompactConfig{}) }

	t.Run("compacted", func(t *testing.T) {
		m := &narrow{window: 6000, turns: 14}
		r, err := run(t, talk(m, compact()), stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if m.refused != 1 {
			t.Errorf("%d requests were refused, want 1: the window is known then", m.refused)
		}
		if r.Node.Meta()["turns"] != "14" {
			t.Errorf("%s turns", r.Node.Meta()["turns"])
		}
	})
	t.Run("much too long", func(t *testing.T) { // half of it fits at once
		m := &narrow{window: 4000, turns: 1}
		long := agent.Middleware{Name: "long", Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
			for range 10 {
				c.Messages = append(c.Messages, llm.Assistant(strings.Repeat("word ", 200)), llm.User("and?"))
			}
			return next(ctx, c)
		}}
		if _, err := run(t, talk(m, long, compact()), stone.Config{}); err != nil || m.refused != 1 {
			t.Errorf("%d requests were refused, %v; want 1", m.refused, err)
		}
	})
	t.Run("not compacted", func(t *testing.T) {
		m := &narrow{window: 6000, turns: 14}
		_, err := run(t, talk(m), stone.Config{})
		if !errors.Is(err, reasons.Overflow) || !strings.Contains(err.Error(), "add the middleware Compact") {
			t.Errorf("%v", err)
		}
		if m.refused != 1 {
			t.Errorf("%d requests were refused, want 1", m.refused)
		}
	})
	t.Run("nothing can be left out", func(t *testing.T) {
		m := &narrow{window: 3, turns: 1}
		if _, err := run(t, talk(m, compact()), stone.Config{}); !errors.Is(err, reasons.Overflow) || m.refused != 1 {
			t.Errorf("%d refused, %v", m.refused, err)
		}
	})
	t.Run("killed and resumed", func(t *testing.T) {
		whole := dies(t, -1)
		if _, err := run(t, talk(&narrow{window: 6000, turns: 14}, compact()), stone.Config{Recorder: whole, RunID: "r"}); err != nil {
			t.Fatal(err)
		}
		for left := range whole.log {
			m := &narrow{window: 6000, turns: 14}
			mem := dies(t, left)
			if _, err := run(t, talk(m, compact()), stone.Config{Recorder: mem, RunID: "r"}); err == nil {
				t.Fatalf("left %d: not killed", left)
			}
			mem.left = -1
			if _, err := run(t, talk(m, compact()), stone.Config{Recorder: mem, RunID: "r"}); err != nil {
				t.Fatalf("left %d: %v", left, err)
			}
			// Only what was on its way when the machine died is asked again.
			if len(m.asked) > 15 || m.refused > 2 {
				t.Errorf("left %d: %d asked, %d refused", left, len(m.asked), m.refused)
			}
		}
	})
}

// TestWindowFull has an answer that the end of the window cut off.
func TestWindowFull(t *testing.T) {
	cut := func() *llm.Reply {
		return but(says("It beg"), func(r *llm.Reply) {
			r.StopReason, r.Usage.InputTokens = "model_context_window_exceeded", new(900)
		})
	}
	talk := []llm.Message{llm.User("task")}
	for range 3 {
		talk = append(talk, llm.Assistant(strings.Repeat("word ", 200)), llm.User("and?"))
	}
	agentOf := func(m llm.Model, use ...agent.Middleware) stone.Ashlar {
		add := agent.Middleware{Name: "add", Guard: func(c agent.Context) bool { return c.Turn == 1 },
			Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
				c.Messages = talk
				return next(ctx, c)
			}}
		return agent.New("a", note, m, agent.Config{User: agent.Say("x"), Use: append([]agent.Middleware{add}, use...)})
	}
	m := model(cut(), says("It begins."))
	if _, err := run(t, agentOf(m, agent.Compact(agent.CompactConfig{})), stone.Config{}); err != nil {
		t.Fatal(err)
	}
	first, second := transcript(m.requests[0].Messages), transcript(m.requests[1].Messages)
	if len(second) >= len(first) {
		t.Errorf("the second request has %d bytes after %d:\n%s", len(second), len(first), second)
	}
	m = model(cut(), says("It begins."))
	if _, err := run(t, agentOf(m), stone.Config{}); !errors.Is(err, reasons.Overflow) || m.calls() != 1 {
		t.Errorf("without Compact: %d requests, %v", m.calls(), err)
	}
}
