// Package prompts replaces a run's adjustable prompts. The texts are data in a node of a reserved type, so they are recorded, are
// part of keys, and cannot be sent from outside.
package prompts

import "github.com/stonelayer/stone/dag"

// Type has the texts by the names of their prompts.
var Type = dag.NewType[map[string]string]("stone/prompts")

// Reader reads the texts; nil, for nearly all runs, if there are none.
var Reader = dag.Maybe(Type)

// In returns the texts of d.
func In(d dag.DAG) (map[string]string, error) {
	texts, err := Reader.From(d)
	if texts == nil {
		return nil, err
	}
	return *texts, err
}
