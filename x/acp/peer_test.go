package acp_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/acp"
)

// agentVar makes the test binary an agent with its journal in a folder.
const agentVar = "STONE_TEST_ACP"

func TestMain(m *testing.M) {
	folder := os.Getenv(agentVar)
	if folder == "" {
		os.Exit(m.Run())
	}
	if err := serveStdio(folder); err != nil {
		panic(err)
	}
}

func serveStdio(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	db, err := sqlite.Open(filepath.Join(folder, "stone.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := serve.New(serve.Config{Journal: db, Pipelines: pipelines(nil), Scan: 10 * time.Millisecond, Grace: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()
	return acp.Serve(ctx, s, "user ada", os.Stdin, os.Stdout)
}

// The clients from the protocol's JavaScript SDK work with the agent: the newest, and the last one of its first name,
// which checks every update against its own schema and drops those that do not fit.
func TestNPM(t *testing.T) {
	modules := filepath.Dir(filepath.Dir(peer.Module(t, "@agentclientprotocol/sdk")))
	for _, name := range []string{"@agentclientprotocol/sdk", "@zed-industries/agent-client-protocol"} {
		peer.Held(t, name, "turns", "tools", "permissions", "questions", "pictures", "cancelling", "loaded sessions")
	}
	program, err := os.Open("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-")
	cmd.Dir, cmd.Stdin = filepath.Dir(modules), program
	cmd.Env = append(os.Environ(), "STONE_AGENT="+os.Args[0], "STONE_TEST_FOLDER="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 { // the clients write there what they reject
		t.Errorf("%v: %s", err, stderr.String())
	}
	each, err := os.ReadFile("testdata/client.txt")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, client := range []string{"sdk", "zed"} {
		for line := range strings.Lines(string(each)) {
			want.WriteString(client + " " + line)
		}
	}
	if diff := cmp.Diff(want.String(), string(out)); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
}
