//go:build unix

package screen_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/screen"
)

// The test is the program of each pipeline.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"quarry":   func() { cli.Main(quarry, screen.Part) },
		"stubborn": func() { cli.Main(stubborn, screen.Part) },
		"refund":   func() { cli.Main(refund, screen.Part) },
		"poet":     func() { cli.Main(poet, screen.Part) },
	})
}

var (
	word  = dag.NewType[string]("word")
	reply = dag.NewType[stone.Answer]("reply")
)

var poem = dag.NewType[agent.Text]("poem")

// poet asks the model that the user chooses.
func poet() stone.Ashlar {
	return agent.New("poet", poem, cli.DefaultModel(), agent.Config{
		User: agent.Say("Write a haiku about stone."),
	})
}

// quarry lets a person choose, and cuts until it is told to stop.
func quarry() stone.Ashlar {
	return stone.Seq("quarry",
		stone.Ask("choose", dag.Nothing, reply, func(struct{}) string { return "Which stone?" }, stone.Choices("granite", "marble")),
		stone.Func("cut", reply, word, func(ctx context.Context, a stone.Answer) (string, error) {
			if a.Response == "granite" {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}
			return "cut " + a.Response, nil
		}))
}

// refund asks for consent to more than fits on a line.
func refund() stone.Ashlar {
	return stone.Seq("refund",
		stone.Ask("approve", dag.Nothing, reply, func(struct{}) string {
			return "Shall I refund what this customer paid? " + strings.Repeat("It was charged twice. ", 8) + "The sum is 199 euros."
		}, stone.Choices("yes", "no")),
		stone.Func("pay", reply, word, func(_ context.Context, a stone.Answer) (string, error) { return "answered " + a.Response, nil }))
}

// stubborn does not listen to its context.
func stubborn() stone.Ashlar {
	return stone.Func0("sleep", word, func(context.Context) (string, error) {
		time.Sleep(time.Hour)
		return "", nil
	})
}

// tmux is a terminal of its own.
type tmux struct {
	t      *testing.T
	socket string
}

func (m tmux) do(args ...string) string {
	m.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", m.socket}, args...)...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %s: %v: %s", args[0], err, out)
	}
	return string(out)
}

// until waits for a text on the screen, and returns the screen.
func (m tmux) until(text string) string {
	m.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		screen := m.do("capture-pane", "-p")
		if strings.Contains(screen, text) {
			return screen
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("%q does not come:\n%s", text, screen)
		}
	}
}

func (m tmux) keys(keys ...string) { m.t.Helper(); m.do(append([]string{"send-keys"}, keys...)...) }

// inTmux runs a command of the scripts, followed by its exit code, on a terminal
// of 80 columns and 24 lines in an empty directory.
func inTmux(t *testing.T, command string) tmux {
	t.Helper()
	need.Program(t, "tmux")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name, _, _ := strings.Cut(command, " ")
	if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	m := tmux{t, filepath.Join(dir, "s")}
	t.Cleanup(func() { m.do("kill-server") })
	m.do("new-session", "-d", "-x", "80", "-y", "24", "-c", dir, "-e", "HOME="+dir,
		"PATH="+dir+":$PATH "+command+"; echo exit code $?; exec sleep 600")
	m.until("has not started")
	m.keys("Enter")
	return m
}

func TestTerminal(t *testing.T) {
	m := inTmux(t, "quarry")
	m.until("  granite")
	m.keys("Up")
	m.until("› marble")
	m.do("resize-window", "-x", "40", "-y", "10")
	if screen := m.until("type or ↑↓ to choose · enter answer · c…"); !strings.Contains(screen, "› marble") {
		t.Errorf("the choice is lost:\n%s", screen)
	}
	m.do("resize-window", "-x", "100", "-y", "30")
	m.until("│")
	m.keys("Enter")
	m.until("cut marble")
	m.keys("r")
	m.until("  granite")
	m.keys("g", "Enter")
	m.until("ctrl+c cancel")
	m.keys("C-c")
	m.until("canceled at quarry/cut: the run was ended by Ctrl-C")
	m.keys("q")
	if screen := m.until("exit code 0"); !strings.HasPrefix(screen, "failed: canceled at quarry/cut") {
		t.Errorf("the screen does not show the state of the run:\n%s", screen)
	}
}

// TestTerminalConsent checks that only "yes" consents, and that the whole question can
// be read.
func TestTerminalConsent(t *testing.T) {
	m := inTmux(t, "refund")
	if screen := m.until("  yes"); strings.Count(strings.Join(strings.Fields(screen), " "), "The sum is 199 euros.") < 2 {
		t.Errorf("the question is cut:\n%s", screen)
	}
	m.keys("Enter")
	m.until("choose first")
	m.keys("maybe", "Enter")
	m.until(`no choice begins with "maybe"`)
	m.keys("C-u")
	m.keys("no", "Enter")
	m.until("answered no")
	m.keys("q")
	m.until("exit code 0")
}

// TestTerminalLeave checks that the second Ctrl-C leaves the terminal as it was.
func TestTerminalLeave(t *testing.T) {
	m := inTmux(t, "stubborn")
	m.until("running")
	m.until("sleep")
	time.Sleep(200 * time.Millisecond)
	m.keys("C-c")
	m.until("ctrl+c leave at once")
	m.keys("C-c")
	if screen := m.until("exit code 1"); !strings.HasPrefix(screen, "Error: you left before the run ended") {
		t.Errorf("got\n%s", screen)
	}
}

// TestTerminalFlags checks that flags reach the default model.
func TestTerminalFlags(t *testing.T) {
	model := script.New(script.Text("Grey, and it is old."))
	server := httptest.NewServer(model)
	defer server.Close()
	m := inTmux(t, "poet --model small --url "+server.URL)
	screen := m.until("result")
	if !strings.Contains(screen, "Grey, and it is old.") || !strings.Contains(screen, "turn 1  small") {
		t.Errorf("got\n%s", screen)
	}
	m.keys("q")
	m.until("exit code 0")
}
