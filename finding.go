package stone

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Finding is something that Validate has to say.
type Finding struct {
	Type    string `json:"type"`              // as "missing-producer"
	Warning bool   `json:"warning,omitempty"` // the pipeline may run all the same
	Ashlar  string `json:"ashlar"`            // the name of the ashlar at fault
	Path    string `json:"path"`              // where it stands in the tree
	Queried string `json:"queried,omitempty"` // the type, or the field of a lens, at fault
	Message string `json:"message"`           // what is wrong and what to do
	// Suggestion is what was probably meant, as the name of a type; "" if
	// nothing is close.
	Suggestion string `json:"suggestion,omitempty"`
}

// String returns the finding on one line: [type] ashlar: message.
func (f Finding) String() string {
	line := fmt.Sprintf("[%s] %s: %s", f.Type, f.Ashlar, f.Message)
	if f.Suggestion != "" {
		line += fmt.Sprintf("; did you mean %q?", f.Suggestion)
	}
	if f.Path != f.Ashlar {
		line += fmt.Sprintf(" (at %s)", f.Path)
	}
	return oneLine(line)
}

// oneLine escapes control characters, which a name can bring along.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Findings is the outcome of a validation, in the order of the tree.
type Findings []Finding

// Errors returns the findings with which a pipeline is refused.
func (fs Findings) Errors() Findings { return fs.those(false) }

// Warnings returns the findings with which a pipeline may run.
func (fs Findings) Warnings() Findings { return fs.those(true) }

func (fs Findings) those(warning bool) Findings {
	var out Findings
	for _, f := range fs {
		if f.Warning == warning {
			out = append(out, f)
		}
	}
	return out
}

// Err returns an *Invalid with all findings if one of them is an error.
func (fs Findings) Err() error {
	if len(fs) == 0 || len(fs.Errors()) == 0 {
		return nil
	}
	return &Invalid{fs}
}

// Invalid is the error of a pipeline that is refused before anything runs.
type Invalid struct{ Findings Findings }

// Error returns the first error and how many more there are.
func (e *Invalid) Error() string {
	errs := e.Findings.Errors()
	if len(errs) == 1 {
		return "pipeline is invalid: " + errs[0].String()
	}
	return fmt.Sprintf("pipeline is invalid: %s (and %d more)", errs[0], len(errs)-1)
}

// closest returns the candidate that was probably meant by name, or "".
func closest(name string, candidates iter.Seq[string]) string {
	runes := []rune(name)
	best, bound := "", max(1, len(runes)/3)+1
	for c := range candidates {
		switch {
		case c == name:
		case strings.EqualFold(c, name):
			return c
		default:
			if d := distance(runes, c, bound); d < bound {
				best, bound = c, d
			}
		}
	}
	return best
}

// distance is the Levenshtein distance, or bound if it is not below that.
func distance(a []rune, b string, bound int) int {
	n := utf8.RuneCountInString(b)
	if max(len(a)-n, n-len(a)) >= bound {
		return bound
	}
	column := make([]int, len(a)+1)
	for i := range column {
		column[i] = i
	}
	j := 0
	for _, rb := range b {
		diagonal := column[0]
		j++
		column[0] = j
		least := j
		for i, ra := range a {
			cost := diagonal
			if ra != rb {
				cost++
			}
			diagonal = column[i+1]
			column[i+1] = min(cost, column[i]+1, diagonal+1)
			least = min(least, column[i+1])
		}
		if least >= bound {
			return bound
		}
	}
	return column[len(a)]
}
