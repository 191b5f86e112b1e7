// Package tree inspects a pipeline without running it: it lists the names of its
// ashlars, the facts that they state about themselves, the paths through its leaves,
// the questions that it can ask, and the input that it needs.
package tree

import (
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
)

// Names returns the name of every ashlar of p, parents first, once for each place.
// Ashlars without a name are left out. Compare the names with the ashlars of a package to
// find an unused one.
func Names(p stone.Ashlar) []string {
	var out []string
	each(p, func(a stone.Ashlar) {
		if a.Name() != "" && a.Form() != "reduce" && !a.IsZero() && !a.IsGlue() { // a reduce has the name of its body
			out = append(out, a.Name())
		}
	})
	return out
}

// Questions lists the questions that p can ask, each ashlar once, in the order of the
// tree.
func Questions(p stone.Ashlar) []ask.Question {
	var out []ask.Question
	seen := map[stone.Ashlar]bool{}
	each(p, func(a stone.Ashlar) {
		if q, ok := a.Question(); ok && !seen[a] {
			seen[a] = true
			out = append(out, q)
		}
	})
	return out
}

// each calls fn for p and everything below it, parents first.
func each(p stone.Ashlar, fn func(stone.Ashlar)) {
	fn(p)
	for _, c := range p.Children() {
		each(c, fn)
	}
}
