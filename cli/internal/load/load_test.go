package load

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
)

func TestCompileErrorIsOneLine(t *testing.T) {
	for _, c := range []struct{ stderr, want string }{
		{"# example.com/m/p\n./p.go:3:24: undefined: nobody\n", "./p does not compile: p/p.go:3:24: undefined: nobody"},
		{"# example.com/m/p\n./p.go:3:24: undefined: nobody\n./p.go:4:1: missing return\n../q/q.go:1:1: expected 'package'\n",
			"./p does not compile: p/p.go:3:24: undefined: nobody (and 2 more)"},
		{"p.go:3:2: no required module provides package x.org/y; to add it:\n\tgo get x.org/y\n",
			"./p does not compile: p/p.go:3:2: no required module provides package x.org/y; to add it: go get x.org/y"},
		{"go: downloading x.org/y v1.0.0\ngo: updates to go.mod needed; to update it:\n\tgo mod tidy\n",
			"./p does not compile: updates to go.mod needed; to update it: go mod tidy"},
		{"", "./p does not compile: exit status 1"},
	} {
		b := &builder{arg: "./p", dir: "./p"}
		if got := b.compileError(c.stderr, errors.New("exit status 1")).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// The copy of a file with main set aside differs in the name of main only, and says which file it is, so that
// every position in it is right.
func TestMainIsSetAside(t *testing.T) {
	dir := t.TempDir()
	source := "// main is\r\npackage main\r\n\r\nimport \"fmt\"\r\n\r\ntype t int\r\n\r\nfunc (t) main() {}\r\n\r\nfunc\r\nmain() { fmt.Println(\"main\") }\r\n"
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &builder{tmp: dir, pkg: listed{Dir: dir, Name: "main", GoFiles: []string{"main.go"}}}
	replace := map[string]string{}
	if err := b.setMainAside(replace); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(replace[file])
	if err != nil {
		t.Fatal(err)
	}
	if want := "//line " + file + ":1:1\n" + strings.Replace(source, "\nmain()", "\n_   ()", 1); !bytes.Equal(got, []byte(want)) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// A program is linked once for its inputs: the second build returns the same file, and a
// changed file of the package, or of a package that it imports, another.
func TestUnchangedProgramIsKept(t *testing.T) {
	need.Time(t)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		write(name, string(text))
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	write("go.mod", strings.Replace(string(mod), "module "+modulePath, "module example.com/m", 1)+
		fmt.Sprintf("\nrequire %s v0.0.0\nreplace %[1]s => %s\n", modulePath, root))
	write("name/name.go", "package name\n\nconst Name = \"one\"\n")
	write("p/p.go", "package p\n\nimport (\n\t\"example.com/m/name\"\n\t\""+modulePath+"\"\n)\n\nvar Pipeline = stone.Seq(name.Name)\n")
	build := func() Program {
		t.Helper()
		program, err := Build(t.Context(), "./p", Linked{})
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	first := build()
	if again := build(); again != first {
		t.Errorf("an unchanged package was built into %s, and then into %s", first, again)
	}
	write("name/name.go", "package name\n\nconst Name = \"two\"\n")
	second := build()
	if second == first {
		t.Error("a changed import did not change the program")
	}
	write("p/added.go", "package p\n\nimport \""+modulePath+"\"\n\nfunc init() { Pipeline = stone.Seq(\"three\") }\n")
	if third := build(); third == second {
		t.Error("an added file did not change the program")
	}
}
