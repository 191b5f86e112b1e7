package layers

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// library are the packages that programs are written with, in the order in which one meets them. The
// others are parts that a program adds when it needs them.
var library = []string{".", "dag", "agent", "llm", "tool", "call", "journal", "journal/sqlite", "eval", "cli"}

const packagesPage = "../../docs/reference/packages.md"

// TestPackagesPage holds the page that lists the packages to their comments. -update writes it.
func TestPackagesPage(t *testing.T) {
	rows := map[string]string{}
	for _, p := range load(t) {
		if !public(p) {
			continue
		}
		name, _ := local(p.ImportPath)
		what, ok := strings.CutPrefix(p.Doc, "Package "+p.Name+" ")
		if !ok {
			t.Errorf("%s: its comment starts with %q, not with \"Package %s\"", name, p.Doc, p.Name)
		}
		path := strings.TrimSuffix("stone/"+name, "/.")
		rows[name] = fmt.Sprintf("| `%s` | %s |\n", path, strings.TrimRight(what, ".:"))
	}
	var b strings.Builder
	b.WriteString("# Packages\n\nTen packages are the library: most programs import no other. Import paths begin with `github.com/stonelayer/`.\n\n" + header)
	for _, name := range library {
		if rows[name] == "" {
			t.Fatalf("there is no package %s", name)
		}
		b.WriteString(rows[name])
		delete(rows, name)
	}
	b.WriteString("\nThe other packages are parts that a program adds when it needs them:\n\n" + header)
	parts := make([]string, 0, len(rows))
	for name := range rows {
		parts = append(parts, name)
	}
	slices.Sort(parts)
	for _, name := range parts {
		b.WriteString(rows[name])
	}
	if *update {
		if err := os.WriteFile(packagesPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(packagesPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s differs from the comments of the packages: write it with -update", packagesPage)
	}
}

const header = "| package | |\n|---|---|\n"
