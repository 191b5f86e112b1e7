package trace

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/jsonv2"
)

// A Count is the number of events of one type.
type Count struct {
	Type string
	N    int
}

// Tally counts the events of a trace file by type: the most frequent first, equal counts by name, and
// the total. It checks that a line is JSON, and decodes it only if the type is not at its beginning.
// Other lines are reported with the errors of [Read], in file order.
func Tally(r io.Reader) (counts []Count, total int, bad []error) {
	counts, total = tally(r, func(err error) { bad = append(bad, err) })
	return counts, total, bad
}

func tally(r io.Reader, bad func(error)) (counts []Count, total int) {
	c := make(counter)
	var in jsonv2.Scanner
	for l, err := range lines(r, maxLine) {
		if err != nil {
			bad(err)
			continue
		}
		if typ, ok := typeOf(&in, l.text); ok {
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

// typeOf returns the type at the beginning of a line that is JSON. It is not sure of a type with
// escapes.
func typeOf(in *jsonv2.Scanner, text []byte) (typ []byte, ok bool) {
	rest, ok := bytes.CutPrefix(text, []byte(`{"event":"`))
	typ, _, closed := bytes.Cut(rest, []byte{'"'})
	return typ, ok && closed && bytes.IndexByte(typ, '\\') < 0 && in.Valid(text)
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
