package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve"
)

// faltering is a model whose connection breaks after its first word. It begins again when the gate is open.
type faltering struct{ gate <-chan struct{} }

func (f faltering) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if !yield(llm.Delta{Kind: llm.Text, Text: "One "}, nil) {
			return
		}
		select {
		case <-f.gate:
		case <-ctx.Done():
			yield(llm.Delta{}, ctx.Err())
			return
		}
		for _, d := range []llm.Delta{
			{Kind: llm.Restart, Err: errors.New("the connection broke")},
			{Kind: llm.Text, Text: "Two three "}, {Kind: llm.Text, Text: "four."},
			{Kind: llm.Done, Reply: &llm.Reply{Text: "Two three four."}},
		} {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// capability does the same.
func (f faltering) capability() call.Capability {
	return call.Capability{Metadata: call.Metadata{ID: "stammers", Intents: []string{"chat/answer"}}, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		req.Voice.Say(event.Text, "One ")
		select {
		case <-f.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		req.Voice.Again("it does not fit")
		req.Voice.Say(event.Text, "Two three ")
		req.Voice.Say(event.Text, "four.")
		return &call.Reply{Type: call.Value, Out: call.JSON(`{"text":"Two three four."}`)}, nil
	}}
}

// shown applies the events of a stream of either protocol as its clients do, who refuse a piece of a text that has not begun
// or has ended. It returns the texts that remain.
func shown(t *testing.T, body *bufio.Scanner, heard func(piece string)) string {
	t.Helper()
	var order []string
	texts, open := map[string]string{}, map[string]bool{}
	for body.Scan() {
		var e struct {
			Type, ID, Delta, MessageID string
			ProviderMetadata           struct{ Stone struct{ Retracted string } }
			Messages                   []struct{ ID, Role, Content string }
		}
		if text, ok := strings.CutPrefix(body.Text(), "data: "); !ok || json.Unmarshal([]byte(text), &e) != nil {
			continue
		}
		id := e.ID + e.MessageID
		switch e.Type {
		case "text-start", "TEXT_MESSAGE_START":
			if texts[id] != "" {
				t.Errorf("the text %s begins twice", id)
			}
			order, open[id] = append(order, id), true
		case "text-delta", "TEXT_MESSAGE_CONTENT":
			if !open[id] {
				t.Errorf("%q is a piece of %s, which is not open", e.Delta, id)
			}
			texts[id] += e.Delta
			heard(e.Delta)
		case "text-end", "TEXT_MESSAGE_END":
			if !open[id] {
				t.Errorf("%s ends, and is not open", id)
			}
			if open[id] = false; e.ProviderMetadata.Stone.Retracted != "" {
				delete(texts, id)
			}
		case "MESSAGES_SNAPSHOT":
			clear(texts)
			for _, m := range e.Messages {
				if m.Role == "assistant" {
					texts[m.ID] = m.Content
				}
			}
		}
	}
	var all []string
	for _, id := range order {
		if texts[id] != "" {
			all = append(all, texts[id])
		}
	}
	return strings.Join(all, "|")
}

// An answer that a model has restarted is told once, also when its viewer switches to the run's record, which lacks the first
// attempt, or a call's answer.
func TestAnswerBegunAnew(t *testing.T) {
	topic := dag.NewType[string]("topic")
	gates := map[string]chan struct{}{}
	gated := func(name string) faltering {
		gates[name] = make(chan struct{})
		return faltering{gates[name]}
	}
	app := func(name, in string) *call.Applicator {
		return &call.Applicator{Registry: call.NewRegistry(gated(name).capability()), Intents: map[string]call.Intent{"chat/answer": {In: in}}}
	}
	asks := func(a *call.Applicator, of dag.Type[string]) stone.Ashlar {
		return call.New("answer", replied, call.Spec{Applicator: a, Intent: "chat/answer", Input: dag.Derive(of, func(s string) any { return map[string]string{"text": s} })})
	}
	s := serveAll(t, serve.Config{Pipelines: []serve.Pipeline{
		{Name: "agent", Ashlar: agent.New("mason", replied, gated("agent"), agent.Config{User: spoken, Conversation: agent.ConversationOf(replied)})},
		{Name: "nested", Ashlar: stone.Seq("desk", stone.Func("note", spoken, topic, func(_ context.Context, s string) (string, error) { return s, nil }), asks(app("nested", ""), topic))},
		{Name: "call", Ashlar: asks(app("call", ""), spoken)},
		{Name: "intent", Ashlar: talk.Intent(app("intent", terms.TextRequest), "chat/answer")},
	}})
	close(gates["intent"]) // its answer is not told while it is written
	for name, gate := range gates {
		for _, protocol := range []string{"ui", "agui"} {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				body := saying(protocol, "m1", "hello")
				if protocol == "agui" {
					body = `{"threadId":"agui","runId":"1","messages":[{"id":"m1","role":"user","content":"hello"}]}`
				}
				resp, err := http.Post(fmt.Sprintf("%s/v1/%s/%s", s.URL, protocol, name), "application/json", strings.NewReader(strings.ReplaceAll(body, `"`+protocol+`"`, `"`+name+protocol+`"`)))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got := shown(t, bufio.NewScanner(resp.Body), func(piece string) {
					if piece == "One " && protocol == "ui" && name != "intent" {
						close(gate)
					}
				})
				if got != "Two three four." {
					t.Errorf("%q is shown", got)
				}
			})
		}
	}
}

