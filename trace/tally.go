package trace

import (
	"cmp"
	"io"
	"iter"
	"slices"
	"strings"
)

// A Count is the number of events of one type. The type is "" for events without one.
type Count struct {
	Type string
	N    int
}

// Tally counts events by type: the most frequent first, equal counts by name, and the
// total. The errors among the events are returned in their order.
func Tally(events iter.Seq2[Event, error]) (counts []Count, total int, bad []error) {
	c := make(counter)
	for e, err := range events {
		if err != nil {
			bad = append(bad, err)
			continue
		}
		c.add([]byte(e.Type()))
	}
	counts, total = c.sorted()
	return counts, total, bad
}

// TallyReader returns the same as Tally(Read(r)), several times faster: it scans the
// bytes and decodes only lines of an unusual form.
func TallyReader(r io.Reader) (counts []Count, total int, bad []error) {
	counts, total = tallyLines(r, func(err error) { bad = append(bad, err) })
	return counts, total, bad
}

func tallyLines(r io.Reader, bad func(error)) (counts []Count, total int) {
	c := make(counter)
	for l, err := range lines(r, maxLine) {
		if err != nil {
			bad(err)
			continue
		}
		if typ, ok := scanType(l.text); ok {
			c.add(typ)
			continue
		}
		e, err := l.parse()
		if err != nil {
			bad(err)
			continue
		}
		c.add([]byte(e.Type()))
	}
	return c.sorted()
}

// A counter holds pointers because looking up a []byte as a key does not
// allocate, but assigning under it does.
type counter map[string]*int

func (c counter) add(typ []byte) {
	n := c[string(typ)]
	if n == nil {
		n = new(int)
		c[string(typ)] = n
	}
	*n++
}

func (c counter) sorted() (counts []Count, total int) {
	for typ, n := range c {
		counts = append(counts, Count{typ, *n})
		total += *n
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Type, b.Type))
	})
	return counts, total
}
