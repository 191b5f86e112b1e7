package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/peer"
)

// The clients from the protocol's JavaScript SDK work with the agent: the newest, and one of version 0.3.
func TestNPM(t *testing.T) {
	peer.Module(t, "a2a03")
	peer.Held(t, "a2a03", "cards", "messages", "streams", "questions", "push over JSON-RPC")
	peer.Held(t, "@a2a-js/sdk", "cards", "messages", "streams", "questions", "files", "pictures", "cancelling", "push", "JSON-RPC and REST")
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
	const each = `P card: [["careful","chat","copy","draft","eye","judged","page"],true,"TRANSPORT"]
P send: ["completed","About slate P"]
P asks: ["input_required","Publish About chalk P?"]
P answered: ["completed","yes: About chalk P"]
P get: "completed"
P file: ["a.txt","text/plain","scanned"]
P picture: "What?[image/png, 8 bytes a.txt, text/plain, 7 bytes]"
P stream: ["I have read 1 message(s).","completed"]
P cancel: "TaskNotCancelableError"
P alone: ["draft","completed","About slate alone"]
P of another agent: "TaskNotFoundError"
P push: ["TASK_STATE_INPUT_REQUIRED","t0ken","Bearer s3cret"]
P push deleted: "TaskNotFoundError"
P push created: ["again",true,true,"",{"scheme":"Bearer","credentials":""},["TASK_STATE_INPUT_REQUIRED","t0ken","Bearer s3cret"]]
P push list: [true,["again"]]
P push refused: "RequestMalformedError"
`
	const before = `P card: ["page",["page"]]
P asks: ["task","input-required","Publish About chalk P?"]
P answered: ["completed","yes: About chalk P"]
P get: "completed"
P stream: ["task","status-update"]
P cancel: "REFUSED"
`
	var want strings.Builder
	for _, c := range []struct{ name, said, transport, refused, then string }{
		{"JSON-RPC", each, "JsonRpcTransport", "", ""},
		{"REST", each, "_RestTransport", "", ""},
		{"0.3 JSON-RPC", before, "", "TaskNotCancelableError", `P push: ["TASK_STATE_COMPLETED","t0ken",""]` + "\n"},
		{"0.3 REST", before, "", "Error", ""}, // which this client makes of every error over REST
	} {
		want.WriteString(strings.NewReplacer("P ", c.name+" ", `P"`, c.name+`"`, "P?", c.name+"?", "TRANSPORT", c.transport, "REFUSED", c.refused).Replace(c.said + c.then))
	}
	if err != nil || string(out) != want.String() {
		t.Errorf("%v, got:\n%s\nwant:\n%s", err, out, want.String())
	}
}
