package view_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm/script"
)

// The record of an invocation says what the model was sent, also of an answer that does not fit.
func TestSent(t *testing.T) {
	type asked struct {
		Q string `json:"q"`
	}
	type sum struct {
		N int `json:"n"`
	}
	question, number := dag.NewType[asked]("question"), dag.NewType[sum]("number")
	app := &call.Applicator{Registry: call.NewRegistry(
		model.New(call.Metadata{ID: "small"}, model.Config{Prompt: "Count.", Model: script.New(script.Text("seventeen"), script.Text("seventeen"))}),
		model.New(call.Metadata{ID: "large"}, model.Config{Prompt: "Count.", Model: script.New(script.Text(`{"n": 85}`))}))}
	ask := call.New("sum", number, call.Spec{Applicator: app, Intent: "sum", Input: call.From(question),
		Dispatch: call.Dispatch{Candidates: []string{"small", "large"}, SwitchOn: []string{"format/drift"}, Retry: call.Retry{FallbackMax: new(1)}}})
	p := stone.Seq("p", stone.Func0("start", question, func(context.Context) (asked, error) { return asked{"17 * 5"}, nil }), ask)
	j := memdb.New(t)
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"p/sum/small 1", "p/sum/large 1"} {
		rec, err := j.Record(t.Context(), "r", path, "step")
		if err != nil {
			t.Fatal(err)
		}
		s := view.SentIn(rec)
		if s == nil || !strings.Contains(s.System, "Count.") || !strings.Contains(s.Input, "17 * 5") || !strings.Contains(string(s.Schema), `"n"`) {
			t.Errorf("%s: %+v", path, s)
		}
	}
}
