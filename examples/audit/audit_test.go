package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

// unpack writes the files in an archive, or in some of its folders, into a fresh folder.
func unpack(t *testing.T, folders ...string) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/module.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		folder, _, inside := strings.Cut(f.Name, "/")
		if inside && len(folders) > 0 && !strings.Contains(strings.Join(folders, " "), folder) {
			continue
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func audit(t *testing.T, dir string) (stone.Result, Report) {
	t.Helper()
	p, err := Pipeline([]string{"--dir", dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range stone.Validate(p, stone.Given{}) {
		t.Errorf("finding: %s", f)
	}
	res, err := stone.Run(context.Background(), p, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Of(res.Node)
	if err != nil {
		t.Fatal(err)
	}
	return res, r
}

func TestReportTellsTheTruth(t *testing.T) {
	res, r := audit(t, unpack(t))
	if !r.Wrong {
		t.Error("nothing is wrong, want something")
	}
	for _, want := range []string{
		"# Audit of example.org/yard",
		"### example.org/yard/broken",
		"does not build, tried 2 times: `./broken.go:4:13: cannot use \"text\"",
		"### example.org/yard/failing",
		"the wall leans",
		"vet: `vetted.go:7:28: fmt.Printf format %d has arg \"text\" of wrong type string`",
		"| `./good` | yes | 0 | pass | 100.0 % | 0 | 0 |",
		"| `./bare` | yes | 0 | none | – | 3 | 1 |",
		"| `./broken` | **no** | 0 | **not built** | – | 0 | 0 |",
		"| `./failing` | yes | 0 | **fail** | – | 0 | 0 |",
		"| `./vetted` | yes | 1 | none |",
		"5 packages, 3 exported names without a comment, 1 lines marked TODO or FIXME.",
		"1. `./broken`: does not build",
		"without comment: `Stone`, `Stone.Lay`, `Text`; marked: `bare.go:5: TODO: mortar`",
	} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	all, err := dag.All(checked).From(res.DAG)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 6 {
		t.Errorf("%d checks, want 6: five packages, and the broken one once more", len(all))
	}
	if t.Failed() {
		t.Log(r.Text)
	}
}

func TestCleanModule(t *testing.T) {
	_, r := audit(t, unpack(t, "good"))
	if r.Wrong || !strings.Contains(r.Text, "Everything builds") || strings.Contains(r.Text, "Worst") {
		t.Errorf("report of a clean module:\n%s", r.Text)
	}
}

func TestBadInput(t *testing.T) {
	tests := []struct {
		args []string
		want string // in the error
	}{
		{[]string{"--dri", "."}, "-dri"},
		{[]string{"somewhere"}, `unexpected argument "somewhere"`},
	}
	for _, tt := range tests {
		if _, err := Pipeline(tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want one with %q", tt.args, err, tt.want)
		}
	}
	p, err := Pipeline([]string{"--dir", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stone.Run(context.Background(), p, stone.Config{})
	var failure *stone.Failure
	if !errors.As(err, &failure) || failure.Kind == kind.Panic || !strings.Contains(failure.Reason, "--dir") {
		t.Errorf("a folder without a module: %v", err)
	}
}
