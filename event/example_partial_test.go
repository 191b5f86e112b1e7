package event_test

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// words streams an answer word by word.
type words struct{ llm.Model }

func (w words) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range w.Model.Stream(ctx, req) {
			for piece := range strings.SplitAfterSeq(d.Text, " ") {
				d.Text = piece
				if !yield(d, err) {
					return
				}
			}
		}
	}
}

func ExamplePartials() {
	type Order struct {
		Cake  string `json:"cake"`
		Count uint8  `json:"count"`
	}
	model := script.New(script.Text(`{"cake": "lemon drizzle sponge", "count": 30}`))
	p := agent.New("order", dag.NewType[Order]("order"), words{model}, agent.Config{User: agent.Say("Thirty cakes, please.")})
	show := event.Partials("order", func(p event.Partial[Order]) {
		fmt.Printf("%q %d %t\n", p.Value.Cake, p.Value.Count, p.Complete)
	})
	if _, err := stone.Run(context.Background(), p, stone.Config{Watch: show}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// "" 0 false
	// "lemon " 0 false
	// "lemon drizzle " 0 false
	// "lemon drizzle sponge" 0 false
	// "lemon drizzle sponge" 30 true
}
