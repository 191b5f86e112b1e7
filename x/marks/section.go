package marks

import (
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/kinds"
)

// Part adds the section marks to the configuration of a program; see cli.Part.
var Part = kinds.Kind{Name: "marks", Section: "marks", ReadSection: read}

// read reads the section of a configuration.
func read(r *kinds.Reader, m *form.Map) {
	policy := Policy{}
	m.At("marks").Entries(func(name string, v form.Value) {
		var mark Mark
		v.Map(func(m *form.Map) {
			m.Need("from", "may")
			m.At("from").NameSet(&mark.From)
			if v := m.At("may"); v.NameSet(&mark.May) {
				for _, name := range mark.May {
					if grants.Check(name) != nil {
						v.Unknown("effect", name, grants.Known()...)
					}
				}
			}
			m.At("lift").NameSet(&mark.Lift)
		})
		policy[name] = mark
	})
	if len(policy) > 0 {
		r.Policy = policy
	}
}
