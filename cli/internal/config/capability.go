package config

import (
	"maps"
	"slices"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/command"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
)

// own maps the built-in kinds to functions that read the fields specific to the kind.
var own = map[string]func(*reader, *form.Map, *kinds.Reached) kinds.Builder{
	"answers": (*reader).answers,
	"llm":     (*reader).llm,
	"command": func(r *reader, m *form.Map, at *kinds.Reached) kinds.Builder {
		c := r.program(m)
		if len(c.Command) > 0 {
			at.At, at.Command = c.Command[0], c.Command
		}
		return func(meta call.Metadata) (call.Capability, error) { return command.New(meta, c), c.Check() }
	},
	"go":   (*reader).golang,
	"http": (*reader).http,
	"plan": (*reader).plan,
}

// kind reads the fields specific to one kind. It is a fault if the kind is unknown or not linked into this program.
func (r *reader) kind(m *form.Map, name string, at *kinds.Reached) kinds.Builder {
	if of := own[name]; of != nil {
		return of(r, m, at)
	}
	field, named := m.Field("cap/kind")
	if name == "solver" {
		var which string
		m.Need("solver")
		if solver, given := m.Field("solver"); !solver.OneOf(&which, "cel", "sat") {
			if given {
				m.AllowRest() // the fields of an unknown kind are unknown
			}
			return nil
		}
		name += "/" + which
	}
	if k, ok := r.linked.Find(name); ok {
		return k.Read(r.Reader, m, at)
	}
	m.AllowRest()
	switch err := r.linked.Missing(name); {
	case err != nil:
		field.Fault(form.Invalid, "the kind %v", err)
	case named && name != "":
		known := slices.AppendSeq(kinds.Names(), maps.Keys(own))
		slices.Sort(known)
		field.Unknown("kind", name, known...)
	}
	return nil
}

// readCapabilities reads capabilities by id. Capabilities that call others are built last.
func (r *reader) readCapabilities(m *form.Map, key string, to **call.Registry, reached *[]kinds.Reached) {
	var caps []call.Capability
	var later []func()
	var ids []string
	m.At(key).Entries(func(id string, v form.Value) {
		ids = append(ids, id)
		meta, at := call.Metadata{ID: id}, kinds.Reached{ID: id}
		var build kinds.Builder
		good := false
		read := func(m *form.Map) {
			form.Into(m, &meta)
			for _, key := range []string{"io/in-schema", "io/out-schema"} {
				if name, ok := m.Field(key); ok {
					kinds.CheckEach(name, "schema", r.schemaNames())
				}
			}
			if intents, ok := m.Field("cap/intents"); ok && r.App.Intents != nil {
				kinds.CheckEach(intents, "intent", r.intentNames())
			}
			m.Need("cap/kind")
			build = r.kind(m, meta.Kind, &at)
		}
		at.Secrets = r.Reader.Of("capability "+id, func() { good = v.Map(read) })
		if !good {
			return
		}
		if row := r.Row(at.Provider, at.Model); row != nil && row.Price != nil && meta.Cost.USD == 0 && meta.Cost.Price == (budget.Price{}) {
			meta.Cost.Price, at.Priced = *row.Price, row.Date // unless the capability has its own price
		}
		add := func() {
			c, err := build(meta)
			if err == nil {
				err = c.Check()
			}
			if err != nil {
				v.Fault(form.Invalid, "%v", err)
				return
			}
			caps, *reached = append(caps, c), append(*reached, at)
		}
		if at.Calls {
			later = append(later, add)
		} else {
			add()
		}
		for _, s := range at.Secrets {
			if !slices.Contains(r.Config.Secrets, s) {
				r.Config.Secrets = append(r.Config.Secrets, s)
			}
		}
	})
	*to = call.NewRegistry(caps...)
	for _, add := range later {
		add()
	}
	if len(later) > 0 {
		*to = call.NewRegistry(caps...)
		slices.SortFunc(*reached, func(a, b kinds.Reached) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	}
}
