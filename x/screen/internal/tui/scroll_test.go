package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"
)

// lines returns the visible lines of the transcript.
func (m *model) lines() []string {
	shown, _ := m.transcript.show(m.layout().transcriptHeight)
	var out []string
	for _, l := range shown {
		out = append(out, l.text)
	}
	return out
}

// speech is a model whose agents have said numbered lines.
func speech(t *testing.T, width, height int) *model {
	m := still(t, width, height)
	for i := range 20 {
		m.take(&piece{path: fmt.Sprint("p/", i%2), turn: 1, kind: event.Text, text: fmt.Appendf(nil, "line %d begins here and ends there.\n", i)})
	}
	return m
}

func TestScroll(t *testing.T) {
	m := speech(t, 60, 14)
	has := func(what string, present bool) {
		t.Helper()
		if got := strings.Contains(strings.Join(m.lines(), "\n"), what); got != present {
			t.Errorf("%q is shown: %v\n%s", what, got, strings.Join(m.lines(), "\n"))
		}
	}
	has("line 19", true)
	press(m, "pgup", "pgup", "pgup", "pgup", "pgup")
	first := m.lines()[0]
	has("line 19", false)
	m.take(&piece{path: "p/1", turn: 1, kind: event.Text, text: []byte("more\nand more\nand more\n")})
	if got := m.lines()[0]; got != first {
		t.Errorf("the window moved from %q to %q", first, got)
	}
	press(m, "home")
	if got := m.lines()[0]; got != "0  turn 1" {
		t.Errorf("the first line is %q", got)
	}
	press(m, "end")
	has("and more", true)
	m.take(&piece{path: "p/1", turn: 1, kind: event.Text, text: []byte("the latest")})
	has("the latest", true)
	m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	has("the latest", false)
	m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	has("the latest", true)
}

// TestResizeKeepsThePlace checks that the first visible line stays first when the
// terminal changes its size.
func TestResizeKeepsThePlace(t *testing.T) {
	m := speech(t, 60, 14)
	var long strings.Builder
	for i := range 600 {
		fmt.Fprintf(&long, "word%d ", i)
	}
	m.take(&piece{path: "p/long", turn: 1, kind: event.Text, text: []byte(long.String())})
	m.take(&piece{path: "p/tail", turn: 1, kind: event.Text, text: []byte(strings.Repeat("tail\n", 100))})
	for !strings.Contains(m.lines()[0], "word400 ") {
		press(m, "up")
	}
	word, _, _ := strings.Cut(m.lines()[0], " ")
	for _, size := range []tea.WindowSizeMsg{{Width: 100, Height: 30}, {Width: 20, Height: 9}, {Width: 150, Height: 40}, {Width: 60, Height: 14}} {
		m.Update(size)
		if got := strings.Join(m.lines()[:2], " "); !strings.Contains(got+" ", word+" ") {
			t.Errorf("at %v: %q does not begin with %q", size, got, word)
		}
	}
}

func TestTurns(t *testing.T) {
	m := still(t, 60, 30)
	piece := func(turn int, kind event.DeltaKind, text string) *piece {
		return &piece{path: "p/a", turn: turn, from: fmt.Sprint("p/a/turn-", turn), kind: kind, text: []byte(text)}
	}
	broken := voided{"p/a", 2, "p/a/turn-2", event.Retracted{Source: "m", Attempt: 1, Reason: "connection reset"}}
	recorded := whole{"p/a", 3, &event.ModelReply{Reasoning: "hm", Text: "as before", ToolCalls: []llm.ToolCall{{Name: "look", Input: []byte(`{"x":1}`)}}}}
	for _, item := range []any{
		entered{"p/a"}, piece(1, event.Text, "first"), called{path: "p/a", turn: 1, position: 2, name: "unseen", in: `{"y":2}`, out: "bad"},
		piece(2, event.Text, "wrong"), broken, piece(2, event.Text, "right"), recorded,
	} {
		m.take(item)
	}
	want := []string{
		"a  turn 1", "first", `→ unseen {"y":2}`, "  ✗ <1ms  bad", "",
		"a  turn 2", "wrong", "↻ interrupted, the answer restarts: connection reset", "right", "",
		"a  turn 3", "hm", "as before", `→ look {"x":1}`,
	}
	if got := strings.Join(m.lines(), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s", got)
	}
	if s := m.transcript.blocks[2]; s.style != dim {
		t.Error("retracted text is not dimmed")
	}
}
