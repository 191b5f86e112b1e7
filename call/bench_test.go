package call_test

import (
	"context"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/schema"
)

type question struct {
	Text string `json:"text"`
}

type reply struct {
	Text string `json:"text"`
}

var (
	questionType = dag.NewType[question]("question")
	answerType   = dag.NewType[reply]("answer")
)

// BenchmarkCall is a call with in and out schema, two checks and a capability in
// this process, in runs of many calls; "floor" is the same run with a leaf that
// does nothing else.
func BenchmarkCall(b *testing.B) {
	const calls = 1000
	in, _ := schema.For[question]()
	out, _ := schema.For[reply]()
	app := &call.Applicator{
		Registry: call.NewRegistry(call.Capability{
			Metadata: call.Metadata{ID: "echo/a", In: "app/question", Out: "app/reply"},
			Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
				return &call.Reply{Out: call.JSON(`{"text":"forty-two"}`)}, nil
			},
		}),
		Schemas: map[string]*schema.Schema{"app/question": in, "app/reply": out},
		Intents: map[string]call.Intent{"text/answer": {In: "app/question", Out: "app/reply"}},
		Checks: map[string]call.Check{
			"app/short": func(_ context.Context, s call.Subject) error { return nil },
		},
	}
	floor := stone.Func("answer", questionType, answerType, func(context.Context, question) (reply, error) {
		return reply{"forty-two"}, nil
	})
	answer := call.New("answer", answerType, call.Spec{
		Applicator: app,
		Intent:     "text/answer",
		Input:      call.From(questionType),
		Done:       call.Done{Must: []string{"non-empty"}, Should: []string{"app/short"}},
	})
	d, err := questionType.Append(dag.DAG{}, question{"What is the answer?"})
	if err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct {
		name string
		step stone.Ashlar
	}{{"floor", floor}, {"call", answer}} {
		b.Run(bench.name, func(b *testing.B) {
			steps := make([]stone.Ashlar, calls)
			for i := range steps {
				steps[i] = bench.step
			}
			p := stone.Seq("calls", steps...)
			b.ReportAllocs()
			start := cputime.Used()
			for b.Loop() {
				if _, err := stone.Run(b.Context(), p, stone.Config{Input: d}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cputime.Used()-start)/float64(b.N)/calls, "cpu-ns/call")
		})
	}
}
