package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/teatest/v2"
	"go.uber.org/goleak"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
)

func TestMain(m *testing.M) {
	// teatest waits for an interrupt as long as the process lives.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/charmbracelet/x/exp/teatest/v2.NewTestModel.func2"),
		goleak.IgnoreAnyFunction("os/signal.loop"))
}

var (
	request = dag.NewType[stone.Answer]("request")
	reply   = dag.NewType[agent.Text]("reply")
)

type lookup struct {
	Word string `json:"word"`
}

// chat asks a person for a question, which an agent answers with the help of a tool.
func chat() stone.Ashlar {
	look := tool.Func("look_up", "Looks a word up.", func(_ context.Context, l lookup) (string, error) {
		return l.Word + ": a block of dressed stone", nil
	})
	three, five := 3, 5
	last := script.Text("An ashlar is a block of dressed stone.")
	last.Reply.Reasoning = "The tool says it."
	last.Reply.Usage = llm.Usage{InputTokens: &three, OutputTokens: &five}
	return stone.Seq("chat",
		stone.Ask("ask", dag.Nothing, request, func(struct{}) string { return "What do you want to know?" }),
		agent.New("answer", reply, script.Func(func(n int, _ *llm.Request) script.Answer {
			return []script.Answer{script.Call("look_up", `{"word":"ashlar"}`), last}[n%2]
		}), agent.Config{
			Use:  []agent.Middleware{look},
			User: agent.Prompt(request, func(a stone.Answer) string { return a.Response }),
		}))
}

func show(r stone.Result) string {
	if r.Node == nil {
		return ""
	}
	return r.Node.Text()
}

// watched is a display under teatest, with its output.
type watched struct {
	*teatest.TestModel
	t *testing.T
	m *model
}

func watch(t *testing.T, p stone.Ashlar) watched {
	f := &feed{}
	m := newModel(t.Context(), Config{Pipeline: p, Show: show, Now: func() time.Time { return start }}, f)
	tm := teatest.NewTestModel(t, m, teatest.WithInitialTermSize(80, 24))
	t.Cleanup(f.pump(t.Context(), tm.Send))
	return watched{tm, t, m}
}

func (w watched) until(text string) {
	w.t.Helper()
	teatest.WaitFor(w.t, w.Output(), func(b []byte) bool { return bytes.Contains(b, []byte(text)) }, teatest.WithDuration(10*time.Second))
}

// final leaves the display and returns its last frame.
func (w watched) final() string {
	w.Send(tea.KeyPressMsg{Code: 'q', Text: "q"})
	w.WaitFinished(w.t, teatest.WithFinalTimeout(10*time.Second))
	w.m.result.RunID = ""
	return w.m.shown()
}

func TestChat(t *testing.T) {
	w := watch(t, chat())
	w.until("What do you want to know?")
	w.Type("What is an ashlar?")
	w.Send(tea.KeyPressMsg{Code: tea.KeyEnter})
	w.until("run again")
	first := regexp.MustCompile(`✓ \S+  ashlar:`).ReplaceAllString(w.final(), "✓ <1ms  ashlar:") // the tool may take longer
	teatest.RequireEqualOutput(t, []byte(first))
	if text, err := reply.From(w.m.result.DAG); err != nil || text.Text != "An ashlar is a block of dressed stone." {
		t.Errorf("%v, %v", text, err)
	}
}

func TestRunAgain(t *testing.T) {
	n := 0
	w := watch(t, stone.Func0("count", word, func(context.Context) (string, error) {
		n++
		return fmt.Sprintf("run number %d", n), nil
	}))
	w.until("run number 1")
	w.Type("r")
	w.until("run number 2")
	w.Send(tea.WindowSizeMsg{Width: 50, Height: 20})
	if s := w.final(); !strings.Contains(s, "result\nrun number 1\n") || !strings.Contains(s, "result\nrun number 2\n") {
		t.Errorf("not both results:\n%s", s)
	}
}

