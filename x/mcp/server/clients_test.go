package server_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/x/mcp/server"
)

var update = flag.Bool("update", false, "write what the clients print into testdata")

// TestClients has the clients of both TypeScript SDKs use the server over HTTP, in their default settings.
func TestClients(t *testing.T) {
	modules := filepath.Dir(filepath.Dir(peer.Module(t, "@modelcontextprotocol/client")))
	peer.Module(t, "@modelcontextprotocol/sdk")
	for _, client := range []string{"@modelcontextprotocol/client", "@modelcontextprotocol/sdk"} {
		peer.Held(t, client, "tools over HTTP", "questions", "progress", "cancelling")
	}
	h := newHouse(t, nil, server.Config{})
	program, err := os.Open("testdata/clients.mjs")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-")
	cmd.Dir, cmd.Stdin = filepath.Dir(modules), program
	cmd.Env = append(os.Environ(), "STONE_URL="+h.url)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if *update {
		if err := os.WriteFile("testdata/clients.txt", out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, read := os.ReadFile("testdata/clients.txt")
	if read != nil {
		t.Error(read)
	}
	if err != nil || string(out) != string(want) {
		t.Errorf("%v: %s\ngot:\n%s\nwant:\n%s", err, stderr.String(), out, want)
	}
	select { // by the client of protocol 2026-07-28; the others would need a session to cancel a run
	case <-h.Stopped:
	case <-time.After(30 * time.Second):
		t.Error("the run of a cancelled call goes on")
	}
	close(h.Gate)
}
