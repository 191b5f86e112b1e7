package plan

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
)

// A place is a position in a plan. Its path is built only when a finding needs it.
type place struct {
	up    *place
	key   string
	index int // index in a list; used if the key is empty
	value edn.Value
}

func (p *place) field(key string, v edn.Value) *place {
	return &place{up: p, key: key, value: v}
}

func (p *place) item(i int, v edn.Value) *place {
	return &place{up: p, index: i, value: v}
}

// path returns the path to the place, such as nodes[2].input.t.
func (p *place) path() string {
	switch {
	case p == nil:
		return ""
	case p.key == "" && p.up != nil:
		return p.up.path() + "[" + strconv.Itoa(p.index) + "]"
	}
	if up := p.up.path(); up != "" {
		return up + "." + p.key
	}
	return p.key
}

// report collects the findings about a plan.
type report struct {
	findings stone.Findings
	seen     map[[4]string]bool
}

// most is the maximum number of findings about a plan. Each finding scans the text for its line, so without a limit, hostile text
// full of faults would take quadratic time.
const most = 1000

func (r *report) full() bool { return len(r.findings) >= most }

func (r *report) add(f stone.Finding) {
	f.Ashlar = cmp.Or(f.Ashlar, "plan")
	key := [4]string{string(f.Type), f.Path, f.Queried, f.Ashlar}
	if f.Queried == "" {
		key[2] = f.Message
	}
	if r.seen == nil {
		r.seen = map[[4]string]bool{}
	}
	if r.seen[key] || r.full() {
		return
	}
	r.seen[key] = true
	r.findings = append(r.findings, f)
}

// find adds the finding f, with the given place and message.
func (r *report) find(at *place, f stone.Finding, format string, args ...any) {
	if r.full() {
		return
	}
	f.Path = at.path()
	f.Message = located(at, fmt.Sprintf(format, args...))
	r.add(f)
}

// located returns message, preceded by the line and the column of the place if they are known.
func located(at *place, message string) string {
	if at == nil {
		return message
	}
	if line, column := at.value.Position(); line > 0 {
		return fmt.Sprintf("%d:%d: %s", line, column, message)
	}
	return message
}

// Types of findings that package stone does not define.
const (
	unknownOp     = "unknown-op"
	unknownField  = "unknown-field"
	reservedName  = "reserved-name"
	tooLarge      = "too-large"
	badExpression = "bad-expression"
	badValue      = "bad-value"
	missingField  = "missing-field"
	badSyntax     = "bad-syntax"
)

// faults adds a finding for each of the faults.
func (r *report) faults(faults form.Faults) {
	for _, f := range faults {
		typ := badValue
		switch f.Kind {
		case form.UnknownKey:
			typ = unknownField
		case form.Missing:
			typ = missingField
		case unknownOp, badExpression, "missing-until", "missing-max", "duplicate-branch":
			typ = f.Kind
		}
		message := f.Message
		if f.Line > 0 {
			message = fmt.Sprintf("%d:%d: %s", f.Line, f.Column, message)
		}
		r.add(stone.Finding{Type: typ, Path: f.Path, Message: message, Suggestion: f.Suggestion})
	}
}
