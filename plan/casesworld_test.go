package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/x/cel"
)

// A world is everything that a case says around its plan or request.
type world struct {
	app    *call.Applicator
	opts   plan.Options
	env    dag.DAG
	grant  []string
	budget budget.Limits

	exec edn.Value
	mu   sync.Mutex
	caps []string // in the order in which they were asked
	used []string // the same for tools
	keys map[string]string
	seen map[string]int // invocations of each capability
}

func newWorld(t *testing.T, c edn.Value) *world {
	t.Helper()
	w := &world{
		app:  &call.Applicator{Language: cel.Language, Counters: &call.Counters{}, Checks: map[string]call.Check{}},
		exec: field(c, "exec"), keys: map[string]string{}, seen: map[string]int{},
	}
	var who call.Principal
	var roles call.Roles
	var caps []call.Capability
	faults := form.Read(c, func(m *form.Map) {
		m.AllowRest()
		form.Into(m, w.app, "policy", "routing", "schemas", "intents")
		m.At("budget").Map(func(m *form.Map) { form.Into(m, &w.budget) })
		m.At("principal").Map(func(m *form.Map) { form.Into(m, &who) })
		m.At("grant").NameSet(&w.grant)
		m.At("mode").Name(&w.opts.Mode)
		m.At("limits").Map(func(m *form.Map) {
			m.At("nodes").Int(&w.opts.Limits.Nodes, 1, 1<<30)
			m.At("depth").Int(&w.opts.Limits.Depth, 1, 1<<30)
		})
		form.Into(m, &roles)
		m.At("registry").Entries(func(id string, v form.Value) {
			if v.EDN().IsNil() {
				return
			}
			md := defaults(id)
			if !v.Map(func(m *form.Map) { form.Into(m, &md) }) {
				return
			}
			caps = append(caps, w.capability(md))
		})
	})
	if err := faults.Err(); err != nil {
		t.Fatalf("the case cannot be read: %v", err)
	}
	w.grant = roles.Grant(who, w.grant)
	registry := field(c, "registry")
	for _, id := range namedIn(c) {
		if _, listed := registry.Field(id); !listed {
			caps = append(caps, w.capability(defaults(id)))
		}
	}
	w.judged(c, &caps)
	w.checks(t, c)
	w.bind(t, c)
	w.app.Registry = call.NewRegistry(caps...)
	w.app.Tools = call.NewRegistry(w.tools(c)...)
	w.app.Plans = plan.Planner(w.opts)
	if err := errors.Join(w.app.Registry.Err(), w.app.Tools.Err()); err != nil {
		t.Fatal(err)
	}
	for key, state := range field(c, "availability").Entries() {
		w.app.Registry.SetDown(key.Text(), state.Text() == "down")
	}
	return w
}

// defaults are what a capability is if the case does not say.
func defaults(id string) call.Metadata {
	return call.Metadata{ID: id, Kind: "go", In: "req/any", Out: "res/any", CanProduce: []string{call.Value, call.Plan, call.Stream}}
}

// namedIn lists the capabilities that a case names anywhere, each once.
func namedIn(c edn.Value) []string {
	var ids []string
	note := func(v edn.Value) {
		if name, ok := v.Name(); ok && name != "*" && !slices.Contains(ids, name) {
			ids = append(ids, name)
		}
	}
	for _, key := range []string{"exec", "availability"} {
		for k := range field(c, key).Entries() {
			note(k)
		}
	}
	var scan func(v edn.Value)
	scan = func(v edn.Value) {
		for k, e := range v.Entries() {
			switch nameOf(k) {
			case "cap/id":
				note(e)
			case "candidates", "fallback":
				for _, id := range e.Elements() {
					note(id)
				}
			}
			scan(e)
		}
		for _, e := range v.Elements() {
			scan(e)
		}
		if v.Kind() == edn.KindString && strings.HasPrefix(strings.TrimSpace(v.Text()), "{") {
			if inner, err := edn.FromJSON([]byte(v.Text()), edn.Limits{}); err == nil {
				scan(inner)
			}
		}
	}
	scan(c)
	return ids
}

