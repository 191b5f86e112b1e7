package cli_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
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

func init() { programs["quarry"], programs["poet"] = quarry, poet }

// inProject makes a project with settings and goes into a directory of it.
func inProject(t *testing.T, settings string) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	for _, name := range []string{"STONE_PROVIDER", "STONE_MODEL", "STONE_URL"} {
		t.Setenv(name, "")
	}
	deep := filepath.Join(dir, "a", "b")
	for _, d := range []string{deep, filepath.Join(dir, ".stone")} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".stone", "settings.json"), []byte(settings), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
}

func TestDefaultModel(t *testing.T) {
	model := script.Func(func(int, *llm.Request) script.Answer { return script.Text("Grey, and it is old.") })
	server := httptest.NewServer(model)
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", "none")
	t.Setenv("ANTHROPIC_API_KEY", "none")
	p := poet() // before anything is chosen
	run := func(wantModel string) {
		t.Helper()
		res, err := stone.Run(t.Context(), p, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Node.Text(); got != "Grey, and it is old." {
			t.Errorf("the poem is %q", got)
		}
		requests := model.Requests()
		if got := requests[len(requests)-1].Model; got != wantModel {
			t.Errorf("model %q was asked, want %q", got, wantModel)
		}
	}
	inProject(t, `{"model": "small", "url": "`+server.URL+`"}`)
	run("small")
	t.Setenv("STONE_MODEL", "large")
	run("large")
	t.Setenv("STONE_PROVIDER", "anthropic")
	if info := cli.DefaultModel().(llm.Informer).Info(); info.Provider != "anthropic" || info.Model != "large" {
		t.Errorf("the model is %+v", info)
	}
	run("large")
}

func TestDefaultModelThatIsNone(t *testing.T) {
	for settings, want := range map[string]string{
		`{}`:                 `no model is chosen: set "model" in .stone/settings.json, or STONE_MODEL, or give --model`,
		`{"modle": "small"}`: `settings.json:1:2: modle: unknown field modle; known are model, pipeline, provider, url; did you mean "model"?`,
	} {
		inProject(t, settings)
		_, err := stone.Run(t.Context(), poet(), stone.Config{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", settings, err, want)
		}
		if _, err := llm.Collect(t.Context(), cli.DefaultModel(), &llm.Request{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: asked all the same: %v", settings, err)
		}
	}
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
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("the program tmux is missing")
	}
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
	return m
}

func TestTerminal(t *testing.T) {
	m := inTmux(t, "quarry")
	m.until("› granite")
	m.keys("Down")
	m.until("› marble")
	m.do("resize-window", "-x", "40", "-y", "10")
	if screen := m.until("↑↓ choose · enter answer · ctrl+d no an…"); !strings.Contains(screen, "› marble") {
		t.Errorf("the choice is lost:\n%s", screen)
	}
	m.do("resize-window", "-x", "100", "-y", "30")
	m.until("│")
	m.keys("Enter")
	m.until("cut marble")
	m.keys("r")
	m.until("› granite")
	m.keys("Enter")
	m.until("ctrl+c cancel")
	m.keys("C-c")
	m.until("canceled at quarry/cut: the run was ended by Ctrl-C")
	m.keys("q")
	if screen := m.until("exit code 0"); !strings.HasPrefix(screen, "failed: canceled at quarry/cut") {
		t.Errorf("what is left of the run is not said:\n%s", screen)
	}
}

// TestTerminalLeave holds that the second Ctrl-C leaves the terminal as it was.
func TestTerminalLeave(t *testing.T) {
	m := inTmux(t, "stubborn")
	m.until("running")
	m.until("sleep")
	time.Sleep(200 * time.Millisecond)
	m.keys("C-c")
	m.until("ctrl+c leave at once")
	m.keys("C-c")
	if screen := m.until("exit code 1"); !strings.HasPrefix(screen, "Error: left while the run was under way") {
		t.Errorf("got\n%s", screen)
	}
}

// TestTerminalFlags holds that flags reach the default model.
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
