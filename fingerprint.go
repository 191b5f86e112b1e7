package stone

import (
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/stonelayer/stone/dag"
)

// Fingerprint returns a digest of everything that is visible of a from outside: forms,
// names, types, schemas, queries, branches, bounds, versions, choices of questions and
// fingerprints of details, down to the leaves. It does not cover the code of functions:
// change a leaf's Version with its body.
func (a Ashlar) Fingerprint() dag.ID {
	s := a.spec()
	f := s.found()
	f.printOnce.Do(func() {
		h := sha256.New()
		s.describe(h)
		for _, c := range s.children {
			print := c.Fingerprint()
			h.Write(print[:])
		}
		f.print = dag.ID(h.Sum(nil))
	})
	return f.print
}

// describe writes everything about s but its children.
func (s *spec) describe(w io.Writer) {
	fmt.Fprintf(w, "%s %q %q %q %q", formNames[s.form], s.name, s.keys, s.lens, s.version)
	fmt.Fprintf(w, " %d %d %d %t", s.max, s.lanes, s.quorum, s.allLanes)
	if s.glue {
		fmt.Fprint(w, " glue")
	}
	if s.allowEmpty {
		fmt.Fprint(w, " empty")
	}
	for t := range s.produces() {
		describeType(w, t)
	}
	for _, q := range s.queries {
		fmt.Fprintf(w, " %s", q)
		describeType(w, q.Type())
	}
	if s.question != nil {
		fmt.Fprintf(w, " asks %q", s.question.Choices)
		if s.mayDecline {
			fmt.Fprint(w, " may decline")
		}
	}
	if own := s.said().Fingerprint; own != nil {
		fmt.Fprintf(w, " %x", sha256.Sum256(own()))
	}
	fmt.Fprintln(w)
}

func describeType(w io.Writer, t dag.AnyType) {
	if t != nil {
		fmt.Fprintf(w, " %q %s", t.Name(), t.Schema().JSON())
	}
}

// found has facts derived from a spec on first use.
type found struct {
	accepted  atomic.Pointer[map[string]bool] // the input types that it last accepted, see accept
	printOnce sync.Once
	print     dag.ID
	countOnce sync.Once // guards counts, see occurrence
	counts    []int

	readsOnce sync.Once // guards reads, of a leaf with children
	reads     []dag.Query

	courseOnce sync.Once // guards course, of a flow
	course     *course
}
