package load

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// The copy of a file with main set aside differs in the name of main only, so
// that every position in it holds.
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
	if want := strings.Replace(source, "\nmain()", "\n_   ()", 1); !bytes.Equal(got, []byte(want)) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
