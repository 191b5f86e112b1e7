// Package tree inspects a pipeline without running it: the facts about its ashlars, the paths through its leaves, the questions it
// can ask, and the input it needs.
package tree

import (
	"iter"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
)

// Questions lists the questions that p can ask, in tree order. Each ashlar is visited once. For the questions of a tool, only the
// name is known.
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

// Children yields the children of a as they appear in the paths of a run: a reduce is replaced with the ashlar that it wraps, and
// glue with the ashlars below it. The first value is the child's number among children with the same name, counted from 1.
func Children(a stone.Ashlar) iter.Seq2[int, stone.Ashlar] {
	return func(yield func(int, stone.Ashlar) bool) {
		children(a, stone.Ashlar{}, func(n int, c, _ stone.Ashlar) bool { return yield(n, c) })
	}
}

// A Child is a child with its number. Guard is the match in the glue around it, or zero if there is none.
type Child struct {
	stone.Ashlar
	Occurrence int
	Guard      stone.Ashlar
}

// Guarded yields the same children as Children.
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

// Body returns the ashlar that a reduce wraps, which has the same path. It returns any other ashlar unchanged.
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

// Facts yields the facts about an ashlar other than its name, types and effects, such as an agent's model, prompts, tools and
// limits, or a call's intent. It yields names and values in display order. A name may occur several times.
func Facts(a stone.Ashlar) iter.Seq2[string, string] {
	if facts := a.Detail().Facts; facts != nil {
		return facts()
	}
	return func(func(string, string) bool) {}
}
