// Package finding defines the results of stone.Validate.
package finding

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/stonelayer/stone/kind"
)

// A Code is the kind of a finding, for programs: "missing-producer". The page
// docs/reference/findings.md lists them.
type Code string

// A Finding is one error or warning about a pipeline.
type Finding struct {
	Type    Code   `json:"type"`              // for programs: "missing-producer"
	Warning bool   `json:"warning,omitempty"` // the pipeline may run nevertheless
	Ashlar  string `json:"ashlar"`            // the name of the ashlar at fault
	Path    string `json:"path"`              // its address in the tree
	Queried string `json:"queried,omitempty"` // the type, or the field of a lens, at fault
	Message string `json:"message"`           // what is wrong and what to do
	// Suggestion is the most similar valid name, such as the name of a type, or "".
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

// oneLine escapes the invisible characters of names: line breaks, terminal controls,
// changes of direction.
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

// List has the findings of a validation, in the order of the tree.
type List []Finding

// Errors returns the findings that prevent a run.
func (fs List) Errors() List { return fs.filter(false) }

// Warnings returns the findings that do not prevent a run.
func (fs List) Warnings() List { return fs.filter(true) }

func (fs List) filter(warning bool) List {
	var out List
	for _, f := range fs {
		if f.Warning == warning {
			out = append(out, f)
		}
	}
	return out
}

// Err returns an *Invalid with all findings if one of them is an error.
func (fs List) Err() error {
	if len(fs) == 0 || len(fs.Errors()) == 0 {
		return nil
	}
	return &Invalid{fs}
}

// Invalid is the error of a pipeline, or an ashlar given to RunDynamic, that is rejected
// before any part of it runs.
type Invalid struct{ Findings List }

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