func nameOf(v edn.Value) string {
	name, _ := v.Name()
	return name
}

// capability behaves as the case says.
func (w *world) capability(m call.Metadata) call.Capability {
	behave := w.behaviour(m.ID)
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		w.mu.Lock()
		w.caps = append(w.caps, m.ID)
		w.keys[placeOf(req.Key)] = m.ID
		n := w.seen[m.ID]
		w.seen[m.ID]++
		w.mu.Unlock()
		return act(ctx, behave, req, n)
	}}
}

func (w *world) behaviour(id string) edn.Value {
	for _, key := range []string{id, "*"} {
		if b, ok := w.exec.Field(key); ok {
			return b
		}
	}
	k, _ := edn.Keyword("v")
	return edn.Vector(k, edn.String(id[strings.LastIndex(id, "/")+1:]))
}

func (w *world) called() (caps, tools []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.caps), slices.Clone(w.used)
}

func (w *world) tools(c edn.Value) (tools []call.Capability) {
	for key, behave := range field(c, "tools").Entries() {
		id, n := nameOf(key), 0
		tools = append(tools, call.Capability{Metadata: defaults(id), Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
			w.mu.Lock()
			w.used = append(w.used, id)
			k := n
			n++
			w.mu.Unlock()
			return act(ctx, behave, req, k)
		}})
	}
	return tools
}

// judged puts the judge on.
func (w *world) judged(c edn.Value, caps *[]call.Capability) {
	grade, ok := c.Field("judge")
	if !ok {
		return
	}
	const id = "case/judge"
	on := true
	w.app.Policy.Default.Judge.On, w.app.Policy.Default.Judge.Cap = &on, id
	m := defaults(id)
	m.Intents = []string{terms.Grade}
	*caps = append(*caps, call.Capability{Metadata: m, Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
		score := grade
		if grade.Kind() == edn.KindMap {
			score = w.of(grade, w.answered(req.Key))
		}
		if score.Kind() == edn.KindKeyword {
			return &call.Reply{Out: call.JSON("{}")}, nil
		}
		out, err := edn.ToJSON(score)
		return &call.Reply{Out: fmt.Appendf(nil, `{"score":%s}`, out)}, err
	}})
}

// of returns what a map says of a capability, or of all.
func (w *world) of(m edn.Value, id string) edn.Value {
	if v, ok := m.Field(id); ok {
		return v
	}
	return field(m, "*")
}

// placeOf returns a key without the digest of what is asked.
func placeOf(key string) string { return key[:strings.LastIndex(key, " ")] }

// answered tells whose answer a judge is asked about: the place of what it is asked equals the answer's, but for the word.
func (w *world) answered(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	key = placeOf(key)
	i := strings.LastIndex(key, "/")
	return w.keys[key[:i+1]+strings.TrimPrefix(key[i+1:], "judge ")]
}

func (w *world) checks(t *testing.T, c edn.Value) {
	for key, holds := range field(c, "checks").Entries() {
		name := nameOf(key)
		if holds.Kind() == edn.KindString {
			check, err := cel.Check(holds.Text())
			if err != nil {
				t.Fatalf("check %s: %v", name, err)
			}
			w.app.Checks[name] = check
			continue
		}
		w.app.Checks[name] = func(_ context.Context, s call.Subject) error {
			says := holds
			if holds.Kind() == edn.KindMap {
				says = w.of(holds, s.Request.Cap)
			}
			if nameOf(says) == "throw" {
				panic("the check is broken")
			}
			if ok, _ := says.Bool(); !ok {
				return errors.New("it does not hold")
			}
			return nil
		}
	}
}

