package stone

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/stonelayer/stone/kind"
)

// A Finding is one error or warning about a pipeline.
type Finding struct {
	Type    string `json:"type"`              // for programs: "missing-producer"; docs/reference/findings.md lists them
	Warning bool   `json:"warning,omitempty"` // the pipeline may run nevertheless
	Ashlar  string `json:"ashlar"`            // the name of the ashlar at fault
	Path    string `json:"path"`              // its address in the tree
	Queried string `json:"queried,omitempty"` // the type, or the field of a lens, at fault
	Message string `json:"message"`           // what is wrong and what to do
	// Suggestion is the most similar valid name, such as the name of a type, or "".
	Suggestion string `json:"suggestion,omitempty"`
}

// String returns the finding on one line: [type] ashlar: message. It escapes invisible characters of names:
// line breaks, terminal controls, changes of direction.
func (f Finding) String() string {
	line := fmt.Sprintf("[%s] %s: %s", f.Type, cmp.Or(f.Ashlar, `""`), f.Message)
	if f.Suggestion != "" {
		line += fmt.Sprintf("; did you mean %q?", f.Suggestion)
	}
	if f.Path != "" && f.Path != f.Ashlar {
		line += fmt.Sprintf(" (at %s)", f.Path)
	}
	var b strings.Builder
	for _, r := range line {
		if unicode.IsGraphic(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToGraphic(r), "'"))
		}
	}
	return b.String()
}

// Findings are the results of a validation, in the order of the tree.
type Findings []Finding

// Errors returns the findings that prevent a run.
func (fs Findings) Errors() Findings { return fs.filter(false) }

// Warnings returns the findings that do not prevent a run.
func (fs Findings) Warnings() Findings { return fs.filter(true) }

func (fs Findings) filter(warning bool) Findings {
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

// Invalid is the error of a pipeline, or an ashlar given to RunDynamic, that is rejected
// before any part of it runs.
type Invalid struct{ Findings Findings }

// FailureKind returns kind.Invalid.
func (e *Invalid) FailureKind() string { return string(kind.Invalid) }

// Error returns the first error and the number of further ones.
func (e *Invalid) Error() string {
	errs := e.Findings.Errors()
	if len(errs) == 1 {
		return "pipeline is invalid: " + errs[0].String()
	}
	return fmt.Sprintf("pipeline is invalid: %s (and %d more)", errs[0], len(errs)-1)
}
