package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// compacted passes a conversation through the middleware and returns the messages for
// the model.
func compacted(t interface{ Fatal(...any) }, cfg agent.CompactConfig, messages []llm.Message) (asked []llm.Message) {
	_, err := agent.Compact(cfg).Wrap(context.Background(), agent.Context{Messages: messages}, func(_ context.Context, c agent.Context) (agent.Context, error) {
		asked = c.Messages
		return c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

func TestCompact(t *testing.T) {
	long := strings.Repeat("x", 400) // 100 tokens
	talk := []llm.Message{llm.User("task"), llm.Assistant(long), llm.User("more"), llm.Assistant("a"), llm.User("feedback"), llm.Assistant("b"), llm.User("Continue.")}
	for _, test := range []struct {
		name string
		cfg  agent.CompactConfig
		want string
	}{
		{"short enough", agent.CompactConfig{MaxTokens: 150}, transcript(talk)},
		{"the last turns stay", agent.CompactConfig{MaxTokens: 60, Keep: 2},
			"user: task\nuser: [1 messages of the conversation are left out here.]\nuser: more\nassistant: a\nuser: feedback\nassistant: b\nuser: Continue.\n"},
		{"fewer turns stay if they must", agent.CompactConfig{MaxTokens: 60, Keep: 3},
			"user: task\nuser: [1 messages of the conversation are left out here.]\nuser: more\nassistant: a\nuser: feedback\nassistant: b\nuser: Continue.\n"},
		{"the last turn stays always", agent.CompactConfig{MaxTokens: 1},
			"user: task\nuser: [3 messages of the conversation are left out here.]\nuser: feedback\nassistant: b\nuser: Continue.\n"},
		{"a summary", agent.CompactConfig{MaxTokens: 60, Keep: 1, Model: model(says("they talked"))},
			"user: task\nuser: [3 messages of the conversation are left out here. A summary of them:] | they talked\nuser: feedback\nassistant: b\nuser: Continue.\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := transcript(compacted(t, test.cfg, talk)); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestCompactKeepsCallsWithResults draws conversations: in every shortened one a result
// follows its call, the first and the last messages stay, and the length never grows.
func TestCompactKeepsCallsWithResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := []llm.Message{llm.User("task")}
		for turn := range rapid.IntRange(0, 8).Draw(t, "turns") {
			m := llm.Assistant(strings.Repeat("t", rapid.IntRange(0, 300).Draw(t, "text")))
			calls := rapid.IntRange(0, 3).Draw(t, "calls")
			for i := range calls {
				m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: fmt.Sprint(turn, "-", i), Name: "f", Input: []byte(`{}`)})
			}
			messages = append(messages, m)
			for i := range calls {
				messages = append(messages, llm.ToolResult(fmt.Sprint(turn, "-", i), strings.Repeat("r", rapid.IntRange(0, 300).Draw(t, "result"))))
			}
			if calls == 0 || rapid.Bool().Draw(t, "feedback") {
				messages = append(messages, llm.User("go on"))
			}
		}
		cfg := agent.CompactConfig{MaxTokens: rapid.IntRange(1, 400).Draw(t, "max"), Keep: rapid.IntRange(0, 5).Draw(t, "keep")}
		before := transcript(messages)
		got := compacted(t, cfg, messages)
		if transcript(messages) != before {
			t.Fatal("the original was changed")
		}
		if len(got) > len(messages) || got[0].Text() != "task" || got[len(got)-1].Text() != messages[len(messages)-1].Text() {
			t.Fatalf("the ends did not stay:\n%s", transcript(got))
		}
		open := map[string]bool{}
		for _, m := range got {
			if m.Role == llm.RoleTool {
				if !open[m.CallID] {
					t.Fatalf("the result of %s has no call:\n%s", m.CallID, transcript(got))
				}
				delete(open, m.CallID)
				continue
			}
			if len(open) > 0 {
				t.Fatalf("calls without results:\n%s", transcript(got))
			}
			for _, c := range m.ToolCalls {
				open[c.ID] = true
			}
		}
	})
}

// TestCompactInAgent checks that the summary is paid for once, counted, and not paid
// for again when the run is replayed.
func TestCompactInAgent(t *testing.T) {
	usage := func(r *llm.Reply) { r.Usage.InputTokens = new(3) }
	big := strings.Repeat("x", 4000)
	long := func(r *llm.Reply) { r.Usage.InputTokens = new(2000) } // with the big call and its result
	talker := model(but(calls("echo", `{"text":"`+big+`"}`), usage), but(calls("echo", `{"text":"2"}`), long), but(calls("echo", `{"text":"3"}`), usage), but(says("done"), usage))
	writer := model(but(says("the summary"), usage))
	mem := dies(t, -1)
	talk := func() stone.Ashlar {
		return agent.New("talk", note, talker, agent.Config{User: agent.Say("begin"), Use: []agent.Middleware{
			agent.Use(echo()), agent.Compact(agent.CompactConfig{MaxTokens: 1100, Keep: 1, Model: writer}),
		}})
	}
	first, err := run(t, talk(), stone.Config{Recorder: mem, RunID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := run(t, talk(), stone.Config{Recorder: mem, RunID: "r"})
	if err != nil || again.Node.ID() != first.Node.ID() {
		t.Fatalf("replayed: %v", err)
	}
	want := "user: begin\nuser: [2 messages of the conversation are left out here. A summary of them:] | the summary\ncall: echo {\"text\":\"2\"}\ntool: echo 2\ncall: echo {\"text\":\"3\"}\ntool: echo 3\nassistant: done\n"
	if got := transcript(conversation(t, first)); got != want {
		t.Errorf("conversation\n%s\nwant\n%s", got, want)
	}
	if writer.calls() != 1 || first.Node.Meta()["input-tokens"] != "2012" {
		t.Errorf("%d summaries, meta %v", writer.calls(), first.Node.Meta())
	}
}

// TestCompactKeepsTheQuestion shortens a chat while its newest question is answered: the question stays in every
// request, and the oldest task goes.
func TestCompactKeepsTheQuestion(t *testing.T) {
	past := []llm.Message{llm.User("old task"), llm.Assistant("Here it is."), llm.User("thanks"), llm.Assistant("You are welcome.")}
	answers := []any{}
	for range 7 {
		answers = append(answers, calls("echo", `{"text":"`+strings.Repeat("data ", 400)+`"}`))
	}
	m := model(append(answers, says("done"))...)
	_, err := run(t, agent.New("chat", note, m, agent.Config{
		Conversation: dag.ReaderFunc(func(dag.DAG) ([]llm.Message, error) { return past, nil }),
		User:         agent.Say("new question"),
		Use:          []agent.Middleware{agent.Use(echo()), agent.Compact(agent.CompactConfig{MaxTokens: 4000})},
	}), stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, req := range m.requests {
		said := transcript(req.Messages)
		if !strings.Contains(said, "user: new question\n") {
			t.Errorf("turn %d lacks the question:\n%.200s", i+1, said)
		}
		if last := i == len(m.requests)-1; last && strings.Contains(said, "old task") {
			t.Errorf("turn %d has the old task", i+1)
		}
	}
}