// bind puts the initial slots into the DAG. The host may have some under names that
// plan.Bind refuses, since they are not for plans.
func (w *world) bind(t *testing.T, c edn.Value) {
	slots := map[string]json.RawMessage{}
	for key, v := range field(c, "env").Entries() {
		data, err := edn.ToJSON(v)
		if err != nil {
			t.Fatalf("env %s: %v", key, err)
		}
		slots[key.Text()] = data
	}
	w.opts.Slots = slices.Sorted(maps.Keys(slots))
	for _, name := range w.opts.Slots {
		var err error
		if w.env, err = dag.NewType[json.RawMessage](name).Append(w.env, slots[name]); err != nil {
			t.Fatal(err)
		}
	}
}

// act does what a behaviour says, at the n-th invocation from 0.
func act(ctx context.Context, b edn.Value, req *call.Request, n int) (*call.Reply, error) {
	switch nameOf(b) {
	case "echo":
		return &call.Reply{Out: fmt.Appendf(nil, `{"in":%s}`, req.Input)}, nil
	case "echo-context":
		out := call.JSON(`{"context":null}`)
		if req.Context != nil {
			out = fmt.Appendf(nil, `{"context":%s}`, req.Context)
		}
		return &call.Reply{Out: out}, nil
	}
	switch arg := b.At(1); nameOf(b.At(0)) {
	case "v":
		return text(arg.Text()), nil
	case "vo":
		out, err := edn.ToJSON(arg)
		return &call.Reply{Out: out}, err
	case "e":
		retryable, _ := b.At(2).Bool()
		return nil, &call.Error{Type: arg.Text(), Message: "as the case says", Retryable: retryable}
	case "p":
		reply := &call.Reply{Type: call.Plan, Plan: []byte("{:nodes " + arg.String() + "}")}
		var err error
		if b.Len() > 2 {
			reply.Bindings, err = edn.ToJSON(b.At(2))
		}
		return reply, err
	case "raw":
		return call.ReadReply([]byte(enveloped(arg).String()))
	case "json":
		v, err := edn.FromJSON([]byte(arg.Text()), edn.Limits{})
		if err != nil {
			return call.ReadReply([]byte(arg.Text()))
		}
		return call.ReadReply(jsonText(enveloped(v)))
	case "throw":
		return nil, errors.New(arg.Text())
	case "panic":
		panic(arg.Text())
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	case "after-ms":
		ms, _ := arg.Int64()
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
			return act(ctx, b.At(2), req, n)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case "seq":
		return act(ctx, b.At(min(n+1, b.Len()-1)), req, n)
	case "s":
		return stream(b, req), nil
	}
	panic(fmt.Sprintf("the case has an unknown behaviour %s", b))
}

func text(s string) *call.Reply {
	return &call.Reply{Out: call.JSON(canonical(map[string]string{"text": s}))}
}

func stream(b edn.Value, req *call.Request) *call.Reply {
	var all strings.Builder
	for i, part := range b.Elements() {
		if i == 0 {
			continue
		}
		all.WriteString(part.Text())
		req.Voice.Say(event.Text, part.Text())
	}
	r := text(all.String())
	r.Type = call.Stream
	return r
}

// enveloped puts proto and trace into an envelope that has none.
func enveloped(v edn.Value) edn.Value {
	if v.Kind() != edn.KindMap {
		return v
	}
	var items []edn.Value
	for k, e := range v.Entries() {
		items = append(items, k, e)
	}
	key := func(name string) edn.Value {
		if v.IsJSON() {
			return edn.String(name)
		}
		k, _ := edn.Keyword(name)
		return k
	}
	if _, ok := v.Field("proto"); !ok {
		items = append(items, key("proto"), edn.Int(1))
	}
	if _, ok := v.Field("trace"); !ok {
		trace, _ := edn.Map(key("id"), edn.String("case"))
		items = append(items, key("trace"), trace)
	}
	out, _ := edn.Map(items...)
	return out
}

func jsonText(v edn.Value) []byte {
	text, _ := edn.ToJSON(v)
	return text
}
