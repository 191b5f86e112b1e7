// Package fix repairs a Go package whose tests fail: an agent reads the output of
// the tests and edits files below one folder, until go test passes.
// A person is asked before the last attempt.
//
//	go run ./cmd/stone run ./examples/fix                       # a sample, and a scripted model
//	OPENAI_API_KEY=… go run ./cmd/stone run ./examples/fix -- --dir ./broken
package fix

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/tool/fs"
)

// Workspace is the folder of the package to repair.
type Workspace struct {
	Dir string `json:"dir"`
}

// Verdict is the result of go test.
type Verdict struct {
	Passed bool   `json:"passed"`
	Output string `json:"output"`
}

// Consent says whether another attempt is allowed.
type Consent struct {
	Given bool `json:"given"`
}

var (
	workspace = dag.NewType[Workspace]("workspace")
	verdict   = dag.NewType[Verdict]("verdict")
	reply     = dag.NewType[stone.Answer]("reply")
	consent   = dag.NewType[Consent]("consent")
	patch     = dag.NewType[agent.Text]("patch")
	summary   = dag.NewType[agent.Text]("summary")
)

// tests are the files that say whether a repair is one: the agent reads them and cannot
// change them, and no more can the code that it writes.
var tests = []string{"*_test.go", "go.mod", "go.sum", "go.work", "testdata", "vendor"}

// Pipeline reads its flags and returns the repair of one package.
func Pipeline(args []string) (stone.Ashlar, error) {
	flags := flag.NewFlagSet("fix", flag.ContinueOnError)
	var usage strings.Builder
	flags.SetOutput(&usage)
	dir := flags.String("dir", "", "folder of the Go package; a copy of the sample if empty")
	attempts := flags.Int("attempts", 3, "how often the agent may try; a person is asked before the last time")
	name := flags.String("model", "", "name of the model, if a key is set; "+openaiModel+" or "+anthropicModel+" if empty")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || *attempts < 1 {
		flags.Usage()
		return stone.Ashlar{}, fmt.Errorf("%s", strings.TrimSpace(usage.String()))
	}
	model, err := chooseModel(*name, *dir == "")
	if err != nil {
		return stone.Ashlar{}, err
	}
	return pipeline(model, *dir, *attempts), nil
}

// pipeline repairs the package in dir, or a copy of the sample if dir is empty.
func pipeline(model llm.Model, dir string, attempts int) stone.Ashlar {
	prepare := func(context.Context) (Workspace, error) { return openWorkspace(dir) }
	files := fs.Root{Dir: dir, ReadOnly: tests}
	if dir == "" {
		prepare = func(ctx context.Context) (Workspace, error) { return copySample(sampleDir(ctx)) }
		files.DirFrom = func(ctx context.Context) (string, error) { return sampleDir(ctx), nil }
	}
	return stone.Seq("fix",
		stone.Func0("prepare", workspace, prepare),
		stone.Func("first-test", workspace, verdict, goTest),
		stone.Match("broken", stone.On(verdict, func(v Verdict) bool { return !v.Passed }),
			stone.Case(false, stone.Func("nothing-to-do", verdict, summary, nothingToDo)),
			stone.Case(true, repair(model, files, attempts)),
		),
	)
}

// repair is the loop: attempt, test, attempt again.
func repair(model llm.Model, files fs.Root, attempts int) stone.Ashlar {
	return stone.Seq("repair",
		stone.Loop("until-green",
			stone.Seq("attempt",
				permission(attempts),
				agent.New("patch", patch, model, agent.Config{
					System: agent.Say("You repair Go packages. Read the files that matter, make the smallest edit " +
						"that lets the tests pass. The tests cannot be edited. Then say in one sentence what was wrong."),
					User:     dag.Derive2(consent, verdict, describe),
					Use:      []agent.Middleware{fs.List(files), fs.Read(files), fs.Edit(files)},
					MaxTurns: 12,
				}),
				stone.Func("test", workspace, verdict, goTest),
			),
			stone.Until(verdict, func(v Verdict) bool { return v.Passed }),
			attempts,
		),
		agent.New("summarise", summary, model, agent.Config{
			System: agent.Say("You summarise a repair for the log: what was wrong and what was changed, in two sentences."),
			User:   dag.Derive3(workspace, dag.All(patch), dag.All(verdict), recount),
		}),
	)
}

// permission asks a person before the last attempt, if it is not the first too.
func permission(attempts int) stone.Ashlar {
	return stone.Match("permission",
		stone.On(dag.All(verdict), func(tests []Verdict) bool { // one before the first attempt, one after each
			return attempts > 1 && len(tests) == attempts
		}),
		stone.Case(false, stone.Func0("not-yet-needed", consent, func(context.Context) (Consent, error) { return Consent{true}, nil })),
		stone.Case(true, stone.Seq("last-attempt",
			stone.Ask("go-on", verdict, reply, func(v Verdict) string {
				return fmt.Sprintf("%s\n\nThe tests still fail. Try one last time?", tail(v.Output, 12))
			}, stone.Choices("yes", "no")),
			stone.Func("heed", reply, consent, func(_ context.Context, a stone.Answer) (Consent, error) {
				if a.Response != "yes" {
					return Consent{}, stone.Fail("declined", "the last attempt was not wanted; the package is as the attempt before left it")
				}
				return Consent{true}, nil
			}),
		)),
	)
}

