package agent_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// TestForkFromATurn: a fork from a turn keeps the turns and calls before it, also with another model, asks the model from
// there on, and calls tools again only after it.
func TestForkFromATurn(t *testing.T) {
	j := memdb.New(t)
	var called []string
	pipeline := func(name string, asked *int) stone.Ashlar {
		m := script.Func(func(_ int, r *llm.Request) script.Answer {
			*asked++
			if turn := len(r.Messages)/2 + 1; turn < 4 {
				return script.Call("count", fmt.Sprintf(`{"text":"%s%d"}`, name, turn))
			}
			return script.Text("done by " + name)
		})
		count := tool("count", func(text string) (agent.Result, error) {
			called = append(called, text)
			return agent.Result{Text: "counted " + text}, nil
		})
		return agent.New("talk", note, m, agent.Config{User: agent.Say("begin " + name), Use: []agent.Middleware{agent.Use(count)}, MaxTurns: 5 + len(name)})
	}
	var asked, anew int
	if _, err := stone.Run(t.Context(), pipeline("a", &asked), stone.Config{RunID: "a", Recorder: journal.Keep(j, journal.Options{})}); err != nil || asked != 4 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	called = nil
	fork := &journal.Fork{Run: "a", At: "talk/turn-3"}
	other := pipeline("other", &anew)
	result, err := stone.Run(t.Context(), other, stone.Config{RunID: "b", Recorder: journal.Keep(j, journal.Options{Fork: fork})})
	if err != nil || anew != 2 {
		t.Errorf("the fork asked the model %d times, want 2: %v", anew, err)
	}
	if diff := cmp.Diff([]string{"other3"}, called); diff != "" {
		t.Errorf("tool calls of the fork (-want +got):\n%s", diff)
	}
	if got := result.DAG.Latest().Text(); got != "done by other" {
		t.Errorf("got %q", got)
	}
	paths := func(run string) (all []string) {
		steps, err := j.Steps(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if s.Kind == "step" && s.From != "" {
				all = append(all, s.Path)
			}
		}
		return all
	}
	if diff := cmp.Diff([]string{"talk/turn-1", "talk/tool-1-1", "talk/turn-2", "talk/tool-2-1"}, paths("b")); diff != "" {
		t.Errorf("steps of the fork that it took (-want +got):\n%s", diff)
	}
	// Done again, the fork asks for nothing.
	anew = 0
	if _, err := stone.Run(t.Context(), other, stone.Config{RunID: "b", Recorder: journal.Keep(j, journal.Options{Resume: true})}); err != nil || anew != 0 {
		t.Errorf("the fork that is done asked %d times: %v", anew, err)
	}
}
