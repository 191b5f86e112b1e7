package config

import (
	"maps"
	"slices"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
)

// kinds read the fields that are each kind's own.
var kinds = map[string]func(*reader, *form.Map, *Reached) builder{
	"llm":     (*reader).llm,
	"command": (*reader).command,
	"http":    (*reader).http,
	"mcp":     (*reader).mcp,
	"solver":  (*reader).solver,
	"chess":   (*reader).chess,
	"plan":    (*reader).plan,
}

// builder makes a capability of its metadata. It is called when nothing was at fault.
type builder func(call.Metadata) (call.Capability, error)

// readCapabilities reads capabilities by their ids.
func (r *reader) readCapabilities(m *form.Map, key string, reached *[]Reached) *call.Registry {
	var caps []call.Capability
	m.Entries(key, func(id string, v form.Value) {
		r.secrets = nil
		meta, at := call.Metadata{ID: id}, Reached{ID: id}
		var build builder
		good := v.Map(func(m *form.Map) {
			call.ReadMetadata(m, &meta)
			for _, key := range []string{"io/in-schema", "io/out-schema"} {
				if name, ok := m.Field(key); ok {
					r.checkEach(name, "schema", r.schemaNames())
				}
			}
			if intents, ok := m.Field("cap/intents"); ok && r.App.Intents != nil {
				r.checkEach(intents, "intent", append(r.intentNames(), call.EvalGrade))
			}
			m.Need("cap/kind")
			if of := kinds[meta.Kind]; of != nil {
				build = of(r, m, &at)
				return
			}
			m.AllowRest()
			if kind, ok := m.Field("cap/kind"); ok && meta.Kind != "" {
				kind.Unknown("kind", meta.Kind, slices.Sorted(maps.Keys(kinds))...)
			}
		})
		if !good {
			return
		}
		at.priced(r, &meta)
		c, err := build(meta)
		if err == nil {
			err = c.Check()
		}
		if err != nil {
			v.Fault(form.Invalid, "%v", err)
			return
		}
		at.Secrets = r.secrets
		for _, s := range r.secrets {
			if !slices.Contains(r.Secrets, s) {
				r.Secrets = append(r.Secrets, s)
			}
		}
		caps, *reached = append(caps, c), append(*reached, at)
	})
	return call.NewRegistry(caps...)
}