func describe(_ Consent, v Verdict) string { return "go test says:\n\n" + v.Output }

func recount(w Workspace, patches []agent.Text, tests []Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The package in %s was repaired.\nAt first go test said:\n%s\n", w.Dir, tail(tests[0].Output, 20))
	for i, p := range patches {
		fmt.Fprintf(&b, "\nAttempt %d: %s\nThe tests passed afterwards: %t\n", i+1, p.Text, tests[i+1].Passed)
	}
	return b.String()
}

func nothingToDo(_ context.Context, v Verdict) (agent.Text, error) {
	return agent.Text{Text: "Nothing to do: the tests pass.\n" + v.Output}, nil
}

// testTime bounds one run of the tests.
const testTime = 2 * time.Minute

// unconfined is the variable that allows the tests to run without a sandbox, on a machine
// that has none.
const unconfined = "FIX_UNCONFINED"

// goTest compiles the tests and runs them in a sandbox, without a network and with no file
// to change but temporary ones: a model has written the code that they test, which could
// otherwise change the tests themselves.
func goTest(ctx context.Context, w Workspace) (Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	programs, err := os.MkdirTemp("", "stone-fix-tests-")
	if err != nil {
		return Verdict{}, err
	}
	defer os.RemoveAll(programs)
	list, err := goCommand(ctx, w.Dir, "list", "-f", "{{.Dir}}", "./...")
	if err != nil {
		return compiled(ctx, w, list, err)
	}
	v := Verdict{Passed: true}
	policy := sandbox.Policy{ReadOnly: []string{w.Dir, programs}}
	if os.Getenv(unconfined) == "1" {
		policy.Method = sandbox.Unconfined
	}
	for i, dir := range strings.Split(strings.TrimSpace(list), "\n") {
		if !filepath.IsAbs(dir) {
			continue // a remark of the go command
		}
		program := filepath.Join(programs, fmt.Sprintf("%d.test", i))
		if out, err := goCommand(ctx, dir, "test", "-c", "-o", program, "."); err != nil {
			return compiled(ctx, w, out, err)
		}
		if _, err := os.Stat(program); err != nil {
			continue // a package without tests
		}
		// Code that exits with 0 by itself has not passed.
		test := sandbox.Command(ctx, policy, program, "-test.paniconexit0")
		test.Dir = dir
		out, err := test.Output(64 << 10)
		if errors.Is(err, sandbox.ErrNone) {
			return Verdict{}, stone.Fail("no-sandbox", "%v; set %s=1 if the tests may do anything", err, unconfined)
		}
		if err != nil && (!errors.As(err, new(*sandbox.ExitError)) || ctx.Err() != nil) {
			return Verdict{}, fmt.Errorf("the tests in %s: %w", dir, err)
		}
		v.Passed = v.Passed && err == nil && slices.Contains(strings.Split(out, "\n"), "PASS")
		v.Output += out
	}
	v.Output = tail(v.Output, 60)
	return v, nil
}

// compiled is the verdict on a package that does not compile.
func compiled(ctx context.Context, w Workspace, out string, err error) (Verdict, error) {
	if !errors.As(err, new(*exec.ExitError)) || ctx.Err() != nil {
		return Verdict{}, fmt.Errorf("go in %s: %w", w.Dir, err)
	}
	return Verdict{Output: tail(out, 60)}, nil
}

// goCommand runs no code of the package: cgo and other toolchains are disabled.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local")
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// tail returns the last lines of s.
func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

//go:embed sample
var sample embed.FS

// sampleDir is the folder of the sample's copy, which belongs to the run, not to this
// process, so that a resumed run finds it again. It is kept, so that the result can be
// inspected.
func sampleDir(ctx context.Context) string {
	return filepath.Join(os.TempDir(), "stone-fix-"+stone.In(ctx).RunID())
}

func openWorkspace(dir string) (Workspace, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return Workspace{}, stone.Fail("no-package", "%s is not a folder: give the folder of a Go package with --dir", dir)
	}
	return Workspace{dir}, nil
}

// copySample writes the sample, whose files end in .txt to keep them out of this
// module, into dir.
func copySample(dir string) (Workspace, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return Workspace{}, err
	}
	entries, err := sample.ReadDir("sample")
	if err != nil {
		return Workspace{}, err
	}
	for _, e := range entries {
		data, err := sample.ReadFile("sample/" + e.Name())
		if err != nil {
			return Workspace{}, err
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(e.Name(), ".txt")), data, 0o666); err != nil {
			return Workspace{}, err
		}
	}
	return Workspace{dir}, nil
}
