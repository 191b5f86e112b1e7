package graph_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli/internal/graph"
	"github.com/stonelayer/stone/dag"
)

func ExampleOf() {
	word := dag.NewType[string]("word")
	step := func(name string) stone.Ashlar {
		return stone.Func0(name, word, func(context.Context) (string, error) { return name, nil })
	}
	g, err := graph.Of(stone.Seq("all", step("draft"), stone.Loop("until-good", step("improve"), nil, 3)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(g.Mermaid())
	// Output:
	// flowchart TD
	//   n1["draft"]
	//   subgraph f2["until-good"]
	//     n3["improve"]
	//   end
	//   n3 -.->|"again, 3 at most"| n3
	//   n1 --> n3
}
