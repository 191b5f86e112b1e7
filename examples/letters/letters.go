// Package letters contains the first agent of the README. The agent reads a letter and returns a Go value.
//
//	go run ./cmd/stone run ./examples/letters --input 'Where is my order 7?'
package letters

import (
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

type Order struct {
	ID    int    `json:"id"`
	Issue string `json:"issue" enum:"late,broken,other"`
}

var (
	Letter = dag.NewType[string]("letter")
	Read   = dag.NewType[Order]("order")
)

// Reader returns an ashlar, which is the type of every step: a function, an agent or a whole pipeline.
func Reader(model llm.Model) stone.Ashlar {
	return agent.New("read", Read, model, agent.Config{
		System: agent.Say("Say which order the letter is about, and what is wrong with it."),
		User:   Letter,
	})
}

func Pipeline() stone.Ashlar { return Reader(cli.DefaultModel()) }
