package bench

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/schema"
)

// BenchmarkCall is a step whose answer is chosen at run time: the applicator checks input
// and output schemas, a must and a should, and calls a capability in this process. Floor
// is the same step as a leaf that calls the function itself. It runs on one processor, as
// turns do.
func BenchmarkCall(b *testing.B) {
	const calls = 1_000
	direct := stone.Func("answer", smallDoc, alikeResult, answerSmall)
	late, err := lateAnswer()
	if err != nil {
		b.Fatal(err)
	}
	for _, who := range []struct {
		name string
		step stone.Ashlar
	}{{"floor", direct}, {"stone", late}} {
		b.Run(who.name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			steps := make([]stone.Ashlar, calls)
			for i := range steps {
				steps[i] = who.step
			}
			p := stone.Seq("calls", steps...)
			d, err := smallDoc.Append(dag.DAG{}, aSmall)
			if err != nil {
				b.Fatal(err)
			}
			measure(b, calls, "call", func() error {
				res, err := stone.Run(context.Background(), p, stone.Config{Input: d})
				if err == nil && res.DAG.Len() != calls+1 {
					err = fmt.Errorf("%d nodes, want %d", res.DAG.Len(), calls+1)
				}
				return err
			})
		})
	}
}

var alikeResult = dag.NewType[alike]("answer")

func answerSmall(_ context.Context, v small) (alike, error) { return alike(v.next()), nil }

// lateAnswer returns the call.
func lateAnswer() (stone.Ashlar, error) {
	in, err := schema.For[small]()
	if err != nil {
		return stone.Ashlar{}, err
	}
	app := &call.Applicator{
		Registry: call.NewRegistry(call.Func(call.Metadata{ID: "go/next", In: "app/in", Out: "app/out"}, answerSmall)),
		Schemas:  map[string]*schema.Schema{"app/in": in, "app/out": alikeResult.Schema()},
		Intents:  map[string]call.Intent{"doc/next": {In: "app/in", Out: "app/out"}},
		Checks:   map[string]call.Check{"app/holds": func(context.Context, call.Subject) error { return nil }},
	}
	return call.New("answer", alikeResult, call.Spec{
		Applicator: app,
		Intent:     "doc/next",
		Input:      call.From(smallDoc),
		Done:       call.Done{Must: []string{"non-empty"}, Should: []string{"app/holds"}},
	}), nil
}
