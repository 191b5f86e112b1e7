package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/redact"
)

// Invalid is the error of a configuration that cannot be used, with all its faults in
// the order of the text.
type Invalid struct {
	File   string
	Faults form.Faults
}

// Lines returns the faults, each as file:line:column: path: message.
func (e *Invalid) Lines() []string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = e.line(f)
	}
	return lines
}

func (e *Invalid) line(f form.Fault) string {
	if f.Line == 0 {
		return e.File + ": " + f.Error()
	}
	return e.File + ":" + f.Error()
}

// Error returns the first fault and the number of others, on one line.
func (e *Invalid) Error() string {
	line := e.line(e.Faults[0])
	if n := len(e.Faults) - 1; n > 0 {
		line += fmt.Sprintf(" (and %d more: stone config check lists them)", n)
	}
	return line
}

// invalid is the error for faults, nil for none.
func invalid(file string, faults form.Faults) error {
	if len(faults) == 0 {
		return nil
	}
	for i := range faults {
		f := &faults[i]
		name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
		if f.Kind == form.UnknownKey && redact.Secretive(name) {
			f.Message, f.Suggestion = fmt.Sprintf("unknown field %s: %s", name, kinds.NoSecret), ""
		}
	}
	slices.SortStableFunc(faults, func(a, b form.Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	// A value that is checked twice, for itself and for its references, has one fault.
	return &Invalid{file, slices.Compact(faults)}
}
