package serve_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli"
)

// A supervisor waits for the line with the address, so a server that fails does not print it.
func TestNoAddressBeforeFailure(t *testing.T) {
	t.Setenv("HOOK_KEY", "not a secret of webhooks")
	dir := t.TempDir()
	file := filepath.Join(dir, "stone.edn")
	if err := os.WriteFile(file, []byte(`{:webhooks {:ops {:url "https://ops.example.com/x" :secret {:env "HOOK_KEY"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code := cli.Run(t.Context(), cli.Config{Parts: parts, Pipeline: paging(), Name: "page", Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Args: []string{
		"serve", "--address", "127.0.0.1:0", "--config", file, "--db", filepath.Join(dir, "stone.db"), "--tokens", filepath.Join(dir, "tokens.json")}})
	if text := out.String(); code == 0 || strings.Contains(text, "http://") || !strings.Contains(text, "whsec_") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
