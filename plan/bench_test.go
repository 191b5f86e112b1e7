package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/x/cel"
)

// thousand is a plan of a thousand nodes: calls that read each other, with
// contracts, guards and forms between them.
func thousand() []byte {
	var b strings.Builder
	b.WriteString(`{:id "large" :nodes [{:op :let :value {:n 0} :as :s0}`)
	size := 1
	last := 0
	for i := 1; size < 999; i++ {
		last = i
		switch {
		case i%50 == 0 && size+3 < 999:
			fmt.Fprintf(&b, "\n{:op :seq :body [{:op :let :value {:slot/id [:s%d :text]} :as :t%d} {:op :let :value [1 {:slot/id :t%d} {:a :b}] :as :s%d}]}", i-1, i, i, i)
			size += 3
			continue
		case i%20 == 0:
			fmt.Fprintf(&b, "\n{:op :let :value {:of {:slot/id :s%d}} :as :s%d}", i-1, i)
		default:
			fmt.Fprintf(&b, "\n{:op :call :id \"c-%d\" :intent :text/respond :as :s%d", i, i)
			fmt.Fprintf(&b, " :input {:prompt {:slot/id [:s%d :text]} :style {:tone :calm :limit 200} :n %d}", i-1, i)
			fmt.Fprintf(&b, " :dispatch {:candidates [:model/small :model/large] :strategy :cascade} :done {:must #{:non-empty} :score-min 0.5}}")
		}
		size++
	}
	fmt.Fprintf(&b, "\n{:op :emit :input {:final :s%d}}]}", last)
	return []byte(b.String())
}

func models() *call.Applicator {
	return &call.Applicator{Language: cel.Language, Registry: call.NewRegistry(
		call.Capability{Metadata: call.Metadata{ID: "model/small", Kind: "llm"}, Invoke: echo},
		call.Capability{Metadata: call.Metadata{ID: "model/large", Kind: "llm"}, Invoke: echo},
	)}
}

func BenchmarkThousandNodes(b *testing.B) {
	text := thousand()
	app := models()
	opts := plan.Options{Limits: plan.Limits{Nodes: 1000}}
	p, err := plan.Read(text)
	if err != nil {
		b.Fatal(err)
	}
	if p.Nodes() != 1000 {
		b.Fatalf("%d nodes", p.Nodes())
	}
	if err := p.Check(app, opts, stone.Config{}).Err(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := plan.Read(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			p, err := plan.Read(text)
			if err != nil {
				b.Fatal(err)
			}
			if err := p.Check(app, opts, stone.Config{}).Err(); err != nil {
				b.Fatal(err)
			}
			if _, err := p.Ashlar(app, opts); err != nil {
				b.Fatal(err)
			}
		}
	})
}
