package skill

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/plan"
)

func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "skills")
	path, err := Install(dir, false)
	if err != nil || path != filepath.Join(dir, Name) {
		t.Fatalf("%q, %v", path, err)
	}
	same(t, path)

	var installed *InstalledError
	if _, err := Install(dir, false); !errors.As(err, &installed) || len(installed.Differs) > 0 || installed.Path != path {
		t.Errorf("installed twice: %v", err)
	}

	// Changed files are named and kept, unless forced.
	write(t, filepath.Join(path, "notes", "mine.md"), "mine")
	write(t, filepath.Join(path, "interview.md"), "changed")
	if err := os.Remove(filepath.Join(path, "checks.md")); err != nil {
		t.Fatal(err)
	}
	_, err = Install(dir, false)
	want := "already installed in " + path + ", but different from this version: checks.md, interview.md, notes/mine.md"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if text, err := os.ReadFile(filepath.Join(path, "interview.md")); err != nil || string(text) != "changed" {
		t.Errorf("a changed file was touched: %q, %v", text, err)
	}
	for range 2 {
		if _, err := Install(dir, true); err != nil {
			t.Error(err)
		}
		same(t, path)
	}
}

// Anything that is not an installation is kept, forced or not.
func TestInstallReplacesNothingElse(t *testing.T) {
	for name, file := range map[string]string{
		"a file":           Name,
		"another folder":   Name + "/main.go",
		"another skill":    Name + "/SKILL.md",
		"a file above":     "",
		"nothing in order": Name + "/SKILL.md/x",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "skills")
			path := filepath.Join(dir, file)
			write(t, path, "name: something-else\n")
			if _, err := Install(dir, true); err == nil || errors.As(err, new(*InstalledError)) {
				t.Errorf("installed over it: %v", err)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "name: something-else\n" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, Name), 0o777); err != nil {
		t.Fatal(err)
	}
	if path, err := Install(dir, true); err != nil {
		t.Errorf("over an empty folder: %v", err)
	} else {
		same(t, path)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// same checks that a folder equals the bundle and that no other file is beside it.
func same(t *testing.T, path string) {
	t.Helper()
	if found, err := inspect(path); err != nil || found == nil || len(found.Differs) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the installation: %v, %v", entries, err)
	}
}

// page returns a page of the bundle.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(bundle, Name+"/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	data  = regexp.MustCompile("(?ms)^```edn\n(.*?)^```$")
	link  = regexp.MustCompile(`\]\(([^)#]+\.md)\)`)
)

// code writes the Go code of a page, which is one file, and returns its path.
func code(t *testing.T, dir, name, as string) string {
	t.Helper()
	var blocks []string
	for _, block := range fence.FindAllStringSubmatch(page(t, name), -1) {
		blocks = append(blocks, block[1])
	}
	path := filepath.Join(dir, as)
	write(t, path, strings.Join(blocks, "\n"))
	return path
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// The code of the pages compiles, its pipeline is valid and its tests pass.
func TestCode(t *testing.T) {
	need.Time(t)
	t.Setenv("OPENAI_API_KEY", "unused")
	dir := t.TempDir()
	sheet := code(t, dir, "cheatsheet.md", "main.go")
	tests := code(t, dir, "checks.md", "main_test.go")
	patterns := code(t, dir, "patterns.md", "patterns.go")
	for _, path := range []string{sheet, tests, patterns} {
		if out, err := exec.Command("gofmt", "-d", path).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("gofmt: %v\n%s", err, out)
		}
	}
	run(t, "vet", patterns)
	run(t, "test", sheet, tests)
	run(t, "run", sheet, "validate")
}

// The plan of the cheat sheet can be read, and would run.
func TestPlan(t *testing.T) {
	echo := func(_ context.Context, in any) (any, error) { return in, nil }
	app := &call.Applicator{
		Registry: call.NewRegistry(
			call.Func(call.Metadata{ID: "sort/rules", Intents: []string{"ticket/sort"}}, echo),
			call.Func(call.Metadata{ID: "sort/model", Intents: []string{"ticket/sort"}}, echo),
			call.Func(call.Metadata{ID: "answer/model", Intents: []string{"ticket/answer"}}, echo),
		),
		Checks: map[string]call.Check{"known-area": func(context.Context, call.Subject) error { return nil }},
	}
	blocks := data.FindAllStringSubmatch(page(t, "cheatsheet.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("no plan on the page")
	}
	for _, block := range blocks {
		p, err := plan.Read([]byte(block[1]))
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range p.Check(app, plan.Options{}, stone.Config{}) {
			t.Error(finding)
		}
	}
}

func TestPages(t *testing.T) {
	head, _, ok := strings.Cut(strings.TrimPrefix(page(t, "SKILL.md"), "---\n"), "\n---\n")
	if !ok || !strings.HasPrefix(head, "name: "+Name+"\ndescription: ") || strings.Count(head, "\n") != 1 {
		t.Errorf("front matter: %q", head)
	}
	if len(head) > 1024 {
		t.Errorf("front matter of %d bytes: agents take 1,024", len(head))
	}
	pages, err := fs.Glob(bundle, Name+"/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var linked []string
	for _, path := range pages {
		for _, l := range link.FindAllStringSubmatch(page(t, filepath.Base(path)), -1) {
			linked = append(linked, l[1])
			if !slices.Contains(pages, Name+"/"+l[1]) {
				t.Errorf("%s links to %s, which does not exist", path, l[1])
			}
		}
	}
	for _, path := range pages {
		if name := filepath.Base(path); name != "SKILL.md" && !slices.Contains(linked, name) {
			t.Errorf("nothing links to %s", name)
		}
	}
}
