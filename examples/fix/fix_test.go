package fix

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/kind"
)

// noKeys makes sure that the scripted model answers.
func noKeys(t *testing.T) {
	for _, key := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"} {
		t.Setenv(key, "")
	}
	t.Setenv("TMPDIR", t.TempDir())
}

// answers is a Frontend that gives one answer and counts.
type answers struct {
	text  string
	asked []string
}

func (a *answers) Ask(_ context.Context, q ask.Question) (ask.Answer, error) {
	a.asked = append(a.asked, q.Text)
	return ask.Answer{Response: a.text}, nil
}

func run(t *testing.T, front ask.Frontend, args ...string) (stone.Result, error) {
	t.Helper()
	p, err := Pipeline(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range stone.Validate(p, stone.Given{}) {
		t.Errorf("finding: %s", f)
	}
	return stone.Run(context.Background(), p, stone.Config{Frontend: front})
}

func TestRepair(t *testing.T) {
	need.Time(t)
	tests := []struct {
		name     string
		args     []string
		answer   string
		asked    int
		verdicts []bool
		kind     kind.Kind // of the failure, or ""
	}{
		{"the second attempt succeeds", nil, "", 0, []bool{false, false, true}, ""},
		{"a person allows the last attempt", []string{"--attempts", "2"}, "yes", 1, []bool{false, false, true}, ""},
		{"a person forbids it", []string{"--attempts", "2"}, "no", 1, []bool{false, false}, "declined"},
		{"one attempt is not enough, and no question is asked", []string{"--attempts", "1"}, "", 0, []bool{false, false}, kind.LoopExhausted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			noKeys(t)
			front := &answers{text: tt.answer}
			res, err := run(t, front, tt.args...)
			var failure *stone.Failure
			if errors.As(err, &failure) != (tt.kind != "") || failure != nil && failure.Kind != tt.kind {
				t.Errorf("error %v, want kind %q", err, tt.kind)
			}
			if len(front.asked) != tt.asked {
				t.Errorf("asked %q, want %d questions", front.asked, tt.asked)
			}
			all, err := dag.All(verdict).From(res.DAG)
			if err != nil {
				t.Fatal(err)
			}
			var passed []bool
			for _, v := range all {
				passed = append(passed, v.Passed)
			}
			if !slices.Equal(passed, tt.verdicts) {
				t.Errorf("verdicts %v, want %v", passed, tt.verdicts)
			}
		})
	}
}

// The file on disk is repaired, and the record says how.
func TestRecordOfTheRepair(t *testing.T) {
	need.Time(t)
	noKeys(t)
	res, err := run(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(os.TempDir(), "stone-fix-"+res.RunID, "stats.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), "float64(len(values))") || !strings.Contains(string(source), "len(values) == 0") {
		t.Errorf("stats.go is not repaired:\n%s", source)
	}
	patches, err := res.DAG.All(patch.Name())
	if err != nil || len(patches) != 2 {
		t.Fatalf("%d patches, want 2 (%v)", len(patches), err)
	}
	said, err := agent.Conversation(patches[0])
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, m := range said {
		for _, c := range m.ToolCalls {
			calls = append(calls, c.Name)
		}
	}
	if want := []string{"read_file", "edit_file"}; !slices.Equal(calls, want) {
		t.Errorf("the first attempt called %q, want %q", calls, want)
	}
}

func TestNothingToDo(t *testing.T) {
	noKeys(t)
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1") // would fail if it were asked
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.org/fine\n\ngo 1.26\n",
		"f_test.go": "package fine\n\nimport \"testing\"\n\nfunc TestFine(*testing.T) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	res, err := run(t, nil, "--dir", dir)
	if err != nil || !strings.HasPrefix(res.Node.Text(), "Nothing to do") {
		t.Errorf("result %q, error %v", res.Node.Text(), err)
	}
}

func TestBadArguments(t *testing.T) {
	noKeys(t)
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--dir", "."}, "OPENAI_API_KEY"}, // a package of one's own needs a model
		{[]string{"stray"}, "-attempts"},
		{[]string{"--attempts", "0"}, "-attempts"},
	}
	for _, tt := range tests {
		if _, err := Pipeline(tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want one with %q", tt.args, err, tt.want)
		}
	}
}