// Who comes after a leaf has failed is not told what it has said, as who was there has seen it taken back.
func TestFailedLeafIsSilent(t *testing.T) {
	bad := agent.New("bad", replied, faltering{closed()}, agent.Config{User: spoken, Adversary: stone.Func("judge", replied, said, func(_ context.Context, a agent.Text) (agent.Text, error) {
		return a, stone.Fail("rude", "be polite")
	})})
	good := stone.Func("good", spoken, replied, func(context.Context, string) (agent.Text, error) { return agent.Text{Text: "Good."}, nil })
	db := memdb.New(t)
	pipelines := []serve.Pipeline{{Name: "rescued", Ashlar: stone.Rescue("rescued", bad, good)}}
	s := serveAll(t, serve.Config{Journal: db, Pipelines: pipelines})
	url := s.URL + "/v1/ui/rescued"
	live := chat(t, "POST", url, saying("c", "m1", "hello"), whole)
	late := chat(t, "GET", url+"/c/stream?message=m1", "", whole)
	if live.text() != "Good." || late.text() != "Good." {
		t.Errorf("live %q, later %q", live.parts, late.parts)
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// A message that is sent again answers nothing else: neither the next question, nor is one with the same words and another id
// taken for it. Clients may send their last message alone. One that comes back gets the reply to its answer.
func TestConversationAnswersOnce(t *testing.T) {
	ask := func(name string, from dag.Type[string]) stone.Ashlar {
		return stone.Ask(name, from, dag.NewType[stone.Answer](name), func(string) string { return name + "?" })
	}
	stones := stone.Seq("stones", ask("which", spoken), ask("where", spoken), stone.Func2("done", dag.NewType[stone.Answer]("which"), dag.NewType[stone.Answer]("where"), page,
		func(_ context.Context, which, where stone.Answer) (string, error) {
			return which.Response + " " + where.Response, nil
		}))
	s := serveAll(t, serve.Config{Pipelines: []serve.Pipeline{{Name: "stones", Ashlar: stones}}})
	url := s.URL + "/v1/ui/stones"
	for _, c := range []struct{ id, text, message, question, said string }{
		{"m1", "build", "c-turn-1", "which", ""},
		{"m2", "slate", "c-turn-1~m2", "where", ""},
		{"m2", "slate", "c-turn-1~m2", "where", ""},
		{"m3", "here", "c-turn-1~m3", "", "slate here"},
		{"m3", "here", "c-turn-1~m3", "", "slate here"},
		{"m2", "slate", "c-turn-1~m2", "", "slate here"},
		{"m4", "here", "c-turn-2", "which", ""},
		{"m4", "here", "c-turn-2", "which", ""},
	} {
		r := chat(t, "POST", url, saying("c", c.id, c.text), whole)
		if r.message != c.message || !strings.Contains(r.question, c.question) || (r.question == "") != (c.question == "") || r.text() != c.said {
			t.Errorf("%s %q: %+v", c.id, c.text, r)
		}
		if r := chat(t, "GET", url+"/c/stream?message="+c.id, "", whole); c.id != "m2" && c.id != "m4" && (r.message != c.message || r.text() != c.said) {
			t.Errorf("%s again: %+v", c.id, r)
		}
	}
}
