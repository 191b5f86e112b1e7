package canon

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/stonelayer/stone/internal/bounds"
)

// An Error reports that a part of a value, a type or a JSON text has no canonical form.
type Error struct {
	// Path leads from the whole value to the part, such as items[3].price. It is empty for the whole value. Keys that are not
	// identifiers are quoted, such as headers["content-type"]; [] means any element of a type. The middle of a very long path is
	// omitted.
	Path string
	// Reason says, on one line, what is wrong and, in some cases, what to do.
	Reason string
}

// Error returns the path and the reason on one line.
func (e *Error) Error() string {
	if e.Path == "" {
		return "cannot be canonical JSON: " + e.Reason
	}
	return "cannot be canonical JSON: " + e.Path + ": " + e.Reason
}

// fault is an Error while it is being returned: each level adds its own path segment, so keeping track of the path costs nothing
// in successful calls.
type fault struct {
	segments []string // innermost first
	reason   string
}

func faultf(format string, args ...any) *fault {
	return &fault{reason: fmt.Sprintf(format, args...)}
}

func (f *fault) inKey(key string) *fault {
	f.segments = append(f.segments, keySegment(key))
	return f
}

func (f *fault) inIndex(i int) *fault {
	f.segments = append(f.segments, "["+strconv.Itoa(i)+"]")
	return f
}

func (f *fault) inElem() *fault {
	f.segments = append(f.segments, "[]")
	return f
}

// pathEnds is the number of segments kept at either end of a long path, so that a list nested ten thousand levels deep does not
// produce a message of a megabyte.
const pathEnds = 8

func (f *fault) err() *Error {
	segments := slices.Clone(f.segments)
	slices.Reverse(segments)
	if n := len(segments); n > 2*pathEnds+1 {
		middle := fmt.Sprintf("…(%d levels)…", n-2*pathEnds)
		segments = slices.Concat(segments[:pathEnds], []string{middle}, segments[n-pathEnds:])
	}
	return &Error{
		Path:   strings.TrimPrefix(strings.Join(segments, ""), "."),
		Reason: strings.NewReplacer("\n", " ", "\r", " ").Replace(f.reason),
	}
}

func keySegment(key string) string {
	key = shorten(key)
	if isIdentifier(key) {
		return "." + key
	}
	return "[" + strconv.Quote(key) + "]"
}

func isIdentifier(key string) bool {
	for i, r := range key {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return key != ""
}

// shorten returns text, cut to the maximum length of a value quoted in a message.
func shorten(s string) string { return bounds.Cut(s, 60) }
