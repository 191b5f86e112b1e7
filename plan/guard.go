package plan

import (
	"strconv"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/edn"
)

// A guard decides whether a node runs, or whether a loop ends.
type guard struct {
	form guardForm
	name string // slot that must be present or failed
	text string // text of the expression
	at   *place
}

type guardForm uint8

const (
	never guardForm = iota
	always
	present
	failed
	expression
)

const (
	isPresent = "present?"
	isFailed  = "failed?"
)

// guard returns the guard at a place. If its form is unknown, guard adds a finding and returns a guard that never holds.
func (r *report) guard(at *place) *guard {
	g := &guard{at: at}
	switch v := at.value; v.Kind() {
	case edn.KindBool:
		if b, _ := v.Bool(); b {
			g.form = always
		}
		return g
	case edn.KindString:
		g.form, g.text = expression, v.Text()
		return g
	case edn.KindMap:
		for key, e := range v.Entries() {
			form, ok := map[string]guardForm{isPresent: present, isFailed: failed}[nameOf(key)]
			name, named := e.Name()
			if ok && named && v.Len() == 1 {
				g.form, g.name = form, name
				return g
			}
		}
	}
	r.find(at, stone.Finding{Type: badExpression}, "expected true, false, {:present? :slot}, {:failed? :slot} or an expression as a string")
	return g
}

func nameOf(v edn.Value) string {
	name, _ := v.Name()
	return name
}

// String returns the guard as text. The text is the same for equivalent guards.
func (g *guard) String() string {
	switch g.form {
	case always:
		return "true"
	case present:
		return isPresent + " " + g.name
	case failed:
		return isFailed + " " + g.name
	case expression:
		return strconv.Quote(g.text)
	}
	return "false"
}
