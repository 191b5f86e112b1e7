package layers

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// library are the packages that programs are written with, in the order in which one meets them. The
// others are parts that a program adds when it needs them; those below x are extras, which nothing else needs.
var library = []string{".", "dag", "agent", "llm", "tool", "call", "journal", "journal/sqlite", "cli"}

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
	b.WriteString("# Packages\n\nNine packages are the library: most programs import no other. Import paths begin with `github.com/stonelayer/`.\n\n" + header)
	for _, name := range library {
		if rows[name] == "" {
			t.Fatalf("there is no package %s", name)
		}
		b.WriteString(rows[name])
		delete(rows, name)
	}
	var parts, extras []string
	for name := range rows {
		if strings.HasPrefix(name, "x/") {
			extras = append(extras, name)
		} else {
			parts = append(parts, name)
		}
	}
	for _, list := range []struct {
		what  string
		names []string
	}{
		{"The other packages are parts that a program adds when it needs them:", parts},
		{"Packages below `x` are extras. Nothing else needs one: the command `stone` links them, and programs that name them. " +
			"`x/a2a`, `x/otel` and `x/temporal` are modules of their own.", extras},
	} {
		b.WriteString("\n" + list.what + "\n\n" + header)
		slices.Sort(list.names)
		for _, name := range list.names {
			b.WriteString(rows[name])
		}
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
