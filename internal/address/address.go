// Package address writes and parses the addresses of steps in a run.
//
// An address such as
//
//	review/loop[2]/vote[17]/draft@2~3
//
// identifies one execution of an ashlar, called a visit. It consists of segments separated by slashes. A segment is the name of
// an ashlar or a step, followed by marks that distinguish its visits:
//
//	#2 the second child with this name
//	@2 the second visit to a child that a body runs, or to a step
//	[2]   round or lane 2, counted from 0
//	["a"] the branch of a match for a value, written as canonical JSON
//	~2 the second attempt at a leaf
//
// In names and values, the characters / [ ] # @ ~ % are written as % and two hexadecimal digits, so that they are not parsed as
// marks.
package address

import (
	"iter"
	"strconv"
	"strings"
)

const marks = "/[]#@~%"

// Escape returns name in the form in which addresses contain it.
func Escape(name string) string {
	if !strings.ContainsAny(name, marks) {
		return name
	}
	return string(AppendName(nil, name))
}

// AppendName appends Escape(name) to b.
func AppendName(b []byte, name string) []byte {
	if !strings.ContainsAny(name, marks) {
		return append(b, name...)
	}
	const digits = "0123456789ABCDEF"
	for i := range len(name) {
		if c := name[i]; strings.IndexByte(marks, c) >= 0 {
			b = append(b, '%', digits[c>>4], digits[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}

// Unescape returns the name from which Escape made s. A % that Escape cannot have written is left unchanged.
func Unescape(name string) string {
	if strings.IndexByte(name, '%') < 0 {
		return name
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			if c, err := strconv.ParseUint(name[i+1:i+3], 16, 8); err == nil && strings.IndexByte(marks, byte(c)) >= 0 {
				b = append(b, byte(c))
				i += 2
				continue
			}
		}
		b = append(b, name[i])
	}
	return string(b)
}

// Child returns the address of the child with the given name below path. Occurrence, counted from 1, distinguishes children with
// the same name.
func Child(path, name string, occurrence int) string {
	path += "/" + Escape(name)
	if occurrence > 1 {
		path += "#" + strconv.Itoa(occurrence)
	}
	return path
}

// Segments returns the escaped segments of an address.
func Segments(path string) iter.Seq[string] { return strings.SplitSeq(path, "/") }

// Parent returns the address without its last segment, or "" if the address has only one segment.
func Parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// Last returns the last segment of an address.
func Last(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Within reports whether path is the address of a step, round, lane, branch or attempt inside outer. An address is not within
// itself.
func Within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && rest != "" && strings.IndexByte("/[~", rest[0]) >= 0
}

// Place returns the place in the pipeline to which an address belongs: the address without rounds, lanes, branches, visits and
// attempts.
func Place(path string) string {
	if !strings.ContainsAny(path, "[@~") {
		return path
	}
	b := make([]byte, 0, len(path))
	for segment := range Segments(path) {
		s := Parse(segment)
		if len(b) > 0 {
			b = append(b, '/')
		}
		b = append(b, s.written...)
		if s.Occurrence > 1 {
			b = strconv.AppendInt(append(b, '#'), int64(s.Occurrence), 10)
		}
	}
	return string(b)
}

// Before reports whether a precedes b: the first difference between the addresses is the number of a round or a lane, and the
// number in a is lower.
func Before(a, b string) bool {
	for a != "" && b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, "/")
		y, b, _ = strings.Cut(b, "/")
		if x == y {
			continue
		}
		s, t := Parse(x), Parse(y)
		if s.written != t.written || s.Occurrence != t.Occurrence {
			return false
		}
		for i := range min(len(s.Marks), len(t.Marks)) {
			if m, n := s.Marks[i], t.Marks[i]; m != n {
				return m.Kind == Index && n.Kind == Index && m.Number >= 0 && n.Number >= 0 && m.Number < n.Number
			}
		}
		return false
	}
	return false
}

// A Segment is a parsed segment of an address.
type Segment struct {
	Name       string // name of the ashlar or step
	Occurrence int    // number of the child among the children with the same name, counted from 1
	Marks      []Mark // the marks, in the order in which they are written

	written string // the escaped name
}

// A Mark is the part of a segment that distinguishes visits to the same place.
type Mark struct {
	Kind   Kind
	Text   string // number of a round, lane, visit or attempt, or JSON of a branch
	Number int    // Text as a number, or -1 if it is not a number
}

// Kind is the kind of a Mark. Its value is the first character of the mark.
type Kind byte

// The kinds of marks.
const (
	Index   Kind = '[' // a round, a lane or a branch
	Visit   Kind = '@'
	Attempt Kind = '~'
)

// Parse parses a segment. It never fails: characters that do not begin a mark belong to the name or mark before them.
func Parse(segment string) Segment {
	end := strings.IndexAny(segment, "#[@~")
	if end < 0 {
		end = len(segment)
	}
	s := Segment{Name: Unescape(segment[:end]), Occurrence: 1, written: segment[:end]}
	for rest := segment[end:]; rest != ""; {
		kind, text := rest[0], rest[1:]
		if kind == '[' {
			text, rest, _ = strings.Cut(text, "]")
		} else if end = strings.IndexAny(text, "#[@~"); end >= 0 {
			text, rest = text[:end], text[end:]
		} else {
			rest = ""
		}
		n, err := strconv.Atoi(text)
		switch {
		case err != nil:
			n = -1
		case kind == '#':
			s.Occurrence = n
			continue
		}
		s.Marks = append(s.Marks, Mark{Kind(kind), Unescape(text), n})
	}
	return s
}

// Number returns the number of the segment's first round or lane. It returns -1 if the segment has no mark of kind Index, or if
// the first is a branch.
func (s Segment) Number() int {
	for _, m := range s.Marks {
		if m.Kind == Index {
			return m.Number
		}
	}
	return -1
}
