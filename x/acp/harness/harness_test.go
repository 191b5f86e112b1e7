package harness_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/x/acp/harness"
)

type edits struct {
	Text  string `json:"text"`
	Base  string `json:"base"`
	Diff  string `json:"diff"`
	Tests struct {
		Passed bool   `json:"passed"`
		Output string `json:"output"`
	} `json:"tests,omitzero"`
}

var (
	task  = dag.NewType[map[string]string]("task")
	patch = dag.NewType[edits]("patch")
)

// world is a run of a call that a harness answers.
type world struct {
	*testing.T
	repo, log string
	cfg       harness.Config
	spec      call.Spec
	meta      call.Metadata
	db        *sqlite.DB
	resumed   bool
	frontend  ask.Frontend
	then      []stone.Ashlar // after the call
}

func newWorld(t *testing.T, does string) *world {
	if _, err := sandbox.Find(); err != nil {
		need.Absent(t, err.Error())
	}
	w := &world{T: t, db: memdb.New(t), repo: repository(t), log: filepath.Join(t.TempDir(), "log")}
	if err := os.WriteFile(w.log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.cfg = harness.Config{Command: []string{os.Args[0], "agent", does, w.log}, Dir: w.repo, Sandbox: sandbox.Policy{Writable: []string{w.log}}}
	w.meta = call.Metadata{ID: "coder", Intents: []string{"code/fix"}}
	w.spec = call.Spec{Intent: "code/fix", Input: call.From(task)}
	return w
}

// tested has go test decide, and one repair.
func (w *world) tested() {
	out, err := exec.Command("go", "env", "GOROOT", "GOCACHE").Output()
	if err != nil {
		w.Skip(err)
	}
	root, cache, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	w.cfg.Test = []string{filepath.Join(root, "bin", "go"), "test", "./..."}
	w.cfg.Sandbox.ReadOnly = []string{root}
	w.cfg.Sandbox.Writable = append(w.cfg.Sandbox.Writable, cache) // a cold one costs a minute
	w.cfg.Env = []string{"GOCACHE=" + cache, "GOFLAGS=", "GOTOOLCHAIN=local"}
	w.spec.Done.Must = []string{"tests-pass"}
	w.spec.Dispatch.Repair = &call.Repair{Max: 1}
}

func (w *world) run() (edits, error) {
	w.Helper()
	spec := w.spec
	spec.Applicator = &call.Applicator{Registry: call.NewRegistry(harness.New(w.meta, w.cfg)), Checks: map[string]call.Check{"tests-pass": harness.TestsPass}}
	p := stone.Seq("work", append([]stone.Ashlar{call.New("fix", patch, spec)}, w.then...)...)
	cfg := stone.Config{RunID: "r", Recorder: journal.Keep(w.db, journal.Options{Resume: w.resumed}), Frontend: w.frontend}
	if !w.resumed {
		cfg.Input = dag.Of(task.With(map[string]string{"prompt": "Mend Sum."}))
	}
	w.resumed = true
	result, err := stone.Run(w.Context(), p, cfg)
	if err != nil {
		return edits{}, err
	}
	return patch.From(result.DAG)
}

func (w *world) starts() int {
	w.Helper()
	text, err := os.ReadFile(w.log)
	if err != nil {
		w.Fatal(err)
	}
	return strings.Count(string(text), "started\n")
}

// applied checks that git apply takes the diff, and returns the file.
func (w *world) applied(e edits) string {
	w.Helper()
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = w.repo, strings.NewReader(e.Diff)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%v: %s\n%s", err, out, e.Diff)
	}
	text, err := os.ReadFile(filepath.Join(w.repo, "sum.go"))
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

const right = "package sum\n\nfunc Sum(a, b int) int { return a + b }\n"

// The tests reject the first edits of an agent; the second ones pass. The repository is as it was.
func TestRepaired(t *testing.T) {
	w := newWorld(t, "fix")
	w.tested()
	e, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	status := exec.Command("git", "status", "--porcelain")
	status.Dir = w.repo
	if out, err := status.Output(); err != nil || len(out) > 0 {
		t.Errorf("%v: the repository has changed: %s", err, out)
	}
	if diff := cmp.Diff(right, w.applied(e)); diff != "" || !e.Tests.Passed || e.Text != "edited" || w.starts() != 2 {
		t.Errorf("%+v, %d starts %s", e, w.starts(), diff)
	}
}

// The agent from the protocol's JavaScript SDK works too.
func TestNPM(t *testing.T) {
	module := filepath.Dir(filepath.Dir(peer.Module(t, "@agentclientprotocol/sdk")))
	peer.Held(t, "@agentclientprotocol/sdk", "an agent whose edits are tested")
	w := newWorld(t, "none")
	w.tested()
	node := need.Program(t, "node")
	script, err := filepath.Abs("testdata/agent.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if module, err = filepath.EvalSymlinks(module); err != nil {
		t.Fatal(err)
	}
	w.cfg.Command = []string{node, script, filepath.Join(module, "@agentclientprotocol", "sdk", "dist", "v1", "stable", "acp.js")}
	w.cfg.Sandbox.ReadOnly = append(w.cfg.Sandbox.ReadOnly, filepath.Dir(script), module)
	w.cfg.Allow = []string{"edit"}
	e, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(right, w.applied(e)); diff != "" || !e.Tests.Passed {
		t.Errorf("%+v %s", e, diff)
	}
}

// people answers questions in the process.
type people string

func (p people) Ask(_ context.Context, q ask.Question) (ask.Answer, error) {
	return ask.Answer{Response: string(p)}, nil
}

// Stone acp is a harness: its question is a permission.
func TestStone(t *testing.T) {
	for response, wants := range map[string]string{"yes": "edited", "no": "refused"} {
		w := newWorld(t, "stone")
		w.frontend = people(response)
		e, err := w.run()
		if err != nil {
			t.Fatal(err)
		}
		if e.Text != wants || (e.Diff != "") != (response == "yes") {
			t.Errorf("%s: %+v", response, e)
		}
	}
}

// A permission is asked in a run that waits for it in no process. The answer is recorded, and so is what the harness did:
// a later process does not start it again.
func TestPermission(t *testing.T) {
	w := newWorld(t, "ask")
	broken := true
	after := stone.Func("after", patch, done, func(context.Context, edits) (string, error) {
		if broken {
			return "", errors.New("the process dies here")
		}
		return "done", nil
	}, stone.Effects())
	w.then = []stone.Ashlar{after}
	if _, err := w.run(); !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	all, err := w.db.Questions(t.Context(), "r")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	q := all[0]
	if got := q.Text + " " + string(q.Call.Input) + " " + strings.Join(q.Choices, ","); got != `coder asks for permission: Edit ./sum.go {"path":"./sum.go"} Allow,Always,Reject,Allow (x)` {
		t.Error(got)
	}
	if err := journal.Answer(t.Context(), w.db, "r", q.Path, ask.Answer{Response: "Allow"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "the process dies here") {
		t.Fatal(err)
	}
	if n := w.starts(); n != 2 { // until the question, and after the answer
		t.Errorf("%d starts", n)
	}
	broken = false
	e, err := w.run()
	if err != nil || e.Text != "edited" || w.starts() != 2 {
		t.Errorf("%+v, %v, %d starts", e, err, w.starts())
	}
}

// Without people the call fails. What is allowed is not asked, and a refusal reaches the agent.
func TestAllow(t *testing.T) {
	w := newWorld(t, "ask")
	w.cfg.Allow = []string{"read", "edit"}
	if e, err := w.run(); err != nil || e.Text != "edited" {
		t.Errorf("%+v, %v", e, err)
	}
	for _, response := range []string{"Reject", ""} {
		w = newWorld(t, "ask")
		w.frontend = people(response)
		if e, err := w.run(); err != nil || e.Text != "refused" {
			t.Errorf("%q: %+v, %v", response, e, err)
		}
	}
}

// A harness that hangs ends by its deadline, with its children.
func TestDeadline(t *testing.T) {
	w := newWorld(t, "hang")
	w.meta.Limits.Timeout = 2 * time.Second
	w.cfg.Sandbox.Method = sandbox.Unconfined // so that the log has the process id of this machine
	w.cfg.Sandbox.Writable = nil
	_, err := w.run()
	if e := call.AsError(err); err == nil || !strings.Contains(e.Error(), "took longer than its limit of 2s") {
		t.Fatal(err)
	}
	text, err := os.ReadFile(w.log)
	if err != nil {
		t.Fatal(err)
	}
	_, pid, ok := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if !ok {
		t.Fatalf("no child: %q", text)
	}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if state, err := os.ReadFile("/proc/" + pid + "/cmdline"); err != nil || !strings.Contains(string(state), "sleep") {
			return
		}
		if time.Now().After(until) {
			t.Fatal("the child still runs")
		}
	}
}

// A harness writes and reads nothing outside of its clone.
func TestEscape(t *testing.T) {
	w := newWorld(t, "escape")
	hidden := filepath.Join(filepath.Dir(w.log), "hidden")
	if err := errors.Join(os.Mkdir(hidden, 0o777), os.WriteFile(filepath.Join(hidden, "key"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	e, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	want := "link: true\nby protocol: false\nby dots: false\nby link: false\ngit: false\nread: false\ndirectly: false\n"
	if diff := cmp.Diff(want, e.Text); diff != "" {
		t.Error(diff)
	}
	if left, err := os.ReadDir(hidden); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
}

// Programs that speak another protocol, refuse or read too much have no answer.
func TestFailures(t *testing.T) {
	for does, want := range map[string]string{
		"another version": "speaks version 2 of the protocol: want 1",
		"refuse":          "the program stopped: refusal",
		"large file":      "large is larger than 8388608 bytes",
	} {
		_, err := newWorld(t, does).run()
		if e := call.AsError(err); err == nil || !strings.Contains(e.Error(), want) {
			t.Errorf("%s: %v, want %q", does, err, want)
		}
	}
}

// What the harness reports is paid.
func TestUsage(t *testing.T) {
	w := newWorld(t, "cost")
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	info, err := w.db.Find(t.Context(), "r")
	if err != nil || info.Usage.USD != 0.25 || info.Usage.InputTokens != 12 || info.Usage.OutputTokens != 5 {
		t.Errorf("%+v, %v", info.Usage, err)
	}
}
