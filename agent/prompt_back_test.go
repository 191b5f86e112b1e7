package agent_test

import (
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm/script"
)

// A notice compares the prompt with the one that the run started with, also after a program with another one
// resumed it.
func TestPromptComesBack(t *testing.T) {
	j := memdb.New(t)
	text := dag.NewType[agent.Text]("text")
	for i, c := range []struct {
		prompt  string
		changed bool
	}{{"old", false}, {"new", true}, {"old", false}, {"newer", true}} {
		p := stone.Seq("p",
			agent.New("write", text, script.New(script.Text("a text")), agent.Config{User: agent.Say(c.prompt)}),
			stone.Ask("approve", text, dag.NewType[stone.Answer]("approval"), func(agent.Text) string { return "Publish?" }))
		result, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{})})
		if err == nil {
			t.Fatal("it does not wait")
		}
		if got := len(result.Notices) > 0; got != c.changed {
			t.Errorf("run %d with the prompt %q: %+v, want a notice: %t", i, c.prompt, result.Notices, c.changed)
		}
	}
}
