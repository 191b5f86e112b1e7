//go:build unix

package agent_test

import (
	"context"
	"encoding/json"
	"iter"
	"syscall"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/llm"
)

// endless is a model that calls a tool a given number of times. It costs nothing
// itself.
type endless struct {
	calls      int
	call, done *llm.Reply
}

func (m *endless) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		reply := m.done
		if len(req.Messages) < 2*m.calls {
			reply = m.call
		}
		yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
	}
}

// BenchmarkTurn measures a turn of an agent with one tool call; the run and the
// node around it are shared among the turns.
func BenchmarkTurn(b *testing.B) {
	const long = 100
	bench := func(b *testing.B, calls int, tools int) {
		m := &endless{calls: calls, call: callsTool(), done: says("done")}
		use := []agent.Middleware{agent.Use(silent("look"))}
		for i := range tools {
			use = append(use, agent.Use(silent("other"+string(rune('a'+i)))))
		}
		a := agent.New("talk", note, m, agent.Config{System: agent.Say("be brief"), User: agent.Say("begin"), Use: use, MaxTurns: calls + 1})
		b.ReportAllocs()
		before := cpu(b)
		for b.Loop() {
			if _, err := stone.Run(context.Background(), a, stone.Config{}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(cpu(b)-before)/float64(b.N)/float64(calls+1), "cpu-ns/turn")
	}
	b.Run("one-call", func(b *testing.B) { bench(b, 1, 0) })
	b.Run("hundred-calls", func(b *testing.B) { bench(b, long, 0) })
	b.Run("hundred-calls/ten-tools", func(b *testing.B) { bench(b, long, 9) })
}

// cpu returns the processor time of the process in nanoseconds: the cost of a turn
// on a busy machine.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func callsTool() *llm.Reply {
	return &llm.Reply{ToolCalls: []llm.ToolCall{{ID: "call_0", Name: "look", Input: json.RawMessage(`{"path":"go.mod"}`)}}}
}

func silent(name string) agent.Tool {
	var t agent.Tool
	t.Name, t.Schema = name, json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	t.Run = func(context.Context, json.RawMessage) (agent.Result, error) {
		return agent.Result{Text: "module stone"}, nil
	}
	return t
}
