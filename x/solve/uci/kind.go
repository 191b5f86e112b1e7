package uci

import (
	"strconv"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
)

// Part adds the kind chess and the check legal-move to a program.
var Part = kinds.Kind{Name: "chess", Read: readKind, Checks: map[string]call.Check{"legal-move": LegalMove}}

func readKind(r *kinds.Reader, m *form.Map, at *kinds.Reached) kinds.Builder {
	c := Config{Options: map[string]string{}}
	m.Need("command")
	c.Command = r.Argv(m, "")
	if len(c.Command) > 0 {
		at.At, at.Command = c.Command[0], c.Command
	}
	m.At("options").Entries(func(name string, v form.Value) {
		if n, ok := v.EDN().Int64(); ok {
			c.Options[name] = strconv.FormatInt(n, 10)
			return
		}
		var text string
		v.Text(&text)
		c.Options[name] = text
	})
	m.At("movetime-ms").Duration(&c.MoveTime)
	c.Scope = r.Scope(m)
	return func(meta call.Metadata) (call.Capability, error) { return New(meta, c), c.Check() }
}
