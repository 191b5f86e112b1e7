package openapi_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/oapi-codegen/runtime" // which generated clients use
)

const generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"

// TestGeneratedClient makes a client with oapi-codegen, and compiles and runs a program that uses it.
func TestGeneratedClient(t *testing.T) {
	at, dir := server(t), t.TempDir()
	code, program, overlay := filepath.Join(dir, "client.go"), filepath.Join(dir, "client"), filepath.Join(dir, "overlay.json")
	place, err := filepath.Abs("testdata/client/generated.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {place: code}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, args := range [][]string{
		{"go", "run", generator, "-generate=types,client,skip-prune", "-package=main", "-o", code, "../../../serve/openapi.json"},
		{"go", "build", "-overlay", overlay, "-o", program, "./testdata/client"},
		{program, at},
	} {
		if out, err = exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	if string(out) != "yes true\n" {
		t.Errorf("the client printed %s", out)
	}
}
