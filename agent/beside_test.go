package agent_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// TestConversationIsBeside: the conversation stays in the content, but two answers
// are compared, and shown, without it.
func TestConversationIsBeside(t *testing.T) {
	type area struct {
		Area string `json:"area"`
	}
	j := memdb.New(t)
	typ := dag.NewType[area]("area")
	for run, answers := range map[string][]any{
		"one":   {says(`{"area":"x"}`)},
		"two":   {says(`no JSON`), says(`{"area":"x"}`)},
		"three": {says(`{"area":"y"}`)},
	} {
		p := agent.New("a", typ, model(answers...), agent.Config{User: agent.Say("go")})
		result, err := stone.Run(t.Context(), p, stone.Config{RunID: run, Recorder: journal.Keep(j, journal.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Node.Own(); !strings.HasPrefix(got, `{"area":"`) || len(got) != len(`{"area":"x"}`) || result.Node.Text() != got {
			t.Errorf("run %s shows %s", run, got)
		}
		if talk, err := agent.Conversation(result.Node); err != nil || len(talk) != 2*len(answers) {
			t.Errorf("the conversation of run %s has %d messages, %v", run, len(talk), err)
		}
	}
	if diff, err := journal.Diff(t.Context(), j, "one", "two"); err != nil || len(diff) > 0 {
		t.Errorf("equal answers differ: %+v, %v", diff, err)
	}
	if diff, err := journal.Diff(t.Context(), j, "one", "three"); err != nil || len(diff) != 1 {
		t.Errorf("got %+v, %v, want one difference", diff, err)
	}
}

// TestParseFailureSaysWhy: also where the whole answer is at fault, without its words.
func TestParseFailureSaysWhy(t *testing.T) {
	type area struct {
		Area string `json:"area"`
	}
	for answer, want := range map[string]string{
		`secret`:         "second attempt: want JSON, got malformed text at line 1, column 1",
		`"secret"`:       "second attempt: want object, got string",
		`{}`:             `second attempt: property "area" is required, but missing`,
		`{"area":1}`:     "second attempt, first at area",
		`{"secret":"s"}`: "second attempt",
	} {
		p := agent.New("a", dag.NewType[area]("area"), model(says(answer), says(answer)), agent.Config{User: agent.Say("go")})
		_, err := stone.Run(t.Context(), p, stone.Config{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q and no word of the answer", answer, err, want)
		}
	}
}
