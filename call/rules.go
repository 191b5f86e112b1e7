package call

import (
	"encoding/json"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/schema"
)

// readPolicy reads a policy: the fields "default" and "intents". Routing is a separate field; see readRouting.
func readPolicy(m *form.Map, to *Policy) {
	m.At("default").Map(to.Default.read)
	m.At("intents").Entries(func(intent string, v form.Value) {
		var r Rules
		v.Map(func(m *form.Map) {
			r.read(m)
			m.At("cache").Map(r.Cache.read)
		})
		if to.Intents == nil {
			to.Intents = map[string]Rules{}
		}
		to.Intents[intent] = r
	})
}

// readRouting reads the last level of a policy: "retry", "switch-on" and
// "fallback".
func readRouting(m *form.Map, to *Rules) {
	m.At("retry").Map(to.Retry.read)
	m.At("switch-on").NameSet(&to.SwitchOn)
	m.At("fallback").NameList(&to.Fallback)
}

func (r *Rules) read(m *form.Map) {
	readRouting(m, r)
	m.At("done").Map(r.Done.read)
	m.At("admit").Map(r.Admit.read)
	m.At("judge").Map(r.Judge.read)
}

func (j *Judge) read(m *form.Map) {
	form.Ptr(&j.On, m.At("on").Bool)
	form.Ptr(&j.Weight, func(to *float64) bool { return m.At("w").Float(to, 0, 1) })
	form.Ptr(&j.Veto, m.At("veto").Bool)
	m.At("on-error").OneOf(&j.OnError, "closed", "open")
	form.Ptr(&j.Canary, func(to *float64) bool { return m.At("canary").Float(to, 0, 1) })
	m.At("cap/id").Name(&j.Cap)
	form.Ptr(&j.MaxAttempts, func(to *int) bool { return m.At("max-attempts").Int(to, 1, counted) })
	if v, ok := m.Field("rubric"); ok && v.EDN().Kind() != edn.KindMap { // a map names a file, which the host reads instead
		v.Text(&j.Rubric)
	}
}

// readIntents reads the known intents with their schemas, by name. The result is never
// nil, which would allow any intent.
func readIntents(v form.Value) map[string]Intent {
	intents := map[string]Intent{}
	v.Entries(func(name string, v form.Value) {
		var i Intent
		v.Map(func(m *form.Map) {
			m.At("description").Text(&i.Description)
			m.At("in-schema").Name(&i.In)
			m.At("out-schema").Name(&i.Out)
		})
		intents[name] = i
	})
	return intents
}

// readSchemas reads JSON Schemas by name.
func readSchemas(v form.Value) map[string]*schema.Schema {
	schemas := map[string]*schema.Schema{}
	v.Entries(func(name string, v form.Value) {
		var text json.RawMessage
		if !v.JSON(&text) {
			return
		}
		s, err := schema.Parse(text)
		switch {
		case err != nil:
			v.Fault(form.Invalid, "expected a JSON Schema: %v", err)
		case builtin[name] != nil:
			v.Fault(form.Duplicate, "the schema %q is built in: choose another name", name)
		default:
			schemas[name] = s
		}
	})
	return schemas
}

// readRoles reads the rules of effects, by the name of the effect, from the field part.
func readRoles(m *form.Map, to *Roles, part string) {
	if _, ok := m.Field(part); !ok {
		return
	}
	roles := Roles{}
	m.At(part).Entries(func(effect string, v form.Value) {
		var r Rule
		v.Map(func(m *form.Map) {
			m.At("any").NameSet(&r.Any)
			m.At("all").NameSet(&r.All)
			m.At("forbidden").NameSet(&r.Forbidden)
		})
		roles[effect] = r
	})
	*to = roles
}

// readPrincipal reads a Principal. Use it only for data from the host, never for a plan or a request.
func readPrincipal(m *form.Map, to *Principal) {
	m.Need("id")
	m.At("id").Text(&to.ID)
	m.At("roles").NameSet(&to.Roles)
}
