package eval_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/answers"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/x/eval"
)

// A question without a recorded answer is an error, not a wrong answer.
func TestNotRecordedIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "said.jsonl")
	if err := os.WriteFile(file, []byte(`{"id": "a", "text": "A"}`+"\n"+`{"id": "b", "text": "?"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	said := dag.NewType[struct {
		Text string `json:"text"`
	}]("said")
	app := &call.Applicator{Registry: call.NewRegistry(answers.New(call.Metadata{}, answers.Config{File: file, Key: answers.Key{"text": {"id"}}}))}
	p := call.New("ask", said, call.Spec{Applicator: app, Intent: "say", Input: call.From(asked)})
	r, err := eval.Run(t.Context(), eval.Config{Pipeline: p, Data: rows("a", "b", "c"), Scorers: scorers(t, "exact")}, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Asked) != 1 || r.Asked[0].Trials != 3 || r.Asked[0].Share != 1 {
		t.Errorf("%+v: want the capability asked in all trials, including the failed one", r.Asked)
	}
	if s := r.Scores[0]; s.Right != 1 || s.Wrong != 1 || s.NoAnswer != 0 || s.Errors != 1 || s.N != 2 {
		t.Errorf("%+v: want one right, one wrong, one error", s)
	}
}
