package stone

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/stonelayer/stone/kind"
)

// A Finding is something that Validate has to say. Its types are, of errors,
//
//   - what is read: missing-producer, schema-mismatch, invalid-lens,
//     fanout-not-reduced, lane-type-read-as-one
//   - what is named: duplicate-name, duplicate-branch, duplicate-question,
//     missing-branch, unreachable-branch, no-name
//   - what is made: nil-ashlar, nil-body, empty-composite, bad-option,
//     bad-type, bad-branch, bad-walk, bad-detail
//   - what is allowed: effect-not-granted
//
// and of warnings maybe-unavailable, unused-produce, lanes-may-be-lost and
// nothing-to-reduce. What Detail attached to a
// leaf may have types of its own.
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
	line := fmt.Sprintf("[%s] %s: %s", f.Type, cmp.Or(f.Ashlar, `""`), f.Message)
	if f.Suggestion != "" {
		line += fmt.Sprintf("; did you mean %q?", f.Suggestion)
	}
	if f.Path != "" && f.Path != f.Ashlar {
		line += fmt.Sprintf(" (at %s)", f.Path)
	}
	return oneLine(line)
}

// oneLine escapes what is not to be seen, which a name can bring along: line
// breaks, terminal controls, changes of direction.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsGraphic(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToGraphic(r), "'"))
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

// Invalid is the error of a pipeline, or of what RunDynamic is given, that is
// refused before anything of it runs.
type Invalid struct{ Findings Findings }

// FailureKind returns the kind of a failure to run something that is invalid.
func (e *Invalid) FailureKind() string { return string(kind.Invalid) }

// Error returns the first error and how many more there are.
func (e *Invalid) Error() string {
	errs := e.Findings.Errors()
	if len(errs) == 1 {
		return "pipeline is invalid: " + errs[0].String()
	}
	return fmt.Sprintf("pipeline is invalid: %s (and %d more)", errs[0], len(errs)-1)
}
