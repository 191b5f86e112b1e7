package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/plan"
)

// BenchmarkPlan reads, checks and compiles a plan of a thousand calls, each of which
// reads the previous one and has a contract and two candidates.
func BenchmarkPlan(b *testing.B) {
	const nodes = 1_000
	answer := func(context.Context, map[string]any) (call.JSON, error) { return call.JSON(`{"text":"yes"}`), nil }
	app := &call.Applicator{Registry: call.NewRegistry(
		call.Func(call.Metadata{ID: "model/small"}, answer), call.Func(call.Metadata{ID: "model/large"}, answer))}
	opts := plan.Options{Limits: plan.Limits{Nodes: nodes}}
	text := manyCalls(nodes)
	b.Run("stone", func(b *testing.B) {
		measure(b, 1, "plan", func() error {
			p, err := plan.Read(text)
			if err != nil {
				return err
			}
			if err := p.Check(app, opts, stone.Config{}).Err(); err != nil {
				return err
			}
			_, err = p.Ashlar(app, opts)
			return err
		})
	})
}

func manyCalls(n int) []byte {
	var text strings.Builder
	text.WriteString("{:nodes [{:op :let :value {:text \"begin\"} :as :s0}\n")
	for i := 1; i < n-1; i++ {
		fmt.Fprintf(&text, "{:op :call :intent :text/respond :input {:prompt {:slot/id [:s%d :text]}} :as :s%d "+
			":dispatch {:candidates [:model/small :model/large]} :done {:must #{:non-empty}}}\n", i-1, i)
	}
	fmt.Fprintf(&text, "{:op :emit :input {:final :s%d}}]}", n-2)
	return []byte(text.String())
}
