// Package prompts replaces the adjustable prompts of a run. The texts are stored in a node with a reserved type, so they are
// recorded and are part of keys, and clients cannot send them.
package prompts

import "github.com/stonelayer/stone/dag"

// Type is the type of the node that contains the texts, by name of the prompt.
var Type = dag.NewType[map[string]string]("stone/prompts")

// Reader reads the texts. The result is nil if there are none, as in nearly all runs.
var Reader = dag.Maybe(Type)

// In returns the texts in d.
func In(d dag.DAG) (map[string]string, error) {
	texts, err := Reader.From(d)
	if texts == nil {
		return nil, err
	}
	return *texts, err
}
