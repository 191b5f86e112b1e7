package uistream

import (
	"testing"

	"github.com/stonelayer/stone/internal/turn"
)

// A client that sends the result of a call with its message has the result, which is not sent again.
func TestSeenResults(t *testing.T) {
	req, err := Read([]byte(`{"id":"c","messages":[
		{"id":"u","role":"user","parts":[{"type":"text","text":"go"}]},
		{"id":"r","role":"assistant","parts":[
			{"type":"tool-look","toolCallId":"r~tool-1-1","state":"output-available","providerExecuted":true,"output":"seen"},
			{"type":"tool-look","toolCallId":"r~tool-1-2","state":"input-available","providerExecuted":true}]},
		{"id":"v","role":"user","parts":[{"type":"text","text":"on"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]bool{"tool-1-1": true, "tool-1-2": false} {
		if got := req.Seen.HasResult("r", &turn.Part{ID: call}); got != want {
			t.Errorf("the client has the result of %s: %t, want %t", call, got, want)
		}
	}
}
