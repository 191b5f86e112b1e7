package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem describes one problem with a value or a schema, and where it is.
type Problem struct {
	Path    string // path such as items[3].price; "" means the root, and [*] every item or value
	Message string // what is required and what was found
}

// String returns one line with the path and the message.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// ValidationError reports that a value does not match a schema.
type ValidationError struct {
	Problems []Problem // at least one and at most 100, sorted by place
}

// Error returns one line with the first problem and the number of other problems.
func (e *ValidationError) Error() string {
	switch n := len(e.Problems); n {
	case 0:
		return "does not fit the schema"
	case 1:
		return "does not fit the schema: " + e.Problems[0].String()
	default:
		return fmt.Sprintf("does not fit the schema: %s (and %d more)", e.Problems[0], n-1)
	}
}

// Detail returns all problems, one per line. It is meant for a model that is to correct its answer.
func (e *ValidationError) Detail() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
		if p.Path == "" {
			lines[i] = "(root): " + p.Message
		}
	}
	return strings.Join(lines, "\n")
}

// joinPath joins two parts of a path, with a dot between them if the second is not in brackets.
func joinPath(head, tail string) string {
	if head == "" || tail == "" || tail[0] == '[' {
		return head + tail
	}
	return head + "." + tail
}

// propertyPath returns the path element of a property: its name, or ["its name"] if it is not a plain word.
func propertyPath(name string) string {
	plain := name != ""
	for _, c := range name {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c < utf8.RuneSelf {
			plain = false
		}
	}
	if plain {
		return name
	}
	return "[" + strconv.Quote(name) + "]"
}

const (
	// shownLength is the maximum length of a value in a message, in characters.
	shownLength = 60
	// messageLength is the maximum length of a message, in characters.
	messageLength = 1000
	// pathLength is the maximum number of steps per path.
	pathLength = 64
	// maxProblems is the maximum number of problems per value.
	maxProblems = 100
)

// describe returns the kind of v and, if it is short, the value itself. v may come from the tree of a schema or from a decoded
// document.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return "string " + shorten(strconv.Quote(v))
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return "number " + shorten(string(v))
		}
		return "integer " + shorten(string(v))
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case *object, map[string]any:
		return "an object"
	}
	return fmt.Sprintf("a %T", v)
}

// literal returns a value as JSON text, shortened if necessary.
func literal(v any) string {
	if text, ok := v.(string); ok {
		return shorten(strconv.Quote(text))
	}
	text, err := json.Marshal(v)
	if err != nil {
		return describe(v)
	}
	return shorten(string(text))
}

func shorten(s string) string { return cut(s, shownLength) }

// cut returns at most n characters of s, ending in an ellipsis if s was cut.
func cut(s string, n int) string {
	runes, end := 0, 0
	for at := range s {
		if runes++; runes == n {
			end = at
		}
		if runes > n {
			return s[:end] + "…"
		}
	}
	return s
}

// oneOf returns a list of alternatives in words, such as "a, b or c". Null comes last.
func oneOf(words []string) string {
	words = slices.Clone(words)
	slices.SortStableFunc(words, func(a, b string) int {
		if a != b && b == "null" {
			return -1
		}
		if a != b && a == "null" {
			return 1
		}
		return 0
	})
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

func literals(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = literal(v)
	}
	return oneOf(words)
}
