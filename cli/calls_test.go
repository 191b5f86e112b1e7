//go:build unix

package cli_test

import (
	"encoding/json"

	"github.com/stonelayer/stone"
	calls "github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
)

// A package has the applicator of its user in a variable.
var greeting = calls.New("greet", dag.NewType[json.RawMessage]("greeting"), calls.Spec{
	Applicator: cli.Applicator(),
	Intent:     "text/greet",
	Input:      dag.Derive(dag.Nothing, func(struct{}) any { return map[string]string{"name": "Ada"} }),
	Effects:    []string{"process"},
})

func init() { programs["caller"] = stone.Seq("calling", greeting) }
