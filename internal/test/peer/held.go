package peer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Held declares which features of a client (an npm module) the test demonstrates. When the test has passed, they are appended to
// the file named by STONE_MATRIX, from which `make matrix` generates docs/reference/clients.md.
func Held(t testing.TB, module string, features ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Module(t, module), "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var is struct{ Name, Version string }
	if err := json.Unmarshal(text, &is); err != nil {
		t.Fatal(err)
	}
	HeldBy(t, is.Name, is.Version, features...)
}

// HeldBy is like Held, for a client that is not an npm module.
func HeldBy(t testing.TB, name, version string, features ...string) {
	t.Helper()
	t.Cleanup(func() {
		file := os.Getenv("STONE_MATRIX")
		if t.Failed() || t.Skipped() || file == "" {
			return
		}
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := fmt.Fprintf(f, "%s\t%s\t%s\t%s\n", name, version, t.Name(), strings.Join(features, "\t")); err != nil {
			t.Fatal(err)
		}
	})
}
