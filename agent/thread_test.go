package agent_test

import (
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// TestConversationIsNamed gives the requests of a conversation one name, and no other conversation the same: neither another
// agent's, nor the same agent's in another run.
func TestConversationIsNamed(t *testing.T) {
	names := map[string]int{}
	for _, id := range []string{"one", "two"} {
		m := model(calls("echo", `{"text":"1"}`), says("a"), calls("echo", `{"text":"2"}`), says("b"))
		of := func(name string) stone.Ashlar {
			return agent.New(name, note, m, agent.Config{User: agent.Say("begin"), Use: []agent.Middleware{agent.Use(echo())}})
		}
		if _, err := run(t, stone.Seq("all", of("first"), of("second")), stone.Config{RunID: id, Recorder: journal.Keep(memdb.New(t), journal.Options{})}); err != nil {
			t.Fatal(err)
		}
		for _, r := range m.requests {
			names[r.Conversation]++
		}
	}
	if len(names) != 4 || names[""] > 0 {
		t.Errorf("%v, want four names of two requests", names)
	}
}
