package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem describes one fault of a value or a schema, and its place.
type Problem struct {
	Path    string // such as items[3].price; "" is the root; [*] means every item or value
	Message string // the requirement, and the value found
}

// String returns the path and the message on one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// ValidationError reports a value that does not fit a schema.
type ValidationError struct {
	Problems []Problem // sorted by place; at least one, at most 100
}

// Error returns one line: the first problem and the number of others.
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

// Detail returns all problems, one per line, for a model that repairs its answer.
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

// joinPath appends a path to the name of the property or the brackets before it.
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
	// pathLength is the maximum number of steps of a path.
	pathLength = 64
	// maxProblems is the maximum number of problems of one value.
	maxProblems = 100
)

// describe returns the kind of v and, if short, its value. The value may come from a schema's tree or from a decoded document.
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

// oneOf lists alternatives: "a", "b" or "c". Null comes last.
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
