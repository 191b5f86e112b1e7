package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/marked"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/schema"
)

// A Config is the part of a configuration that concerns calls: capabilities, rules, and the effects and the budget of a run. It
// must be closed when no run uses it any longer.
type Config struct {
	File   string // file that was read; "" for the built-in configuration
	Dir    string // directory to which paths in the file are relative
	App    *call.Applicator
	Budget budget.Limits
	// Budgets limit the total spending of many runs. They are in the order of the text.
	Budgets []budget.Rule
	Models  []Model      // table of models, in the order of the text
	Table   llm.Table    // models that pipelines call directly, with their providers' limits
	Plan    plan.Options // mode and limits of plans
	// Capabilities and Tools describe where each capability and tool runs, in the order of the text.
	Capabilities, Tools []kinds.Reached
	Checks              int // number of configured checks
	// Live lists the gateway's models whose answers are streamed before they are accepted.
	Live []string
	// URL is the address at which people open the server's pages.
	URL string
	// IgnoreTools lists the tool types that the gateway removes from requests.
	IgnoreTools []string
	// Secrets lists all secrets named in the configuration, each once.
	Secrets []kinds.Secret
	// Search configures the project's index and its embedder.
	Search kinds.Search
	// Logins maps the names of servers to functions that log the user in.
	Logins map[string]kinds.Login
	// Webhooks are the webhooks that a server calls, in the order of the text.
	Webhooks []Webhook
	// Policy limits which effects marked text can reach; nil means that effects are not limited.
	Policy marked.Policy
	// Passed lists the environment variables that are passed on to programs.
	Passed []string
	// Found is set if the command found the configuration by itself, with Nearest.
	Found bool

	granted   []string // nil if the configuration has no grant
	principal call.Principal
	roles     call.Roles
	closers   []func() error
	reached   *kinds.Reader // places and files named in the configuration
	providers map[string]*provider
}

// Grant returns the effects that runs may have: the effects granted in the configuration and the effects in beside, without those
// that the principal's roles deny. The result is never nil.
func (c *Config) Grant(beside []string) []string {
	return c.roles.Grant(c.principal, slices.Concat(c.granted, beside))
}

// Denied returns the reason why the roles of the principal deny an effect, or "" if they allow it.
func (c *Config) Denied(effect string) string { return c.roles.Denied(c.principal, effect) }

// Grants reports whether the configuration sets a grant.
func (c *Config) Grants() bool { return c.granted != nil }

// Unbounded returns the grant for code that the user chose to run. Without roles, it is nil, which allows everything. With roles,
// it contains the effects that the roles allow among the known effects, the pipeline's effects, the effects with a rule, and the
// needs of the capabilities and tools.
func (c *Config) Unbounded(pipeline []string) []string {
	if c.roles == nil {
		return nil
	}
	all := slices.Concat(grants.Known(), pipeline, slices.Collect(maps.Keys(c.roles)))
	for _, r := range []*call.Registry{c.App.Registry, c.App.Tools} {
		for _, id := range r.IDs() {
			m, _ := r.Lookup(id)
			all = append(all, m.Needs...)
		}
	}
	slices.Sort(all)
	return c.roles.Grant(c.principal, slices.Compact(all))
}

// Packages returns the names of the Go packages whose pipelines are configured as capabilities or tools.
func (c *Config) Packages() (names []string) {
	for _, r := range slices.Concat(c.Capabilities, c.Tools) {
		if r.Package != "" {
			names = append(names, r.Package)
		}
	}
	return names
}

// Close stops the servers that were started for the configuration.
func (c *Config) Close() error {
	var errs []error
	for _, end := range c.closers {
		errs = append(errs, end())
	}
	c.closers = nil
	return errors.Join(errs...)
}

// Load reads a configuration, in EDN or JSON, for a program that links the given kinds. Paths in the configuration are relative
// to its directory or, if that is a .stone directory, to the project's directory. The error is either an *Invalid with all faults
// or a file system error. Load does not start programs, contact servers or read secrets.
func Load(file string, linked *kinds.Set) (*Config, error) {
	return load(file, linked, false)
}

func load(file string, linked *kinds.Set, found bool) (*Config, error) {
	v, err := parse(file)
	if err != nil {
		return nil, err
	}
	dir, err := projectOf(file)
	if err != nil {
		return nil, err
	}
	return read(v, file, dir, linked, found)
}

