package stone

import (
	"iter"
	"slices"
)

// Describe returns a with a text that says what it does and what it needs: for the people and
// the models that choose among published pipelines. It is part of no fingerprint.
func (a Ashlar) Describe(text string) Ashlar {
	s := &spec{parts: a.spec().parts}
	s.about = text
	return Ashlar{s}
}

// Description returns the text of Describe.
func (a Ashlar) Description() string { return a.spec().about }

// Undeclared returns the names of the leaves in a, and of the tools and capabilities that they
// may use, which state no effects: each once. What they do to the world is not known. [Effects]
// without arguments states that there are none.
func (a Ashlar) Undeclared() []string {
	var out []string
	a.each(func(s *spec) {
		for name := range s.undeclared() {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	})
	return out
}

func (s *spec) undeclared() iter.Seq[string] {
	if s.form != leafForm || s.question != nil || s.glue {
		return func(func(string) bool) {}
	}
	if uses, ok := s.detail.(interface{ Undeclared() []string }); ok {
		return slices.Values(uses.Undeclared())
	}
	return func(yield func(string) bool) {
		if s.effects == nil {
			yield(s.name)
		}
	}
}
