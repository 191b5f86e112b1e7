package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// A result that is too long is cut with a note, and a call that takes too long is
// stopped; the model is told of both.
func TestToolBounds(t *testing.T) {
	text := func(text string) func(context.Context, json.RawMessage) (agent.Result, error) {
		return func(context.Context, json.RawMessage) (agent.Result, error) { return agent.Result{Text: text}, nil }
	}
	hang := func(ctx context.Context, _ json.RawMessage) (agent.Result, error) {
		<-ctx.Done()
		return agent.Result{}, ctx.Err()
	}
	for name, test := range map[string]struct {
		tool agent.Tool
		want string
		long int
	}{
		"by default": {agent.Tool{Run: text(strings.Repeat("é", 1<<20))}, "[cut: these are the first 65536 of 2097152 bytes]", 66 << 10},
		"its own":    {agent.Tool{Run: text("abcdef"), MaxResult: 3}, "abc\n[cut: these are the first 3 of 6 bytes]", 150},
		"unlimited":  {agent.Tool{Run: text(strings.Repeat("a", 1<<20)), MaxResult: -1}, "aaa", 2 << 20},
		"an error": {agent.Tool{MaxResult: 3, Run: func(context.Context, json.RawMessage) (agent.Result, error) {
			return agent.Result{}, errors.New("abcdef")
		}}, "abc\n[cut", 150},
		"a time": {agent.Tool{Run: hang, Timeout: time.Millisecond}, "was stopped at its time limit of 1ms", 300},
	} {
		var got string
		model := script.Func(func(n int, req *llm.Request) script.Answer {
			if n == 0 {
				return script.Call("act", `{}`)
			}
			got = req.Messages[len(req.Messages)-1].Text()
			return script.Text("done")
		})
		test.tool.Tool = llm.Tool{Name: "act", Schema: json.RawMessage(`{"type":"object"}`)}
		a := agent.New("a", dag.NewType[agent.Text]("answer"), model, agent.Config{User: agent.Say("hi"), Use: []agent.Middleware{agent.Use(test.tool)}})
		if _, err := stone.Run(t.Context(), a, stone.Config{}); err != nil || !strings.Contains(got, test.want) || len(got) > test.long {
			t.Errorf("%s: %v, %d bytes: %.100s", name, err, len(got), got[max(0, len(got)-100):])
		}
	}
}

// A model that is stuck is asked once more, and then the agent ends. A long table is no loop.
func TestStuckModel(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		asked  int
		want   error
	}{
		"a loop":  {strings.Repeat("I will try again. ", 10_000), 2, reasons.Degenerate},
		"a table": {strings.Repeat("| 0 | 0 | 0 | 0 |\n", 60), 1, nil},
		"zeros":   {strings.Repeat("0", 1000), 1, nil},
	} {
		model := script.Func(func(int, *llm.Request) script.Answer { return script.Text(test.answer) })
		a := agent.New("a", dag.NewType[agent.Text]("answer"), model, agent.Config{User: agent.Say("hi")})
		_, err := stone.Run(t.Context(), a, stone.Config{})
		if !errors.Is(err, test.want) || len(model.Requests()) != test.asked {
			t.Errorf("%s: %v, asked %d times", name, err, len(model.Requests()))
		}
	}
}
