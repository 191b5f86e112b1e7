// Package fix repairs a Go package whose tests fail. An agent reads the output of the tests and edits files below one folder
// until go test passes. A person is asked before the last attempt.
//
//	go run ./cmd/stone run ./examples/fix                       # a sample, and a scripted model
//	OPENAI_API_KEY=… go run ./cmd/stone run ./examples/fix -- --dir ./broken
package fix

import (
	"cmp"
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
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/tool/fs"
)

type (
	// Workspace is the folder of the package to repair.
	Workspace struct {
		Dir string `json:"dir"`
	}
	// Verdict is the result of go test.
	Verdict struct {
		Passed bool   `json:"passed"`
		Output string `json:"output"`
	}
	// Consent states whether another attempt is permitted.
	Consent struct {
		Given bool `json:"given"`
	}
)

var (
	workspace = dag.NewType[Workspace]("workspace")
	verdict   = dag.NewType[Verdict]("verdict")
	reply     = dag.NewType[stone.Answer]("reply")
	consent   = dag.NewType[Consent]("consent")
	patch     = dag.NewType[agent.Text]("patch")
	summary   = dag.NewType[agent.Text]("summary")
)

// Pipeline parses its flags and returns the repair of one package.
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

// pipeline returns a pipeline that repairs the package in dir, or a copy of the sample if dir is empty.
func pipeline(model llm.Model, dir string, attempts int) stone.Ashlar {
	prepare := func(context.Context) (Workspace, error) {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return Workspace{}, stone.Fail("no-package", "%s is not a folder: give the folder of a Go package with --dir", dir)
		}
		return Workspace{dir}, nil
	}
	files := fs.Root{Dir: dir, ReadOnly: []string{"*_test.go", "go.mod", "go.sum", "go.work", "testdata", "vendor"}} // these files decide whether a repair is correct
	if dir == "" {
		prepare = func(ctx context.Context) (Workspace, error) { return copySample(sampleDir(ctx)) }
		files.DirFrom = func(ctx context.Context) (string, error) { return sampleDir(ctx), nil }
	}
	return stone.Seq("fix",
		stone.Func0("prepare", workspace, prepare),
		stone.Func("first-test", workspace, verdict, goTest),
		stone.Match("broken", stone.On(verdict, func(v Verdict) bool { return !v.Passed }),
			stone.Case(false, stone.Func("nothing-to-do", verdict, summary, func(_ context.Context, v Verdict) (agent.Text, error) {
				return agent.Text{Text: "Nothing to do: the tests pass.\n" + v.Output}, nil
			})),
			stone.Case(true, repair(model, files, attempts)),
		),
	)
}

// repair returns the loop: attempt, test, attempt again.
func repair(model llm.Model, files fs.Root, attempts int) stone.Ashlar {
	return stone.Seq("repair",
		stone.Loop("until-green",
			stone.Seq("attempt",
				permission(attempts),
				agent.New("patch", patch, model, agent.Config{
					System:   agent.Say("You repair Go packages. Read the files that matter, make the smallest edit that lets the tests pass. The tests cannot be edited. Then say in one sentence what was wrong."),
					User:     dag.Derive2(consent, verdict, func(_ Consent, v Verdict) string { return "go test says:\n\n" + v.Output }),
					Use:      []agent.Middleware{fs.List(files), fs.Read(files), fs.Edit(files)},
					MaxTurns: 12,
				}),
				stone.Func("test", workspace, verdict, goTest),
			),
			stone.Until(verdict, func(v Verdict) bool { return v.Passed }), attempts),
		agent.New("summarise", summary, model, agent.Config{
			System: agent.Say("You summarise a repair for the log: what was wrong and what was changed, in two sentences."),
			User:   dag.Derive3(workspace, dag.All(patch), dag.All(verdict), recount),
		}),
	)
}

// permission asks a person before the last attempt, unless the last attempt is also the first.
func permission(attempts int) stone.Ashlar {
	return stone.Match("permission",
		stone.On(dag.All(verdict), func(tests []Verdict) bool { return attempts > 1 && len(tests) == attempts }), // one verdict before the first attempt, and one after each attempt
		stone.Case(false, stone.Func0("not-yet-needed", consent, func(context.Context) (Consent, error) { return Consent{true}, nil })),
		stone.Case(true, stone.Seq("last-attempt",
			stone.Ask("go-on", verdict, reply, func(v Verdict) string { return tail(v.Output, 12) + "\n\nThe tests still fail. Try one last time?" }, stone.Choices("yes", "no")),
			stone.Func("heed", reply, consent, func(_ context.Context, a stone.Answer) (Consent, error) {
				if a.Response == "yes" {
					return Consent{true}, nil
				}
				return Consent{}, stone.Fail("declined", "the last attempt was not wanted; the package is as the attempt before left it")
			}),
		)),
	)
}

func recount(w Workspace, patches []agent.Text, tests []Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The package in %s was repaired.\nAt first go test said:\n%s\n", w.Dir, tail(tests[0].Output, 20))
	for i, p := range patches {
		fmt.Fprintf(&b, "\nAttempt %d: %s\nThe tests passed afterwards: %t\n", i+1, p.Text, tests[i+1].Passed)
	}
	return b.String()
}

