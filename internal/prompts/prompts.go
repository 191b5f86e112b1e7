// Package prompts gives the prompts of a run that are marked as adjustable other texts. They are data, in a node
// of a reserved type: so they are recorded, are part of keys, and nobody can send them from outside.
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
