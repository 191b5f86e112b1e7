package agent_test

import (
	"fmt"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// What an agent is made of can be read back: by programs as its configuration, by people
// as facts.
func ExampleConfigOf() {
	ticket := dag.NewType[string]("ticket")
	answer := dag.NewType[agent.Text]("answer")
	a := agent.New("support", answer, script.New(), agent.Config{
		System: agent.Say("You answer tickets.\nBe brief."),
		User:   agent.Prompt(ticket, func(t string) string { return t }),
		Use:    []agent.Middleware{agent.Use(agent.Tool{Tool: llm.Tool{Name: "search"}, Effects: []string{"net"}})},
	})

	_, cfg, ok := agent.ConfigOf(a)
	fmt.Println(ok, cfg.MaxTurns, *cfg.MaxHealing, len(cfg.Use))
	for name, value := range tree.Facts(a) {
		fmt.Printf("%s: %s\n", name, value)
	}
	// Output:
	// true 15 3 1
	// model: script (script)
	// system: You answer tickets. … (2 lines)
	// prompt: made of ticket
	// tool: search (net)
	// max-turns: 15
	// max-calls: 128
	// max-tokens: of the model
}
