package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

func chatter(m llm.Model, use ...agent.Middleware) stone.Ashlar {
	return agent.New("chat", note, m, agent.Config{
		Conversation: agent.ConversationOf(note),
		User:         agent.Prompt(question, ask),
		Use:          use,
		Options:      []stone.LeafOption{stone.Reusable()},
	})
}

func next(t *testing.T, d dag.DAG, text string) dag.DAG {
	t.Helper()
	d, err := question.Append(d, questionDoc{text})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestChat checks that a chat continues over several runs, tool calls included, and that a run that
// was killed continues with the conversation that it had.
func TestChat(t *testing.T) {
	first := model(calls("echo", `{"text":"x"}`), says("one"))
	res, err := run(t, chatter(first, agent.Use(echo())), stone.Config{Input: next(t, dag.DAG{}, "a")})
	if err != nil {
		t.Fatal(err)
	}
	mem := dies(t, 1)
	second := model(calls("echo", `{"text":"y"}`), says("two"))
	input := next(t, res.DAG, "b")
	if _, err := run(t, chatter(second, agent.Use(echo())), stone.Config{Input: input, Recorder: mem, RunID: "r"}); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	mem.left = -1
	if res, err = run(t, chatter(second, agent.Use(echo())), stone.Config{Input: input, Recorder: mem, RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	want := "user: a\ncall: echo {\"text\":\"x\"}\ntool: echo x\nassistant: one\nuser: b\ncall: echo {\"text\":\"y\"}\ntool: echo y\nassistant: two\n"
	if got := transcript(conversation(t, res)); got != want || second.calls() != 2 {
		t.Errorf("%d requests, conversation\n%s\nwant\n%s", second.calls(), got, want)
	}
}

// TestChatReuse checks that a result is not taken from a run with another conversation, even if
// the answers before were the same.
func TestChatReuse(t *testing.T) {
	j := memdb.New(t)
	for i, tt := range []struct {
		opening string
		asks    int
	}{{"a", 1}, {"a", 0}, {"b", 1}} {
		before, err := run(t, chatter(model(says("yes"))), stone.Config{Input: next(t, dag.DAG{}, tt.opening)})
		if err != nil {
			t.Fatal(err)
		}
		m := model(says("x"))
		if _, err := run(t, chatter(m), stone.Config{Input: next(t, before.DAG, "and?"), Recorder: j, RunID: fmt.Sprint(i)}); err != nil || m.calls() != tt.asks {
			t.Errorf("%d: %d requests, %v; want %d", i, m.calls(), err, tt.asks)
		}
	}
}

// noConversation is in the error of a node that no agent produced.
const noConversation = "no conversation in the content"

// TestChatFaults checks conversations that cannot be read: nothing is asked.
func TestChatFaults(t *testing.T) {
	bare, err := note.Append(dag.DAG{}, agent.Text{Text: "written by hand"})
	if err != nil {
		t.Fatal(err)
	}
	m := model(says("x"))
	if _, err := run(t, chatter(m), stone.Config{Input: next(t, bare, "a")}); err == nil || !strings.Contains(err.Error(), noConversation) || m.calls() != 0 {
		t.Errorf("got %v after %d requests, want %s", err, m.calls(), noConversation)
	}
	sly := agent.New("chat", note, m, agent.Config{Conversation: dag.ReaderFunc(func(d dag.DAG) ([]llm.Message, error) {
		_, _ = question.From(d)
		return []llm.Message{llm.User("x")}, nil
	})})
	res, err := run(t, sly, stone.Config{Input: next(t, dag.DAG{}, "a")})
	if got := outcome(t, res, err); got != string(kind.UndeclaredQuery) || m.calls() != 0 {
		t.Errorf("got %s after %d requests, want %s", got, m.calls(), kind.UndeclaredQuery)
	}
}
