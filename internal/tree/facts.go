package tree

import (
	"iter"

	"github.com/stonelayer/stone"
)

// Facts ranges over what an ashlar says of itself beside its name, its types and its
// effects, as names and values in the order to show them: the model, the prompts, the
// tools and the bounds of an agent, the intent of a call. A name may come several times.
// What says nothing has no facts.
func Facts(a stone.Ashlar) iter.Seq2[string, string] {
	if facts := a.Detail().Facts; facts != nil {
		return facts()
	}
	return func(func(string, string) bool) {}
}
