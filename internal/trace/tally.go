package trace

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/internal/lines"
)

// A Count counts the events of one type.
type Count struct {
	Type string
	N    int
}

// tally counts the events of a trace file by type, and returns the counts and their total. The most frequent type comes first, and
// equal counts are sorted by name. Tally checks that each line is JSON, but decodes the line only if the type is not at its
// beginning. For other lines it calls bad with the errors of [event.Read], in file order.
func tally(r io.Reader, bad func(error)) (counts []Count, total int) {
	c := make(counter)
	var in jsonv2.Scanner
	for l, err := range lines.Read(r, lines.Max) {
		if err != nil {
			bad(err)
			continue
		}
		if l.Fault != "" {
			bad(&event.LineError{Line: l.Number, Reason: l.Fault})
			continue
		}
		if typ, ok := typeOf(&in, l.Text); ok {
			c.add(typ)
			continue
		}
		for e, err := range event.Read(bytes.NewReader(l.Text)) {
			if err == nil {
				c.add([]byte(e.Type()))
				continue
			}
			if of, ok := errors.AsType[*event.LineError](err); ok {
				of.Line = l.Number
			}
			bad(err)
		}
	}
	return c.sorted()
}

// typeOf returns the type at the beginning of a line that is JSON. It returns false if the type is elsewhere or contains escapes.
func typeOf(in *jsonv2.Scanner, text []byte) (typ []byte, ok bool) {
	rest, ok := bytes.CutPrefix(text, []byte(`{"event":"`))
	typ, _, closed := bytes.Cut(rest, []byte{'"'})
	return typ, ok && closed && bytes.IndexByte(typ, '\\') < 0 && in.Valid(text)
}

// A counter maps types to pointers, because looking up a []byte key does not allocate memory, but assigning to it does.
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
