package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

const askThenGreet = `{:id "hello" :nodes [{:op :ask :question "Go on?" :as :ok}
  {:op :call :intent :text/greet :input {:name {:slot/id [:ok :response]}} :as :greeting} {:op :emit :input {:final :greeting}}]}`

// inDir runs the command in a directory.
func inDir(t *testing.T, dir string, want int, args ...string) (out, errs string) {
	t.Helper()
	t.Chdir(dir)
	var o, e bytes.Buffer
	code := cli.Run(t.Context(), cli.Config{Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: args, Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e})
	if code != want {
		t.Errorf("stone %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, &o, &e)
	}
	return o.String(), e.String()
}

func greets(t *testing.T, greeting string) string {
	dir := t.TempDir()
	files := map[string]string{
		".stone/stone.edn": `{:capabilities {:greeter {:cap/kind :solver, :solver :cel, :cap/intents #{:text/greet}, :expression "'` + greeting + `'"}}}`,
		"plan.edn":         askThenGreet,
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each of two runs is answered by the capabilities of its own project.
func TestResumeAllConfigurations(t *testing.T) {
	t.Setenv("STONE_TRUST", "1")
	db := filepath.Join(t.TempDir(), "runs.db")
	a, b := greets(t, "made by project A"), greets(t, "made by project B")
	inDir(t, a, 3, "run", "-q", "plan.edn", "--id", "of-a", "--db", db)
	inDir(t, b, 3, "run", "-q", "plan.edn", "--id", "of-b", "--db", db)
	for _, run := range []string{"of-a", "of-b"} {
		inDir(t, a, 0, "answer", run, "1", "yes", "--db", db)
	}
	out, errs := inDir(t, t.TempDir(), 0, "resume", "all", "-q", "--db", db)
	if !strings.Contains(out, "made by project A") || !strings.Contains(out, "made by project B") || strings.Count(out, "project A") != 1 {
		t.Errorf("run of-b was answered by the capability of project A:\n%s%s", out, errs)
	}
}

// The same with --config: the second run names another file.
func TestResumeAllConfigFlag(t *testing.T) {
	t.Setenv("STONE_TRUST", "1")
	db := filepath.Join(t.TempDir(), "runs.db")
	dir := greets(t, "made by A")
	other := filepath.Join(greets(t, "made by B"), ".stone", "stone.edn")
	inDir(t, dir, 3, "run", "-q", "plan.edn", "--id", "of-a", "--db", db)
	inDir(t, dir, 3, "run", "-q", "plan.edn", "--id", "of-b", "--db", db, "--config", other)
	for _, run := range []string{"of-a", "of-b"} {
		inDir(t, dir, 0, "answer", run, "1", "yes", "--db", db)
	}
	out, errs := inDir(t, dir, 0, "resume", "all", "-q", "--db", db)
	if !strings.Contains(out, "made by B") {
		t.Errorf("run of-b was started with --config of B:\n%s%s", out, errs)
	}
}

// What --grant gave the first run is no grant of the second, whose plan was changed meanwhile and wants to run a command.
func TestResumeAllGrants(t *testing.T) {
	t.Setenv("STONE_TRUST", "1")
	db, dir := filepath.Join(t.TempDir(), "runs.db"), t.TempDir()
	mark := filepath.Join(dir, "written")
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write(".stone/stone.edn", `{:capabilities {:writer {:cap/kind :command, :command ["/bin/sh" "-c" "touch `+mark+`; echo '{}'"], :cap/intents #{:file/empty}, :cap/effects-allowed #{:process}}}}`)
	const harmless = `{:id "p" :nodes [{:op :ask :question "Go on?" :as :ok} {:op :emit :input {:final :ok}}]}`
	write("one.edn", harmless)
	write("two.edn", harmless)
	inDir(t, dir, 3, "run", "-q", "one.edn", "--id", "one", "--db", db, "--grant", "process")
	inDir(t, dir, 3, "run", "-q", "two.edn", "--id", "two", "--db", db)
	for _, run := range []string{"one", "two"} {
		inDir(t, dir, 0, "answer", run, "1", "yes", "--db", db)
	}
	write("two.edn", `{:id "p" :nodes [{:op :ask :question "Go on?" :as :ok} {:op :call :intent :file/empty :input {} :effects {:allowed #{:process}} :as :emptied} {:op :emit :input {:final :ok}}]}`)
	_, errs := inDir(t, dir, 1, "resume", "two", "-q", "--force", "--db", db)
	if !strings.Contains(errs, "effect-not-granted") {
		t.Fatalf("resumed alone: %s", errs)
	}
	_, errs = inDir(t, dir, 1, "resume", "all", "-q", "--force", "--db", db)
	if _, err := os.Stat(mark); err == nil {
		t.Errorf("the command ran, though nobody granted run two the effect process\n%s", errs)
	}
}

// A plan that cannot be read any more fails alone.
func TestResumeAllBroken(t *testing.T) {
	t.Setenv("STONE_TRUST", "1")
	db := filepath.Join(t.TempDir(), "runs.db")
	a, b := greets(t, "made by project A"), greets(t, "made by project B")
	inDir(t, a, 3, "run", "-q", "plan.edn", "--id", "of-a", "--db", db)
	inDir(t, b, 3, "run", "-q", "plan.edn", "--id", "of-b", "--db", db)
	for _, run := range []string{"of-a", "of-b"} {
		inDir(t, a, 0, "answer", run, "1", "yes", "--db", db)
	}
	if err := os.WriteFile(filepath.Join(a, "plan.edn"), []byte("{:nodes [\n)}"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errs := inDir(t, t.TempDir(), 1, "resume", "all", "-q", "--db", db)
	if !strings.Contains(out, `"final"`) {
		t.Errorf("run of-b did not go on, because the plan of of-a is broken:\n%s%s", out, errs)
	}
}

// A drained run that cannot continue, since its plan has changed, is still drained afterwards. No signal stopped the command.
func TestResumeAllDrained(t *testing.T) {
	t.Setenv("STONE_TRUST", "1")
	db := filepath.Join(t.TempDir(), "runs.db")
	a, b := greets(t, "made by project A"), greets(t, "made by project B")
	inDir(t, a, 3, "run", "-q", "plan.edn", "--id", "of-a", "--db", db)
	inDir(t, b, 3, "run", "-q", "plan.edn", "--id", "of-b", "--db", db)
	for _, run := range []string{"of-a", "of-b"} {
		inDir(t, a, 0, "answer", run, "1", "yes", "--db", db)
	}
	j, err := sqlite.Open(db, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := j.Acquire(t.Context(), "of-a")
	if err != nil {
		t.Fatal(err)
	}
	o := info.Outcome
	o.State, o.Ended = journal.Drained, time.Now()
	if err := errors.Join(j.End(t.Context(), "of-a", o), j.Release("of-a"), j.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a, "plan.edn"), []byte(`{:id "other" :nodes [{:op :emit :input {:final 1}}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errs := inDir(t, t.TempDir(), 1, "resume", "all", "-q", "--db", db)
	if !strings.Contains(out, `"final"`) {
		t.Errorf("run of-b did not go on, because the drained run of-a cannot:\n%s%s", out, errs)
	}
}

// A run that another process has continued since the list was read is left to it.
func TestResumeAllBesideAnother(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "runs.db")
	var answer = dag.NewType[stone.Answer]("answer")
	var done = dag.NewType[string]("done")
	var command func(want int, args ...string) string
	p := func(args []string) (stone.Ashlar, error) {
		return stone.Seq("beside", stone.Ask("ok", dag.Everything, answer, func(dag.DAG) string { return "Go on?" }),
			stone.Func0("work", done, func(context.Context) (string, error) {
				if args[0] == "first" {
					command(0, "resume", "second", "-q", "--db", db)
				}
				return "done by " + args[0], nil
			})), nil
	}
	command = func(want int, args ...string) string {
		var both bytes.Buffer
		if code := cli.Run(context.WithoutCancel(t.Context()), cli.Config{Pipeline: p, Name: "beside", Args: args, Stdin: strings.NewReader(""), Stdout: &both, Stderr: &both}); code != want {
			t.Errorf("%s: exit %d, want %d\n%s", strings.Join(args, " "), code, want, &both)
		}
		return both.String()
	}
	for _, id := range []string{"first", "second"} {
		command(3, "run", "-q", "--id", id, "--db", db, "--", id)
	}
	for _, id := range []string{"first", "second"} {
		command(0, "answer", id, "1", "yes", "--db", db)
	}
	if out := command(0, "resume", "all", "-q", "--db", db); !strings.Contains(out, "run second was continued by another process") {
		t.Error(out)
	}
}
