package config

import (
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/cel"
	"github.com/stonelayer/stone/call/command"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/call/rest"
	"github.com/stonelayer/stone/call/sat"
	"github.com/stonelayer/stone/call/scope"
	"github.com/stonelayer/stone/call/uci"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/plan"
)

func (r *reader) llm(m *form.Map, at *Reached) builder {
	c := model.Config{Schema: r.App.Schema}
	m.Need("provider", "model")
	someText(m, "model", &at.model)
	prompts := map[string]form.Value{}
	var p *provider
	if v, ok := m.Field("provider"); ok && v.Name(&at.provider) {
		r.checkEach(v, "provider", r.providerNames())
		if p = r.providers[at.provider]; p != nil {
			at.At = p.host()
		}
		if p != nil && p.key != (Secret{}) {
			r.secrets = append(r.secrets, p.key)
		}
	}
	m.Int("max-tokens", &c.MaxTokens, 1, 1<<30)
	m.Map("prompts", func(m *form.Map) {
		r.text(m, "default", &c.Prompt)
		r.text(m, "role", &c.Role)
		c.Intents = map[string]string{}
		m.Entries("intents", func(intent string, v form.Value) {
			prompts[intent], c.Intents[intent] = v, r.textOf(v)
		})
	})
	return func(meta call.Metadata) (call.Capability, error) {
		for _, intent := range slices.Sorted(maps.Keys(prompts)) {
			if meta.Intents != nil && !slices.Contains(meta.Intents, intent) {
				prompts[intent].Unknown("intent of this capability", intent, meta.Intents...)
			}
		}
		c.Model = &lateModel{provider: p, name: at.model}
		return model.New(meta, c), c.Check()
	}
}

// text reads a field as text: as it is, or as {:file "path"}.
func (r *reader) text(m *form.Map, key string, to *string) {
	if v, ok := m.Field(key); ok {
		*to = r.textOf(v)
	}
}

func (r *reader) textOf(v form.Value) (text string) {
	if file, isFile := r.onlyFile(v); isFile {
		data, _ := readFile(v, file) // what went wrong is reported
		return string(data)
	}
	v.Text(&text)
	return text
}

func (r *reader) command(m *form.Map, at *Reached) builder {
	c := r.program(m)
	if len(c.Command) > 0 {
		at.At, at.program = c.Command[0], true
	}
	return func(meta call.Metadata) (call.Capability, error) { return command.New(meta, c), c.Check() }
}

// program reads how a program is started.
func (r *reader) program(m *form.Map) (c command.Config) {
	m.Need("command")
	c.Command = r.argv(m)
	r.path(m, "dir", &c.Dir)
	m.Texts("env", &c.Env)
	m.Int("max-output", &c.MaxOutput, 1, 1<<30)
	c.Scope = r.scope(m)
	return c
}

// argv reads a program and its arguments. The program is named by a path.
func (r *reader) argv(m *form.Map) (argv []string) {
	v, _ := m.Field("command")
	switch m.Texts("command", &argv); {
	case argv == nil:
	case len(argv) == 0 || argv[0] == "":
		v.Fault(form.Invalid, "expected a program, as [\"/usr/bin/wc\" \"-w\"]")
	case !slices.Contains([]byte(argv[0]), os.PathSeparator):
		v.Fault(form.Invalid, "expected the path of a program, as \"/usr/bin/%s\" or \"./%[1]s\", found %[1]q", argv[0])
	default:
		argv[0] = within(r.dir, argv[0])
	}
	return argv
}

func (r *reader) scope(m *form.Map) (s scope.Scope) {
	m.Map("scope", func(m *form.Map) {
		m.Texts("fs", (*[]string)(&s.FS))
		m.Texts("process", (*[]string)(&s.Process))
		m.Texts("net", (*[]string)(&s.Net))
	})
	for _, paths := range [][]string{s.FS, s.Process} {
		for i, p := range paths {
			paths[i] = within(r.dir, p)
		}
	}
	return s
}

func (r *reader) http(m *form.Map, at *Reached) builder {
	c := rest.Config{Header: map[string]rest.Value{}}
	m.Need("url")
	address(m, "url", &c.URL)
	at.At = c.URL
	for name, v := range r.values(m, "headers") {
		c.Header[name] = rest.Value{Text: v.text, Env: v.secret.Env, File: v.secret.File}
	}
	m.Int("max-body", &c.MaxBody, 1, 1<<30)
	c.Scope = r.scope(m)
	return func(meta call.Metadata) (call.Capability, error) { return rest.New(meta, c), c.Check() }
}

func (r *reader) solver(m *form.Map, _ *Reached) builder {
	var which string
	m.Need("solver")
	m.OneOf("solver", &which, "cel", "sat")
	if which == "cel" {
		var c cel.Config
		someText(m, "expression", &c.Expression)
		return func(meta call.Metadata) (call.Capability, error) { return cel.New(meta, c), c.Check() }
	}
	var c sat.Config
	m.Int("variables", &c.Variables, 1, 1<<30)
	m.Int("literals", &c.Literals, 1, 1<<30)
	m.Int("conflicts", &c.Conflicts, 1, 1<<30)
	return func(meta call.Metadata) (call.Capability, error) { return sat.New(meta, c), c.Check() }
}

func (r *reader) chess(m *form.Map, at *Reached) builder {
	c := uci.Config{Options: map[string]string{}}
	m.Need("command")
	c.Command = r.argv(m)
	if len(c.Command) > 0 {
		at.At, at.program = c.Command[0], true
	}
	m.Entries("options", func(name string, v form.Value) {
		if n, ok := v.EDN().Int64(); ok {
			c.Options[name] = strconv.FormatInt(n, 10)
			return
		}
		var text string
		v.Text(&text)
		c.Options[name] = text
	})
	m.Duration("movetime-ms", &c.MoveTime)
	c.Scope = r.scope(m)
	return func(meta call.Metadata) (call.Capability, error) { return uci.New(meta, c), c.Check() }
}

func (r *reader) plan(m *form.Map, at *Reached) builder {
	m.Need("file")
	r.path(m, "file", &at.At)
	var p *plan.Plan
	if v, ok := m.Field("file"); ok && at.At != "" {
		if data, ok := readFile(v, at.At); ok {
			var err error
			if p, err = plan.Read(data); err != nil {
				v.Fault(form.Invalid, "%s: %v", shown(at.At), err)
			}
		}
	}
	return func(meta call.Metadata) (call.Capability, error) { return plan.Capability(meta, p) }
}
