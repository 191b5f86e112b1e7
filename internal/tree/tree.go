// Package tree inspects a pipeline without running it: it lists the facts that its
// ashlars state about themselves, the paths through its leaves, the questions that it can ask, and
// the input that it needs.
package tree

import (
	"iter"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
)

// Questions lists the questions that p can ask, each ashlar once, in the order of the tree. Of those
// that a tool asks only the name is known.
func Questions(p stone.Ashlar) []ask.Question {
	var out []ask.Question
	seen := map[stone.Ashlar]bool{}
	each(p, func(a stone.Ashlar) {
		if seen[a] {
			return
		}
		seen[a] = true
		for _, name := range a.Questions() {
			q, _ := a.Question()
			q.Name = name
			out = append(out, q)
		}
	})
	return out
}

// Children ranges over the children of a as a run's paths have them: a reduce stands for the
// ashlar that it wraps, and glue for the ashlars below it. Each comes with its number among the
// children of its name, from 1.
func Children(a stone.Ashlar) iter.Seq2[int, stone.Ashlar] {
	return func(yield func(int, stone.Ashlar) bool) {
		children(a, stone.Ashlar{}, func(n int, c, _ stone.Ashlar) bool { return yield(n, c) })
	}
}

// A Child is a child with its number. Guard is the match of glue around it, zero without one.
type Child struct {
	stone.Ashlar
	Occurrence int
	Guard      stone.Ashlar
}

// Guarded ranges over the same children.
func Guarded(a stone.Ashlar) iter.Seq[Child] {
	return func(yield func(Child) bool) {
		children(a, stone.Ashlar{}, func(n int, c, guard stone.Ashlar) bool { return yield(Child{c, n, guard}) })
	}
}

func children(a, guard stone.Ashlar, yield func(n int, c, guard stone.Ashlar) bool) bool {
	seen := map[string]int{}
	for _, c := range Body(a).Children() {
		if c.IsGlue() {
			around := guard
			if c.Form() == "match" {
				around = c
			}
			if !children(c, around, yield) {
				return false
			}
			continue
		}
		seen[c.Name()]++
		if !yield(seen[c.Name()], Body(c), guard) {
			return false
		}
	}
	return true
}

// Body returns the ashlar that a reduce wraps, and any other ashlar as it is. Both have one
// path.
func Body(a stone.Ashlar) stone.Ashlar {
	for a.Form() == "reduce" {
		a = a.Children()[0]
	}
	return a
}

// each calls fn for p and everything below it, parents first.
func each(p stone.Ashlar, fn func(stone.Ashlar)) {
	fn(p)
	for _, c := range p.Children() {
		each(c, fn)
	}
}

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
