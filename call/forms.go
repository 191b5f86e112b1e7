package call

import (
	"fmt"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/form"
)

// Plans and configurations contain parts of calls and read them with form.Into.
func init() {
	form.Teach(readParts)
	form.Teach(readApplicator)
	form.Teach(func(m *form.Map, to *Metadata, _ ...string) { readMetadata(m, to) })
	form.Teach(func(m *form.Map, to *budget.Price, _ ...string) { readPrice(m, to) })
	form.Teach(func(m *form.Map, to *Handle, _ ...string) {
		m.AllowRest()
		m.Need("cap/id")
		m.At("cap/id").Name(&to.Cap)
		m.At("requires").Map(to.Requires.read)
		m.At("done").Map(to.Done.read)
	})
	form.Teach(func(m *form.Map, to *Budget, _ ...string) { readBudget(m, to) })
	form.Teach(func(m *form.Map, to *Principal, _ ...string) { readPrincipal(m, to) })
	form.Teach(func(m *form.Map, to *Roles, _ ...string) { readRoles(m, to, "roles") })
}

// readApplicator reads "policy", "routing", "intents" and "schemas".
func readApplicator(m *form.Map, to *Applicator, parts ...string) {
	for _, part := range parts {
		v, ok := m.Field(part)
		if !ok {
			continue
		}
		switch part {
		case "policy":
			v.Map(func(m *form.Map) { readPolicy(m, &to.Policy) })
		case "routing":
			v.Map(func(m *form.Map) { readRouting(m, &to.Policy.Routing) })
		case "intents":
			to.Intents = readIntents(v)
		case "schemas":
			to.Schemas = readSchemas(v)
		default:
			panic(fmt.Sprintf("call: an Applicator has no part %q", part))
		}
	}
}
