package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// A pipeline that needs input is asked for it before it runs; what does not fit is asked for again. The findings are the same as
// the command's, and the reasons of lost lanes stand below the run.
func TestInput(t *testing.T) {
	list := dag.NewType[[]string]("list")
	checked := 0
	m := newModel(t.Context(), Config{
		Pipeline: stone.Seq("p", stone.Map("each", list, word, stone.Func("say", word, request, func(_ context.Context, w string) (stone.Answer, error) {
			if w == "b" {
				return stone.Answer{}, stone.Fail("mute", "no voice")
			}
			return stone.Answer{Response: w}, nil
		}), stone.Quorum(1)),
			stone.Reduce(stone.Func("join", dag.Lanes(request), word, func(context.Context, []stone.Answer) (string, error) { return "joined", nil }))),
		Needs: "list, as text or JSON",
		Read: func(typed string) (dag.DAG, error) {
			if typed != "a,b" {
				return dag.DAG{}, errors.New("want a,b")
			}
			return dag.Of(list.With([]string{"a", "b"})), nil
		},
		Check: func(stone.Config) stone.Findings {
			checked++
			return nil
		},
		Show: func(stone.Result) string { return "" },
		Wait: true, Now: time.Now,
	}, &feed{})
	m.Init()
	send := func(text string) tea.Cmd {
		for _, r := range text {
			m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
		_, cmd := m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		return cmd
	}
	if cmd := send("x"); cmd != nil || m.refusal != "want a,b" {
		t.Fatalf("a wrong input: %q", m.refusal)
	}
	m.input.Reset()
	cmd := send("a,b")
	if cmd == nil || m.state != running || checked != 1 {
		t.Fatalf("the input starts no run: state %d, checked %d times", m.state, checked)
	}
	m.Update(cmd())
	if m.err != nil || m.state != done {
		t.Fatal(m.err)
	}
	if got := m.shown(); !strings.Contains(got, "lost: mute at p/each[1]/say: no voice") {
		t.Errorf("the reason of the lost lane is not shown:\n%s", got)
	}
}
