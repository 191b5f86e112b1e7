package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// TestChatView checks what a person sees of a turn's events.
func TestChatView(t *testing.T) {
	piece := func(path, text string) event.Event {
		return event.Event{Path: path, Name: "reply", Data: event.Delta{Source: "m", Attempt: 1, Text: text}}
	}
	call := event.ToolCall{Tool: "look", Input: map[string]string{"at": strings.Repeat("x", 40)}}
	for _, c := range []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"text", []event.Event{piece("a", "\n Hel"), piece("a", "lo")}, "Hello\n"},
		{"of another step", []event.Event{{Path: "b", Name: "plan", Data: event.Delta{Text: "no"}}}, ""},
		{"data", []event.Event{piece("a", " {\"a\":"), piece("a", "1}")}, ""},
		{"tools", []event.Event{piece("a", "Let me look."), {Data: event.ToolStarted{ToolCall: call}}, {Data: event.ToolDone{ToolCall: call, Text: "no\x1b[1m\nluck"}}, piece("c", "No.")},
			"Let me look.\n· look {\"at\":\"xxxxxxxxxxxxxxx…\n· look failed: no�[1m luck\nNo.\n"},
		{"retracted", []event.Event{piece("a", "Yes"), {Path: "a", Data: event.Retracted{Source: "m", Attempt: 1, Reason: "again"}}, piece("a", "No")}, "Yes\n[taken back: again]\nNo\n"},
		{"retracted at the end", []event.Event{piece("a", "Yes"), {Path: "a", Data: event.Retracted{Reason: "canceled"}}}, "Yes\n"},
		{"retracted elsewhere", []event.Event{piece("a", "Yes"), {Path: "b", Data: event.Retracted{Reason: "again"}}}, "Yes\n"},
	} {
		var out bytes.Buffer
		v := &chatView{out: &out, replies: []string{"reply"}, columns: 30}
		for _, e := range c.events {
			v.Watch(t.Context(), e)
		}
		v.end(stone.Result{})
		if got := out.String(); got != c.want {
			t.Errorf("%s:\n%q\nwant\n%q", c.name, got, c.want)
		}
	}
}

// TestChatViewPauses checks that nothing is written into an open question.
func TestChatViewPauses(t *testing.T) {
	var out bytes.Buffer
	v := &chatView{out: &out, replies: []string{"reply"}, columns: 30}
	v.Watch(t.Context(), event.Event{Name: "reply", Data: event.Delta{Text: "a"}})
	v.Pause()
	v.Watch(t.Context(), event.Event{Name: "reply", Data: event.Delta{Text: "b"}})
	if got := out.String(); got != "a\n" {
		t.Errorf("%q while a question is open", got)
	}
	v.Resume()
	if got := out.String(); got != "a\nb" {
		t.Errorf("%q after it", got)
	}
}

// TestCarried checks that what a turn starts with grows with the conversation, not with
// its square, and that it reads the same there as in the whole DAG.
func TestCarried(t *testing.T) {
	question, answer, seen := dag.NewType[string]("question"), dag.NewType[agent.Text]("answer"), dag.NewType[int]("seen")
	p := stone.Seq("chat",
		stone.Func("count", dag.All(question), seen, func(_ context.Context, all []string) (int, error) { return len(all), nil }),
		agent.New("talk", answer, script.Func(func(n int, _ *llm.Request) script.Answer { return script.Text(fmt.Sprint("answer ", n)) }), agent.Config{
			Conversation: agent.ConversationOf(answer), User: question,
		}))
	d := dialogue{message: question}
	var before dag.DAG
	for i := range 20 {
		start, err := carried(p, before)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && start.Len() != i+1 { // the questions and an answer
			t.Fatalf("turn %d starts with %d nodes", i, start.Len())
		}
		if start, err = d.say(t.Context(), start, nil, fmt.Sprint("question ", i)); err != nil {
			t.Fatal(err)
		}
		result, err := stone.Run(t.Context(), p, stone.Config{Input: start})
		if err != nil {
			t.Fatal(err)
		}
		before = result.DAG
	}
	said, err := agent.Conversation(before.Latest())
	if n, _ := seen.From(before); err != nil || n != 20 || len(said) != 40 || said[38].Text() != "question 19" {
		t.Errorf("%d questions counted, %d messages, %v", n, len(said), err)
	}
}
