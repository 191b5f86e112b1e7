package plan

import (
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
)

// readRequires reads what is required of the answer: in requires, or as
// output.schema.
func readRequires(m *form.Map, n *node) {
	call.ReadParts(m, &n.spec, "requires")
	to := &n.spec.Requires.OutSchema
	m.Map("output", func(m *form.Map) {
		m.Need("schema")
		var name string
		switch ok := m.Name("schema", &name); {
		case !ok:
		case *to != "" && *to != name:
			m.FaultAt("schema", form.Invalid, "output.schema is %q, but requires.out-schema is %q: keep one of them", name, *to)
		default:
			*to = name
		}
	})
}