// TestWait checks that no run starts, and costs money, before the person starts it.
func TestWait(t *testing.T) {
	ran := 0
	p := stone.Func0("costly", word, func(context.Context) (string, error) { ran++; return "done", nil })
	for _, keys := range [][]string{{"r"}, {"q"}, {"ctrl+c"}, {"y", "n", "down"}} {
		m := newModel(t.Context(), Config{Pipeline: p, Show: show, Now: func() time.Time { return start }, Wait: true}, &feed{})
		if cmd := m.Init(); cmd != nil || !strings.Contains(m.shown(), "has not started") || !strings.Contains(m.shown(), "costly") {
			t.Errorf("before the run:\n%s", m.shown())
		}
		press(m, keys...)
		if m.state != ready || ran > 0 {
			t.Errorf("%q starts the run", keys)
		}
	}
	m := newModel(t.Context(), Config{Pipeline: p, Show: show, Now: func() time.Time { return start }, Wait: true}, &feed{})
	m.Init()
	cmd := press(m, "enter")
	if m.state != running || cmd == nil {
		t.Fatalf("enter does not start the run:\n%s", m.shown())
	}
	m.Update(cmd())
	if m.state != done || ran != 1 {
		t.Errorf("state %d after %d runs", m.state, ran)
	}
	invalid := stone.Func("b", reply, word, func(context.Context, agent.Text) (string, error) { return "", nil })
	m = newModel(t.Context(), Config{Pipeline: invalid, Show: show, Now: func() time.Time { return start }, Wait: true}, &feed{})
	if m.Init(); m.state != refused || press(m, "enter") != nil {
		t.Errorf("an invalid pipeline is ready:\n%s", m.shown())
	}
}

func TestCancel(t *testing.T) {
	running := make(chan struct{})
	w := watch(t, stone.Func0("sleep", word, func(ctx context.Context) (string, error) {
		close(running)
		<-ctx.Done()
		return "", context.Cause(ctx)
	}))
	<-running
	w.Send(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	w.until("failed after")
	if s := w.final(); !strings.Contains(s, "✗ canceled at sleep: the run was ended by Ctrl-C") {
		t.Errorf("got\n%s", s)
	}
	var failure *stone.Failure
	if _, err := w.m.outcome(); !errors.As(err, &failure) || failure.Kind != "canceled" {
		t.Errorf("outcome %v", err)
	}
}

func TestInvalid(t *testing.T) {
	w := watch(t, stone.Seq("broken", say("a"), stone.Func("b", reply, word, func(context.Context, agent.Text) (string, error) { return "", nil })))
	w.until("is invalid")
	s := w.final()
	if !strings.Contains(s, `"reply"`) {
		t.Errorf("no finding:\n%s", s)
	}
	var invalid *stone.Invalid
	if _, err := w.m.outcome(); !errors.As(err, &invalid) {
		t.Errorf("outcome %v", err)
	}
}

// screen is the output of Run.
type screen struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(b)
}

// TestSignal checks that Run cancels the run and ends with it when its context is
// done.
func TestSignal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, keys := io.Pipe()
	defer keys.Close()
	p := stone.Func0("sleep", word, func(ctx context.Context) (string, error) {
		cancel()
		<-ctx.Done()
		return "slept", nil
	})
	result, err := Run(ctx, Config{Pipeline: p, In: in, Out: new(screen), Show: show})
	if result.RunID == "" {
		t.Error("the result has no run id")
	}
	if err != nil && !strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v", err)
	}
}

// TestLeave checks that a second Ctrl-C does not wait for a step that ignores
// cancellation.
func TestLeave(t *testing.T) {
	in, keys := io.Pipe()
	free := make(chan struct{})
	p := stone.Func0("stubborn", word, func(ctx context.Context) (string, error) {
		go func() {
			for range 2 {
				keys.Write([]byte{3})
			}
		}()
		<-free
		return "", nil
	})
	_, err := Run(t.Context(), Config{Pipeline: p, In: in, Out: new(screen), Show: show})
	if !errors.Is(err, display.ErrLeft) {
		t.Errorf("got %v", err)
	}
	close(free)
	keys.Close()
}