// projectOf returns the directory to which paths in a configuration are relative.
func projectOf(file string) (string, error) {
	abs, err := filepath.Abs(file)
	dir := filepath.Dir(abs)
	if filepath.Base(dir) == Name {
		dir = filepath.Dir(dir)
	}
	return dir, err
}

// Nearest reads the configuration in the nearest .stone directory, in dir or above it; see Find. If there is none, it returns a
// default configuration, in which solver/sat and solver/cel are available if the program links them.
func Nearest(dir string, linked *kinds.Set) (*Config, error) {
	found, err := Find(dir)
	if err != nil {
		return nil, err
	}
	if found != "" {
		file, err := fileIn(found)
		if err != nil {
			return nil, err
		}
		if file != "" {
			return load(kinds.Shown(file), linked, true)
		}
	}
	v, err := builtIn(linked)
	if err != nil {
		return nil, err
	}
	return read(v, "", dir, linked, true)
}

// builtIn returns the default configuration.
func builtIn(linked *kinds.Set) (edn.Value, error) {
	text := []byte("{:capabilities {")
	for _, k := range linked.All() {
		if k.Unconfigured != "" {
			text = fmt.Appendf(text, ":%s %s ", k.Name, k.Unconfigured)
		}
	}
	return edn.Read(append(text, "}}"...), edn.Limits{})
}

// A reader reads one configuration.
type reader struct {
	*Config
	*kinds.Reader
	linked    *kinds.Set
	providers map[string]*provider
	graders   []grader

	checkPlaces map[string]form.Value
}

func read(v edn.Value, file, dir string, linked *kinds.Set, found bool) (*Config, error) {
	app := &call.Applicator{Counters: &call.Counters{}, Schemas: map[string]*schema.Schema{}, Language: linked.Language()}
	app.Checks, app.CheckFacts = map[string]call.Check{}, map[string]call.CheckFacts{}
	for _, k := range linked.All() {
		maps.Copy(app.Checks, k.Checks)
	}
	c := &Config{File: file, Dir: dir, App: app, Found: found}
	r := &reader{Config: c, linked: linked, Reader: &kinds.Reader{Dir: dir, Found: found, Applicator: app, Schema: app.Schema, Parts: map[string]any{}, Logins: map[string]kinds.Login{}}, providers: map[string]*provider{}, checkPlaces: map[string]form.Value{}}
	if err := invalid(file, form.Read(v, r.read)); err != nil {
		return nil, err
	}
	c.closers, c.Logins, c.reached, c.Passed, c.Search, c.Policy, c.providers = r.Closers, r.Reader.Logins, r.Reader, r.Reader.Passed, r.Reader.Search, r.Reader.Policy, r.providers
	return c, nil
}

func (r *reader) read(m *form.Map) {
	var s Settings
	s.read(m)
	r.readSchemas(m)
	if v, ok := m.Field("intents"); ok {
		form.Into(m, r.App, "intents")
		r.checkPolicy(v)
	}
	r.Reader.Intents = r.App.Intents
	r.readProviders(m)
	m.At("capabilities").Entries(func(id string, _ form.Value) { r.IDs = append(r.IDs, id) })
	r.readSearch(m)
	r.readSections(m, kinds.Sections...)
	r.readModels(m)
	r.readChecks(m)
	r.readCapabilities(m, "capabilities", &r.App.Registry, &r.Capabilities)
	for _, g := range r.graders {
		m, ok := r.App.Registry.Lookup(g.id)
		r.App.CheckFacts[g.check] = call.CheckFacts{Needs: m.Needs, Costly: true, Asks: g.id}
		if ok && m.Intents != nil && !slices.Contains(m.Intents, terms.Grade) {
			g.named.Fault(form.Invalid, "%s does not handle %s, which a check needs: add the intent to its cap/intents", g.id, terms.Grade)
		}
	}
	r.readCapabilities(m, "tools", &r.App.Tools, &r.Tools)
	r.checkRerankers()
	form.Into(m, r.App, "policy", "routing")
	for _, key := range []string{"policy", "routing"} {
		if v, ok := m.Field(key); ok {
			r.checkPolicy(v)
		}
	}
	r.checkTypes()
	r.readRubrics(m)
	r.readRights(m)
	r.readWebhooks(m)
	m.At("budget").Map(func(m *form.Map) { form.Into(m, &r.Budget) })
	r.readBudgets(m)
	m.At("serve").Map(func(m *form.Map) {
		m.At("live").NameSet(&r.Live)
		m.At("ignore-tools").NameSet(&r.IgnoreTools)
		m.At("url").Text(&r.URL)
	})
	m.At("mode").OneOf(&r.Plan.Mode, plan.Hybrid, plan.Strict, plan.Lazy)
	m.At("limits").Map(func(m *form.Map) {
		m.At("nodes").Int(&r.Plan.Limits.Nodes, 1, 100_000)
		m.At("depth").Int(&r.Plan.Limits.Depth, 1, 1000)
		m.At("attempts").Int(&r.Plan.Limits.Attempts, 1, 1_000_000)
		m.At("visits").Int(&r.Plan.Limits.Visits, 1, math.MaxInt32)
		m.At("bytes").Int(&r.Plan.Limits.Bytes, 1, math.MaxInt32)
		m.At("node-bytes").Int(&r.Plan.Limits.NodeBytes, 1, math.MaxInt32)
		m.At("roundtrips").Int(&r.Plan.Limits.Roundtrips, 1, math.MaxInt32)
	})
	r.App.Plans = plan.Planner(r.Plan)
}

