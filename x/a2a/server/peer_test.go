package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stonelayer/stone/internal/test/peer"
)

// The client of the JavaScript SDK of the protocol works with the agent.
func TestNPM(t *testing.T) {
	modules := filepath.Dir(filepath.Dir(peer.Module(t, "@a2a-js/sdk")))
	h := newHouse(t)
	program, err := os.Open("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-")
	cmd.Dir, cmd.Stdin, cmd.Env = filepath.Dir(modules), program, append(os.Environ(), "STONE_URL="+h.url)
	out, err := cmd.CombinedOutput()
	const want = `JSON-RPC card: [["careful","chat","copy","draft","judged","page"],true]
JSON-RPC send: ["completed","About slate JSON-RPC"]
JSON-RPC asks: ["input_required","Publish About chalk JSON-RPC?"]
JSON-RPC answered: ["completed","yes: About chalk JSON-RPC"]
JSON-RPC get: "completed"
JSON-RPC file: ["a.txt","text/plain","scanned"]
JSON-RPC stream: ["I have read 1 message(s).","completed"]
JSON-RPC cancel: "TaskNotCancelableError"
REST card: [["careful","chat","copy","draft","judged","page"],true]
REST send: ["completed","About slate REST"]
REST asks: ["input_required","Publish About chalk REST?"]
REST answered: ["completed","yes: About chalk REST"]
REST get: "completed"
REST file: ["a.txt","text/plain","scanned"]
REST stream: ["I have read 1 message(s).","completed"]
REST cancel: "TaskNotCancelableError"
`
	if err != nil || string(out) != want {
		t.Errorf("%v, got:\n%s\nwant:\n%s", err, out, want)
	}
}
