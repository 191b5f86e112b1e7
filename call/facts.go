package call

import (
	"iter"
	"strings"
)

// facts ranges over the facts of a call for people, see tree.Facts. The capabilities that would be asked depend on the
// run: see Applicator.Candidates.
func (c *caller) facts() iter.Seq2[string, string] {
	s := &c.spec
	candidates := strings.Join(s.Dispatch.Candidates, ", ")
	if s.open() {
		candidates = "named by a value of the run"
	}
	facts := [][2]string{
		{"intent", s.Intent}, {"tool", s.Tool}, {"capability", s.Cap},
		{"candidates", candidates},
	}
	return func(yield func(string, string) bool) {
		for _, f := range facts {
			if f[1] != "" && !yield(f[0], f[1]) {
				return
			}
		}
		s.Admit.facts(yield)
	}
}