// unconfined is the environment variable that permits running the tests without a sandbox, on machines that do not support one.
const unconfined = "FIX_UNCONFINED"

// goTest compiles the tests and runs them in a sandbox, where they cannot use the network and can change only temporary files:
// the tested code was written by a model, and could otherwise change the tests themselves.
func goTest(ctx context.Context, w Workspace) (Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	programs, err := os.MkdirTemp("", "stone-fix-tests-")
	if err != nil {
		return Verdict{}, err
	}
	defer os.RemoveAll(programs)
	program := filepath.Join(programs, "tests")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, ".") // compiling runs no code of the package: cgo and other toolchains are disabled
	build.Dir, build.Env, build.WaitDelay = w.Dir, append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local"), 5*time.Second
	if out, err := build.CombinedOutput(); ctx.Err() == nil && errors.As(err, new(*exec.ExitError)) {
		return Verdict{Output: tail(string(out), 60)}, nil // the package does not compile
	} else if err != nil {
		return Verdict{}, fmt.Errorf("go in %s: %w", w.Dir, err)
	} else if _, err := os.Stat(program); err != nil { // the package has no tests
		return Verdict{Passed: true}, nil
	}
	policy := sandbox.Policy{ReadOnly: []string{w.Dir, programs}}
	if os.Getenv(unconfined) == "1" {
		policy.Method = sandbox.Unconfined
	}
	test := sandbox.Command(ctx, policy, program, "-test.paniconexit0") // code that itself exits with 0 has not passed
	test.Dir = w.Dir
	out, err := test.Output(64 << 10)
	if errors.Is(err, sandbox.ErrNone) {
		return Verdict{}, stone.Fail("no-sandbox", "%v; set %s=1 if the tests may do anything", err, unconfined)
	}
	if err != nil && (!errors.As(err, new(*sandbox.ExitError)) || ctx.Err() != nil) {
		return Verdict{}, fmt.Errorf("the tests in %s: %w", w.Dir, err)
	}
	return Verdict{err == nil && slices.Contains(strings.Split(out, "\n"), "PASS"), tail(out, 60)}, nil
}

// tail returns the last lines of s.
func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

//go:embed sample
var sample embed.FS

// sampleDir returns the folder for a copy of the sample. It is derived from the run, so that a resumed run finds the copy again.
func sampleDir(ctx context.Context) string {
	return filepath.Join(os.TempDir(), "stone-fix-"+stone.In(ctx).RunID())
}

// copySample copies the sample to dir. The names of its files end in .txt to keep them out of this module.
func copySample(dir string) (Workspace, error) {
	entries, err := sample.ReadDir("sample")
	for _, e := range entries {
		data, read := sample.ReadFile("sample/" + e.Name())
		err = errors.Join(err, read, os.MkdirAll(dir, 0o777), os.WriteFile(filepath.Join(dir, strings.TrimSuffix(e.Name(), ".txt")), data, 0o666))
	}
	return Workspace{dir}, err
}

// Models that are used without --model.
const (
	openaiModel    = "gpt-5-mini"
	anthropicModel = "claude-sonnet-4-5"
)

// chooseModel returns a model of the provider for which the environment contains a key or an address. If there is none, it
// returns the scripted model.
func chooseModel(name string, sample bool) (llm.Model, error) {
	switch {
	case os.Getenv("OPENAI_API_KEY") != "" || os.Getenv("OPENAI_BASE_URL") != "":
		return openai.New(openai.Config{Model: cmp.Or(name, openaiModel)}), nil
	case os.Getenv("ANTHROPIC_API_KEY") != "":
		return anthropic.New(anthropic.Config{Model: cmp.Or(name, anthropicModel)}), nil
	case sample:
		return script.Func(act), nil
	}
	return nil, errors.New("no model: set OPENAI_API_KEY, OPENAI_BASE_URL or ANTHROPIC_API_KEY; only the sample, without --dir, has a scripted one")
}

// act answers in place of a model. The answer depends only on the request.
func act(_ int, req *llm.Request) script.Answer {
	if !strings.Contains(req.System, "repair Go packages") {
		return script.Text("Mean divided by the number of values plus one. It now divides by their number, and returns 0 for none.")
	}
	edit := `{"path":"stats.go","old_string":"\tsum := 0.0\n","new_string":"\tif len(values) == 0 {\n\t\treturn 0\n\t}\n\tsum := 0.0\n"}`
	said := "The mean of no values was 0/0; now it is 0."
	if strings.Contains(req.Messages[0].Text(), "want 2") { // the answer is confident but wrong: it does not handle the empty list
		edit, said = `{"path":"stats.go","old_string":"len(values)+1","new_string":"len(values)"}`, "The divisor was one too large."
	}
	switch results := slices.DeleteFunc(slices.Clone(req.Messages), func(m llm.Message) bool { return m.Role != llm.RoleTool }); len(results) {
	case 0:
		return script.Call("read_file", `{"path":"stats.go"}`)
	case 1:
		return script.Call("edit_file", edit)
	}
	return script.Text(said)
}
