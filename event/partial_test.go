package event_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// watched runs an agent with these answers and returns what its watcher was told.
func watched[T any](t *testing.T, answers ...script.Answer) (told []string) {
	t.Helper()
	p := agent.New("ask", dag.NewType[T]("answer"), words{script.New(answers...)}, agent.Config{User: agent.Say("?")})
	watch := event.Partials("ask", func(p event.Partial[T]) {
		text, err := json.Marshal(p.Value)
		if err != nil {
			t.Error(err)
		}
		if p.Retracted != "" {
			text = []byte("retracted")
		}
		if line := fmt.Sprintf("%s %d %s", p.Path, p.Attempt, text); !slices.Contains(told, line) {
			told = append(told, line)
		}
	})
	if _, err := stone.Run(t.Context(), p, stone.Config{Watch: watch}); err != nil {
		t.Log(err)
	}
	return told
}

func TestPartials(t *testing.T) {
	type doc struct {
		Name string    `json:"name"`
		At   time.Time `json:"at,omitzero"`
		N    uint8     `json:"n,omitempty"`
	}
	for _, c := range []struct {
		name string
		told []string
		want string
	}{
		{"an answer that does not fit is taken back",
			watched[doc](t, script.Text(`{ "name":"a", "n":-1}`), script.Text(`{ "name":"b"}`)),
			`ask/turn-1 1 {"name":""}; ask/turn-1 1 {"name":"a"}; ask/turn-1 1 retracted; ask/turn-2 1 {"name":""}; ask/turn-2 1 {"name":"b"}`},
		{"a string that T does not take as a part",
			watched[doc](t, script.Text(`{"name":"a b", "at":"2026-11-22 T12:00:00Z"}`), script.Text(`{"name":"a","at":"2026-11-22T12:00:00Z"}`)),
			`ask/turn-1 1 {"name":"a "}; ask/turn-1 1 {"name":"a b"}; ask/turn-1 1 retracted; ask/turn-2 1 {"name":"a","at":"2026-11-22T12:00:00Z"}`},
		{"no JSON", watched[doc](t, script.Text(`I cannot say.`), script.Text(`Nor now.`)), ``},
		{"a model that breaks off",
			watched[doc](t, script.Answer{Reply: llm.Reply{Text: `{ "name":"ab`}, Err: errors.New("gone")}),
			`ask/turn-1 1 {"name":""}; ask/turn-1 1 {"name":"ab"}; ask/turn-1 1 retracted`},
		{"a code block", watched[doc](t, script.Text("Here it is: ```json\n{\"name\":\"a\"}\n```")), `ask/turn-1 1 {"name":"a"}`},
	} {
		if got := strings.Join(c.told, "; "); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestPartialsWrapped checks answers that are no objects, which models give as a property.
func TestPartialsWrapped(t *testing.T) {
	var told []string
	watch := event.Partials("", func(p event.Partial[[]string]) { told = append(told, fmt.Sprintf("%q", p.Value)) })
	for _, piece := range []string{`{"value":["a`, `b","c"]}`} {
		watch.Watch(t.Context(), event.Event{Data: event.Delta{Text: piece}})
	}
	if got := strings.Join(told, " "); got != `["a"] ["ab" "c"]` {
		t.Error(got)
	}
}

// TestPartialsAreLinear counts what the values of an answer cost together.
func TestPartialsAreLinear(t *testing.T) {
	cost := func(n int) (bytes int) {
		watch := event.Partials("", func(p event.Partial[json.RawMessage]) { bytes += len(p.Value) })
		text := `{"text":"` + strings.Repeat("stone ", n) + `"}`
		for i := 0; i < len(text); i += 4 {
			watch.Watch(t.Context(), event.Event{Data: event.Delta{Text: text[i:min(i+4, len(text))]}})
		}
		return bytes / len(text)
	}
	if few, many := cost(1000), cost(100_000); many > 18 || many > 2*few {
		t.Errorf("%d bytes for each byte of the answer, and %d for each of a longer one", few, many)
	}
}
