package stone

import "slices"

// Describe returns a with a text that says what it does and what it needs: for the people and
// the models that choose among published pipelines. It is part of no fingerprint.
func (a Ashlar) Describe(text string) Ashlar {
	s := &spec{parts: a.spec().parts}
	s.about = text
	return Ashlar{s}
}

// Description returns the text of Describe.
func (a Ashlar) Description() string { return a.spec().about }

// Names returns the name of every ashlar of a, parents first, once for each place.
// Ashlars without a name are left out. Compare the names with the ashlars of a package to
// find an unused one.
func (a Ashlar) Names() []string {
	var names []string
	if a.Name() != "" && a.Form() != "reduce" && !a.IsZero() && !a.IsGlue() { // a reduce has the name of its body
		names = append(names, a.Name())
	}
	for _, c := range a.Children() {
		names = append(names, c.Names()...)
	}
	return names
}

// Undeclared returns the names, each once, of the leaves in a, and of the tools and capabilities they may use, that
// declare no effects: their effects are unknown. [Effects] without arguments declares none.
func (a Ashlar) Undeclared() (names []string) {
	seen := map[*spec]bool{}
	var of func(Ashlar) []string
	of = func(a Ashlar) (own []string) {
		a.each(func(s *spec) {
			if !seen[s] {
				seen[s] = true
				own = append(own, s.undeclared(of)...)
			}
		})
		return own
	}
	for _, name := range of(a) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (s *spec) undeclared(of func(Ashlar) []string) []string {
	if s.form != leafForm || s.question != nil || s.glue {
		return nil
	}
	if undeclared := s.said().Undeclared; undeclared != nil {
		return undeclared(of)
	}
	if s.effects == nil {
		return []string{s.name}
	}
	return nil
}
