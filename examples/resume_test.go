//go:build unix

package examples

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/examples/agreement"
	"github.com/stonelayer/stone/examples/audit"
	"github.com/stonelayer/stone/examples/cascade"
	"github.com/stonelayer/stone/examples/codegate"
	"github.com/stonelayer/stone/examples/fix"
	"github.com/stonelayer/stone/examples/triage"
	"github.com/stonelayer/stone/internal/test/boxtest"
	"github.com/stonelayer/stone/internal/test/need"
)

var pipelines = map[string]any{
	"agreement": agreement.Pipeline, "audit": audit.Pipeline, "cascade": cascade.Pipeline, "codegate": codegate.Pipeline,
	"fix": fix.Pipeline, "triage": triage.Pipeline,
}

// Variables of the processes that are examples.
const (
	asExample = "STONE_TEST_EXAMPLE" // name of the example
	atStep    = "STONE_TEST_STEP"    // after how many steps it is interrupted; 0 is never
	bySignal  = "STONE_TEST_SIGNAL"
)

func TestMain(m *testing.M) {
	name := os.Getenv(asExample)
	if name == "" {
		os.Exit(m.Run())
	}
	at, _ := strconv.Atoi(os.Getenv(atStep)) // unset is 0
	by, _ := strconv.Atoi(os.Getenv(bySignal))
	os.Exit(cli.Run(context.Background(), cli.Config{Pipeline: pipelines[name], Name: name, Stderr: &interrupter{at: at, by: syscall.Signal(by)}}))
}

// An interrupter is the standard error of an example. It interrupts the process when
// progress has reported a number of steps.
type interrupter struct {
	mu   sync.Mutex
	done int
	at   int
	by   syscall.Signal
}

var stepDone = regexp.MustCompile(`(?m)^[0-9:]{8} done `)

func (w *interrupter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.done
	w.done += len(stepDone.FindAll(b, -1))
	n, err := os.Stderr.Write(b)
	if before < w.at && w.done >= w.at {
		if err := syscall.Kill(os.Getpid(), w.by); err != nil {
			return n, err
		}
		time.Sleep(200 * time.Millisecond) // so that the next step does not finish first
	}
	return n, err
}

// An example is a pipeline of this folder, with its arguments and a working directory.
type example struct {
	*testing.T
	name, dir string
	args      []string
}

// process runs the example's command and returns its output and whether its exit was the
// expected one.
func (e example) process(at int, by syscall.Signal, args ...string) (stdout, stderr string, ok bool) {
	e.Helper()
	cmd := exec.CommandContext(e.Context(), os.Args[0], args...)
	cmd.Dir = e.dir
	cmd.Env = append(os.Environ(), "HOME="+e.dir, "TMPDIR="+e.dir, "STONE_MODEL=", "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "ANTHROPIC_API_KEY=",
		asExample+"="+e.name, fmt.Sprint(atStep, "=", at), fmt.Sprint(bySignal, "=", int(by)))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // which depend on HOME
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			e.Fatal(err)
		}
		cmd.Env = append(cmd.Env, name+"="+strings.TrimSpace(string(value)))
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return out.String(), errs.String(), err == nil
}

// run starts a run. If it waits for an answer, another process resumes it with one.
func (e example) run(at int, by syscall.Signal) (stdout, stderr string, ok bool) {
	e.Helper()
	return e.answered(at, by, append([]string{"run", "--id=r", "--"}, e.args...)...)
}

func (e example) answered(at int, by syscall.Signal, args ...string) (stdout, stderr string, ok bool) {
	e.Helper()
	stdout, stderr, ok = e.process(at, by, args...)
	if !strings.Contains(stderr, "waiting:") {
		return stdout, stderr, ok
	}
	if _, problem, ok := e.process(0, 0, "answer", "r", "1", "yes"); !ok {
		e.Fatal(problem)
	}
	stdout, more, ok := e.process(at, by, "resume", "r")
	return stdout, stderr + more, ok
}

// TestResume interrupts each example early, in the middle and late, by a crash and by
// Ctrl-C, and resumes it in another process.
func TestResume(t *testing.T) {
	for name := range pipelines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if slices.Contains([]string{"audit", "codegate", "fix"}, name) { // their steps build programs
				need.Time(t)
			}
			e := prepare(t, name)
			want, progress, ok := e.run(0, 0)
			if !ok || want == "" {
				t.Fatalf("undisturbed it fails:\n%s", progress)
			}
			n := len(stepDone.FindAllString(progress, -1))
			if n < 3 {
				t.Fatalf("%d steps:\n%s", n, progress)
			}
			want = comparable(e, want)
			for _, by := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
				for _, at := range slices.Compact([]int{1, n / 2, n - 1}) {
					if testing.Short() && (at != n/2 || by == syscall.SIGINT) {
						continue
					}
					t.Run(fmt.Sprintf("%v after %d of %d", by, at, n), func(t *testing.T) {
						e := prepare(t, name)
						if _, progress, ok := e.run(at, by); ok && (by == syscall.SIGKILL || at < n/2) {
							t.Fatalf("it was not interrupted:\n%s", progress)
						}
						got, progress, ok := e.answered(0, 0, "resume", "r")
						if got = comparable(e, got); !ok || got != want {
							t.Errorf("resumed it ends with:\n%s\nwant:\n%s\n%s", got, want, progress)
						}
						if at > 1 && !strings.Contains(progress, "replayed") {
							t.Errorf("nothing is replayed:\n%s", progress)
						}
					})
				}
			}
		})
	}
}

// prepare writes the input files of an example.
func prepare(t *testing.T, name string) example {
	t.Helper()
	e := example{T: t, name: name, dir: t.TempDir()}
	switch name {
	case "agreement", "codegate":
		data, err := os.ReadFile(filepath.Join(name, "testdata", "five.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		e.write("five.jsonl", data)
		e.args = []string{"--data", "five.jsonl", "--small", "a,b", "--large", "c"}
		if name == "codegate" {
			need.Program(t, "/usr/bin/python3")
			boxtest.NeedAny(t)
			e.args = []string{"--data", "five.jsonl", "--small", "small", "--large", "large"}
		}
	case "audit":
		archive, err := txtar.ParseFile("audit/testdata/module.txtar")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			e.write(filepath.Join("module", f.Name), f.Data)
		}
		e.args = []string{"--dir", "module"}
	case "cascade":
		var data []byte
		for i := range 12 {
			// Every other sum of the small model is wrong.
			data = fmt.Appendf(data, `{"id": "q%d", "question": "%d and 3?", "responses": {`+
				`"mixtral-8x7b-instruct-v0.1": {"text": "%d + 3 = %d\n#### %d", "correct": %t}, `+
				`"gpt-4-1106-preview": {"text": "%d + 3 = %d\n#### %d", "correct": true}}}`+"\n",
				i, i, i, i+3+i%2, i+3+i%2, i%2 == 0, i, i+3, i+3)
		}
		e.write("responses.jsonl", data)
		e.args = []string{"--data", "responses.jsonl"}
	}
	return e
}

func (e example) write(name string, data []byte) {
	e.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		e.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		e.Fatal(err)
	}
}

// Durations and folders differ from run to run.
var varying = regexp.MustCompile(`[0-9.]+m?s\b`)

func comparable(e example, s string) string {
	return varying.ReplaceAllString(strings.ReplaceAll(s, e.dir, "DIR"), "T")
}