// readRubrics reads the rubrics of judges, each given as text or as {:file "path"}.
func (r *reader) readRubrics(m *form.Map) {
	read := func(m *form.Map, to *call.Rules) {
		m.AllowRest()
		m.At("judge").Map(func(m *form.Map) {
			m.AllowRest()
			r.Text(m, "rubric", &to.Judge.Rubric)
			if v, ok := m.Field("rubric"); ok && to.Judge.Rubric != "" && to.Judge.On == nil && r.App.Policy.Default.Judge.On == nil {
				v.Fault(form.Invalid, "the judge is off, so its rubric has no effect: add :on true")
			}
		})
	}
	policy := &r.App.Policy
	m.At("policy").Map(func(m *form.Map) {
		m.AllowRest()
		m.At("default").Map(func(m *form.Map) { read(m, &policy.Default) })
		m.At("intents").Entries(func(intent string, v form.Value) {
			rules := policy.Intents[intent]
			v.Map(func(m *form.Map) { read(m, &rules) })
			policy.Intents[intent] = rules
		})
	})
}

// readSections reads the sections that belong to kinds.
func (r *reader) readSections(m *form.Map, sections ...string) {
	for _, k := range r.linked.All() {
		if slices.Contains(sections, k.Section) {
			k.ReadSection(r.Reader, m)
		}
	}
	for _, section := range sections {
		if v, ok := m.Field(section); ok {
			if err := r.linked.Missing(section); err != nil {
				v.Fault(form.Invalid, "%v", err)
			}
		}
	}
}

// readRights reads the rights of runs: grant, principal and roles.
func (r *reader) readRights(m *form.Map) {
	m.At("principal").Map(func(m *form.Map) { form.Into(m, &r.principal) })
	form.Into(m, &r.roles)
	check := func(v form.Value, name string) {
		if grants.Check(name) != nil {
			v.Unknown("effect", name, grants.Known()...)
		}
	}
	if v := m.At("grant"); v.NameSet(&r.granted) {
		for _, name := range r.granted {
			check(v, name)
		}
	}
	m.At("roles").Entries(func(name string, v form.Value) { check(v, name) })
}

// readSchemas reads schemas, each given inline or as {:file "path"}.
func (r *reader) readSchemas(m *form.Map) {
	v, ok := m.Field("schemas")
	if !ok {
		return
	}
	form.Into(m, r.App, "schemas")
	v.Entries(func(name string, v form.Value) {
		if file, isFile := r.OnlyFile(v); isFile && r.App.Schemas[name] != nil {
			r.App.Schemas[name] = r.schemaFile(v, file)
		}
	})
}

func (r *reader) schemaFile(v form.Value, file string) *schema.Schema {
	data, ok := r.ReadFile(v, file)
	if !ok {
		return nil
	}
	s, err := schema.Parse(data)
	if err != nil {
		v.Fault(form.Invalid, "%s: expected a JSON Schema: %v", kinds.Shown(file), err)
	}
	return s
}
