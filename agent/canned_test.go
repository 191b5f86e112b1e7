package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canned is a model that gives prepared answers and keeps its requests.
type canned struct {
	mu       sync.Mutex
	answers  []any // *llm.Reply, error, or []llm.Delta as they come
	requests []llm.Request
}

func model(answers ...any) *canned { return &canned{answers: answers} }

func (m *canned) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.mu.Lock()
		asked := *req
		asked.Messages = slices.Clone(req.Messages)
		m.requests = append(m.requests, asked)
		var answer any = errors.New("canned: no answers left")
		if len(m.answers) > 0 {
			answer, m.answers = m.answers[0], m.answers[1:]
		}
		m.mu.Unlock()
		if err, ok := answer.(error); ok {
			yield(llm.Delta{Reply: &llm.Reply{}}, err)
			return
		}
		if deltas, ok := answer.([]llm.Delta); ok {
			for _, d := range deltas {
				if !yield(d, nil) {
					return
				}
			}
			return
		}
		reply := answer.(*llm.Reply)
		for _, d := range reply.Deltas() {
			if !yield(d, nil) {
				return
			}
		}
		yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
	}
}

func (m *canned) calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

func says(text string) *llm.Reply { return &llm.Reply{Text: text, StopReason: "stop"} }

// calls makes a reply that calls tools: pairs of a name and its input.
func calls(pairs ...string) *llm.Reply {
	r := &llm.Reply{StopReason: "tool_calls"}
	for i := 0; i < len(pairs); i += 2 {
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall{ID: fmt.Sprintf("call_%d", i/2), Name: pairs[i], Input: json.RawMessage(pairs[i+1])})
	}
	return r
}

func but(r *llm.Reply, change func(*llm.Reply)) *llm.Reply {
	change(r)
	return r
}

var (
	note   = dag.NewType[agent.Text]("note")
	ticket = dag.NewType[ticketDoc]("ticket")
)

type ticketDoc struct {
	Title string `json:"title"`
	Level int    `json:"level"`
	Owner string `json:"owner,omitempty"`
}

// tool makes a tool that takes {"text": string}.
func tool(name string, run func(text string) (agent.Result, error)) agent.Tool {
	return agent.Tool{
		Tool: llm.Tool{Name: name, Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)},
		Run: func(_ context.Context, input json.RawMessage) (agent.Result, error) {
			var in struct{ Text string }
			if err := json.Unmarshal(input, &in); err != nil {
				return agent.Result{}, err
			}
			return run(in.Text)
		},
	}
}

func echo() agent.Tool {
	return tool("echo", func(text string) (agent.Result, error) { return agent.Result{Text: "echo " + text}, nil })
}

// outcome formats the outcome of a run: the failure, or the content without the
// conversation.
func outcome(t testing.TB, res stone.Result, err error) string {
	t.Helper()
	if err != nil {
		var f *stone.Failure
		if !errors.As(err, &f) {
			t.Fatalf("the run was refused: %v", err)
		}
		return string(f.Kind)
	}
	var content map[string]any
	if err := json.Unmarshal([]byte(res.Node.JSON()), &content); err != nil {
		t.Fatal(err)
	}
	delete(content, "conversation")
	raw, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// transcript formats a conversation, one message a line.
func transcript(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		role := string(m.Role)
		if m.IsError {
			role += " error"
		}
		if text := m.Text(); text != "" || len(m.ToolCalls) == 0 {
			fmt.Fprintf(&b, "%s: %s\n", role, strings.ReplaceAll(text, "\n", " | "))
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "call: %s %s\n", c.Name, c.Input)
		}
	}
	return b.String()
}

func run(t testing.TB, a stone.Ashlar, cfg stone.Config) (stone.Result, error) {
	t.Helper()
	return stone.Run(t.Context(), a, cfg)
}

func conversation(t testing.TB, res stone.Result) []llm.Message {
	t.Helper()
	messages, err := agent.Conversation(res.Node)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}
