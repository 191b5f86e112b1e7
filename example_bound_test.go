package stone_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// Bound tells the maximum cost of a pipeline before it runs: in terms of the number of documents, or as an amount if the
// documents are known.
func ExampleAshlar_Bound() {
	documents, document, summary := dag.NewType[[]string]("documents"), dag.NewType[string]("document"), dag.NewType[agent.Text]("summary")
	pipeline := stone.Seq("digest",
		stone.Map("each-document", documents, document, agent.New("summarize", summary, script.New(), agent.Config{
			User: document, MaxTurns: 1, MaxTokens: 1000,
		})),
		stone.Reduce(agent.New("join", summary, script.New(), agent.Config{
			User: dag.Derive(dag.Lanes(summary), func(all []agent.Text) string { return fmt.Sprint(len(all)) }), MaxTurns: 1, MaxTokens: 2000,
		})),
	)
	ctx := llm.WithTable(context.Background(), func(llm.Info) llm.Spec {
		return llm.Spec{Window: 32_000, Price: &budget.Price{In: 0.25, Out: 2}}
	})
	bound := pipeline.Bound(ctx, stone.Given{})
	fmt.Println("at most", bound, "USD")
	for _, part := range bound.Parts() {
		fmt.Printf("%s: %s, %s\n", part.Path, part.Bound, part.Note)
	}
	input := dag.Of(documents.With([]string{"one", "two", "three"}))
	usd, known := pipeline.Bound(ctx, stone.Config{Input: input}.Given()).USD()
	fmt.Printf("of three documents %.2f %v\n", usd, known)
	// Output:
	// at most 0.048 + 0.04 × each-document USD
	// digest/each-document/summarize: 0.04 × each-document, at most 4 requests in 2 turns
	// digest/join: 0.048, at most 4 requests in 2 turns
	// of three documents 0.17 true
}
