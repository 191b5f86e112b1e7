package serve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
)

// TestOpenAPITypeScript makes types with openapi-typescript, and compiles and runs a client of them.
func TestOpenAPITypeScript(t *testing.T) {
	need.Time(t)
	h := newHouse(t, nil)
	modules := filepath.Dir(peer.Module(t, "typescript"))
	peer.Held(t, "openapi-typescript", "a typed client of the API")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/client")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	document, err := filepath.Abs("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var printed []byte
	for _, args := range [][]string{
		{filepath.Join(modules, "openapi-typescript", "bin", "cli.js"), document, "-o", "api.ts"},
		{filepath.Join(modules, "typescript", "bin", "tsc")},
		{"client.js", h.URL},
	} {
		cmd := exec.Command("node", args...)
		cmd.Dir = dir
		if printed, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, printed)
		}
	}
	if got, want := string(printed), `{"content":"yes: About marble","listed":[true],"none":0,"refused":"not-found"}`+"\n"; got != want {
		t.Errorf("the client printed %s, want %s", got, want)
	}
}
