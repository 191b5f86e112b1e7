//go:build unix

package cli_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/llm/script"
)

// The command stone and a program for each pipeline are commands of the scripts. They
// do not link the screen, whose libraries take most of the time in which a process
// starts under the race detector: package x/screen has its tests. The programs that
// scripts build link it.
func TestMain(m *testing.M) {
	if os.Getenv("XDG_CONFIG_HOME") == "" { // no test writes into the user's
		if err := os.Setenv("XDG_CONFIG_HOME", filepath.Join(os.TempDir(), "stone-test-config")); err != nil {
			panic(err)
		}
	}
	commands := map[string]func(){"stone": func() { cli.Main(cli.FromArgument, parts...) }}
	for name, pipeline := range programs {
		commands[name] = func() { cli.Main(pipeline, parts...) }
	}
	testscript.Main(m, commands)
}

func TestScripts(t *testing.T) { testscript.Run(t, scripts(t, "testdata/script")) }

// scripts returns the scripts of a directory.
func scripts(t *testing.T, dir string) testscript.Params {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			// A module of the script needs nothing from a network: Stone is
			// replaced by this one, and its dependencies are in the cache.
			for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOSUMDB"} {
				value, err := exec.Command("go", "env", name).Output()
				if err != nil {
					return err
				}
				env.Setenv(name, strings.TrimSpace(string(value)))
			}
			// Under the race detector a process sleeps for a second before it exits.
			env.Setenv("GORACE", "atexit_sleep_ms=10")
			env.Setenv("GOPROXY", "off")
			config := env.WorkDir + ".config" // the user's, beside what a script lists
			env.Setenv("XDG_CONFIG_HOME", config)
			env.Defer(func() { os.RemoveAll(config) })
			env.Setenv("GOFLAGS", "-trimpath -ldflags=-w") // shares the build cache with other copies of the module
			stone, err := exec.LookPath("stone")
			if err != nil {
				return err
			}
			env.Setenv("COMMANDS", filepath.Dir(stone))
			env.Setenv("STONE", root)
			embedder := httptest.NewServer(new(script.Embedder))
			env.Defer(embedder.Close)
			env.Setenv("EMBEDDER", embedder.URL)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Geteuid() == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"interrupt": interrupt,
			"empty":     empty,
			"module":    module,
			"listener":  listener,
			"reached":   reached,
		},
	}
}

// exits CODE COMMAND ARG… runs a command that must exit with the code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	if got := code(err); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func code(err error) int {
	var failed *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed):
		return failed.ExitCode()
	}
	return -1
}

// interrupt HOW COMMAND ARG… runs a command that must exit with the code 1 once
// it is interrupted. It does so when the file "started" is there, and a second
// time when there is "canceled". HOW is a list of: "once", "twice", and "group"
// for what a terminal does, which interrupts all processes at once; "term" for
// SIGTERM, after which the file "go" is made; "again" for a second SIGTERM in place
// of that; and "kill" for SIGKILL, of which all processes die. The outputs go to the files "out" and "err".
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	how := strings.Split(args[0], ",")
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environ(ts)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := os.Create(ts.MkAbs("out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs("err"))
	ts.Check(err)
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = out, errs
	ts.Check(cmd.Start())
	target := cmd.Process.Pid
	if slices.Contains(how, "group") {
		target = -target
	}
	sig, want := syscall.SIGINT, 1
	switch {
	case slices.Contains(how, "term"):
		sig = syscall.SIGTERM
	case slices.Contains(how, "kill"):
		sig, target, want = syscall.SIGKILL, -cmd.Process.Pid, -1
	}
	await(ts, "started")
	ts.Check(syscall.Kill(target, sig))
	if sig == syscall.SIGTERM {
		for !strings.Contains(ts.ReadFile("err"), "ending: ") {
			time.Sleep(10 * time.Millisecond)
		}
		if slices.Contains(how, "again") {
			ts.Check(syscall.Kill(target, sig)) // the same one, told twice
			time.Sleep(1100 * time.Millisecond) // until one is another one
			ts.Check(syscall.Kill(target, sig))
		} else {
			ts.Check(os.WriteFile(ts.MkAbs("go"), nil, 0o666))
		}
	}
	if slices.Contains(how, "twice") {
		await(ts, "canceled")
		ts.Check(syscall.Kill(target, syscall.SIGINT))
	}
	kill := time.AfterFunc(20*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer kill.Stop()
	if got := code(cmd.Wait()); got != want {
		ts.Fatalf("exit code %d, want %d\n%s", got, want, ts.ReadFile("err"))
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOCACHE", "GOMODCACHE", "GOSUMDB", "GOPROXY", "GOFLAGS", "GORACE", "XDG_CONFIG_HOME"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

func await(ts *testscript.TestScript, file string) {
	for range 6000 {
		if isFile(ts.MkAbs(file)) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("no file %q within a minute\n%s", file, ts.ReadFile("err"))
}

// empty DIR says that a directory holds nothing.
func empty(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		ts.Fatalf("%v", err)
	}
	if len(entries) > 0 {
		ts.Fatalf("%s holds %v", args[0], entries)
	}
}

// module DIR makes a module that requires Stone as its author would have it after
// `go mod tidy`: go.sum knows what the pipeline imports, not what cli does.
func module(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	root := ts.Getenv("STONE")
	mod := "module example.com/" + filepath.Base(dir) + "\n\ngo 1.26.0\n\nrequire github.com/stonelayer/stone v0.0.0\n\n"
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", ".", "./cli", "./dag", "./stonetest")
	list.Dir = root
	out, err := list.Output()
	ts.Check(err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	ts.Check(err)
	var known strings.Builder
	for _, line := range slices.Compact(lines) {
		if line == "" {
			continue
		}
		mod += "require " + line + " // indirect\n"
		for sum := range strings.Lines(string(sums)) {
			if strings.HasPrefix(sum, line+" ") || strings.HasPrefix(sum, line+"/") {
				known.WriteString(sum)
			}
		}
	}
	mod += "\nreplace github.com/stonelayer/stone => " + root + "\n"
	ts.Check(os.MkdirAll(dir, 0o777))
	ts.Check(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o666))
	ts.Check(os.WriteFile(filepath.Join(dir, "go.sum"), []byte(known.String()), 0o666))
}
