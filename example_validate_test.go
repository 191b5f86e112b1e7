package stone_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
)

// Validate checks a pipeline before it runs. Here, the input is missing and a lens names a field that does not exist.
func ExampleValidate() {
	p := stone.Seq("support",
		stone.Func("triage", Ticket, Triage, triage),
		stone.Match("route", stone.Lens("aera"),
			stone.Case("bug", stone.Func("bug", Ticket, Reply, answer("Which version is it?")))),
	)
	for _, finding := range stone.Validate(p, stone.Given{}) {
		fmt.Println(finding.Type, "at", finding.Path)
	}
	// Output:
	// missing-producer at support/triage
	// invalid-lens at support/route
	// missing-producer at support/route["bug"]/bug
}

// A step declares its effects and runs only if they are granted.
func ExampleEffects() {
	page := dag.NewType[string]("page")
	fetch := stone.Func0("fetch", page, func(context.Context) (string, error) { return "the page", nil }, stone.Effects(effect.Net))
	_, err := stone.Run(context.Background(), fetch, stone.Config{Grant: []string{}})
	fmt.Println(err)
	result, err := stone.Run(context.Background(), fetch, stone.Config{Grant: []string{effect.Net}})
	fmt.Println(result.Node.Text(), err)
	// Output:
	// pipeline is invalid: [effect-not-granted] fetch: it needs the effect "net", which the run does not grant: grant it, or remove this step
	// the page <nil>
}
