package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/marked"
	"github.com/stonelayer/stone/internal/terms"
)

// The modes in which the nodes of a plan run. All modes produce the same nodes with the same IDs.
const (
	Hybrid = "hybrid" // the default: each node runs as soon as its slots are defined
	Strict = "strict" // nodes run one after the other
	Lazy   = "lazy"   // batches of independent nodes run one after the other; each batch is as large as possible
)

// Options configure how a plan becomes an ashlar. The zero value of each field selects the default.
type Options struct {
	Mode   string // Hybrid if empty
	Limits Limits // limits of the plan, which also apply to the plans that its calls return
	// Slots contains the names of slots that exist before the plan starts. The plan may read other slots if the enclosing pipeline
	// produces them, but expressions in guards can use only Slots and the plan's own slots.
	Slots []string
}

// Emission is the type of a plan's emissions. The nearest emission is the plan's result:
//
//	out, err := plan.Emission.From(result.DAG)
var Emission = dag.NewType[json.RawMessage](terms.Emit)

// Bind returns d with a node appended for each of the slots, in the order of their names. The values are encoded as JSON. If a
// value cannot be encoded or a name is reserved, the error names the slot.
func Bind(d dag.DAG, slots map[string]any) (dag.DAG, error) {
	for _, name := range slices.Sorted(maps.Keys(slots)) {
		if name == "" || reserved(name) {
			return d, fmt.Errorf("slot %q: the name is reserved: auth/…, roles/… and stone/… are not for plans", name)
		}
		n, err := dag.NewNode(dag.Spec{Type: name, Content: slots[name], Parents: d.Next()})
		if err != nil {
			return d, fmt.Errorf("slot %q: %w", name, err)
		}
		if d, err = d.Append(n); err != nil {
			return d, fmt.Errorf("slot %q: %w", name, err)
		}
	}
	return d, nil
}

// Ashlar compiles the plan to an ashlar in which app answers the plan's calls. If the plan has faults, the error is a
// *stone.Invalid that lists them all. Ashlar does not call stone.Validate; stone.Run does.
func (p *Plan) Ashlar(app *call.Applicator, opts Options) (stone.Ashlar, error) {
	c := p.compiled(app, opts, nil)
	return c.ashlar, c.findings.Err()
}

// compiled compiles the plan, or returns the last compilation if it had the same arguments. Most plans are checked and then run
// with the same arguments.
func (p *Plan) compiled(app *call.Applicator, opts Options, hidden map[string]bool) *compiler {
	opts.Slots = slices.Compact(slices.Sorted(slices.Values(opts.Slots)))
	if c := p.last.Load(); c != nil && c.app == app && c.opts.equal(opts) && maps.Equal(c.hidden, hidden) {
		return c
	}
	c := newCompiler(p, app, opts, hidden, 0)
	c.compile()
	p.last.Store(c)
	return c
}

func (o Options) equal(to Options) bool {
	return o.Mode == to.Mode && o.Limits == to.Limits && slices.Equal(o.Slots, to.Slots)
}

// Check checks the whole plan for a run with cfg, and returns all findings about the plan's form, names, slots, expressions, calls
// and effects. A finding's Path is its place in the plan, such as nodes[2].input.t. Its message starts with the line and the
// column. In addition to the types of stone.Validate, findings have the types unknown-op, unknown-field, missing-field, bad-value,
// reserved-name and too-large.
func (p *Plan) Check(app *call.Applicator, opts Options, cfg stone.Config) stone.Findings {
	slots, hidden, _ := slotsOf(cfg.Input, nil)
	opts.Slots = slices.Concat(opts.Slots, slots)
	c := p.compiled(app, opts, hidden)
	r := report{findings: slices.Clone(c.findings)}
	c.misfits(&r, cfg.Input)
	c.validate(context.Background(), &r, cfg)
	return r.findings
}

// slotsOf returns the slots that a plan can read in d, the hidden types and the withheld types. A type is withheld from a returned
// plan if its call does not pass it on. A type is hidden if it is withheld or if only lanes contain nodes of the type. If passes is
// nil, as for a user's plan, nothing is withheld.
func slotsOf(d dag.DAG, passes func(string) bool) (slots []string, hidden, withheld map[string]bool) {
	seen := map[string]bool{}
	withheld = map[string]bool{}
	for n := range d.Nodes() {
		name := n.Type()
		if seen[name] {
			continue
		}
		seen[name] = true
		if passes != nil && !passes(name) {
			withheld[name] = true
			continue
		}
		switch _, err := d.Nearest(name); {
		case err == nil && !reserved(name):
			slots = append(slots, name)
		case err != nil && hidden == nil:
			hidden = map[string]bool{name: true}
		case err != nil:
			hidden[name] = true
		}
	}
	if hidden == nil && len(withheld) > 0 {
		hidden = map[string]bool{}
	}
	maps.Copy(hidden, withheld)
	return slots, hidden, withheld
}

// largest is the maximum number of nodes in a plan that is checked although it exceeds its limit.
const largest = 10_000

func (l Limits) nodes() int { return min(or(l.Nodes, defaultNodes), maxNodes) }
func (l Limits) depth() int { return or(l.Depth, defaultDepth) }

// measure adds a finding for each limit that the plan exceeds, and reports whether the rest of the plan should be checked.
func (c *compiler) measure() bool {
	most, deepest := c.opts.Limits.nodes(), c.opts.Limits.depth()-c.depth
	if n := c.plan.size; n > most {
		c.add(stone.Finding{Type: tooLarge, Ashlar: "plan", Path: "nodes", Message: fmt.Sprintf("the plan has %d nodes, at most %d are allowed: split it, or raise the limit", n, most)})
	}
	if d := c.plan.depth; d > deepest {
		c.add(stone.Finding{Type: tooLarge, Ashlar: "plan", Path: "nodes", Queried: "depth", Message: fmt.Sprintf("the bodies of the plan are nested %d deep, at most %d are allowed here: flatten it, or raise the limit", d, deepest)})
	}
	switch c.opts.Mode {
	case "", Hybrid, Strict, Lazy:
	default:
		c.add(stone.Finding{Type: "bad-option", Ashlar: "plan", Message: fmt.Sprintf("unknown mode %q: want hybrid, strict or lazy", c.opts.Mode)})
	}
	c.attempts(c.plan.nodes)
	return c.plan.size <= max(most, largest) && c.plan.depth <= 1000
}

// attempts adds a finding for each node that allows too many attempts.
func (c *compiler) attempts(nodes []*node) {
	most := or(c.opts.Limits.Attempts, defaultAttempts)
	for _, n := range nodes {
		asked := 0
		for _, of := range []*int{n.spec.Dispatch.Retry.SameCapMax, n.spec.Dispatch.Retry.FallbackMax} {
			if of != nil {
				asked = max(asked, *of)
			}
		}
		if repair := n.spec.Dispatch.Repair; repair != nil {
			asked = max(asked, repair.Max)
		}
		if asked > most {
			c.find(n.at, stone.Finding{Type: tooLarge, Ashlar: label(n), Queried: "attempts"},
				"the node asks for %d attempts, at most %d are allowed: ask for fewer, or raise the limit attempts", asked, most)
		}
		for _, b := range n.bodies {
			c.attempts(b.nodes)
		}
	}
}

// validate adds the findings of stone.Validate, at their places in the plan.
func (c *compiler) validate(ctx context.Context, r *report, cfg stone.Config) {
	if c.ashlar.IsZero() {
		return
	}
	found := append(stone.Validate(c.ashlar, cfg.Given()), marked.Check(ctx, c.ashlar, cfg.Given())...)
	if len(found) == 0 {
		return
	}
	places := map[string]*place{}
	c.locate(c.ashlar, pathOf("", c.ashlar, nil), nil, places)
	for _, f := range found {
		// In a plan, every slot must be defined.
		if f.Type == "maybe-unavailable" {
			f.Warning = false
		}
		at := places[f.Path]
		if at == nil {
			r.add(f)
			continue
		}
		if f.Type == "lane-type-read-as-one" {
			f.Message = fmt.Sprintf("%q is produced in lanes: read it in the body of a node {:op :reduce :body […]} that follows them", f.Queried)
		}
		r.find(within(at, f), f, "%s", planWords.Replace(f.Message))
	}
}

// planWords replaces the Go terms in the validator's messages with the terms used in plans.
var planWords = strings.NewReplacer(
	"read it with dag.Lanes in the Reduce that closes the fan-out", "read it in the body of a node {:op :reduce …} that follows",
	"read the nodes of the lanes with dag.Lanes", "read the lanes in the body of a node {:op :reduce …}",
	"read the lanes with dag.Lanes2, or the history with dag.History", "read both in one node of the body of {:op :reduce …}",
	"read those of this round with dag.Lanes, or the history with dag.History", "read them in the body of a node {:op :reduce …} of this round",
	"read those of its lanes with dag.Lanes, or the history with dag.History", "read them in the body of a node {:op :reduce …} that follows",
	"put it into the Reduce after the fan-out, or read the history with dag.All", "put it into the body of the node {:op :reduce …} after the fan-out",
	"read it in the Reduce after a fan-out", "read it in the body of a node {:op :reduce …} after a fan-out",
	"set AllLanes or Quorum(n), make its body a Rescue, or read the failures with dag.Lost", "add all, if none may fail, or quorum, the number of lanes that must succeed",
	"AllLanes and Quorum(", "all and quorum (",
	"Quorum(", "quorum (",
	", or read it with dag.Maybe", "",
	", or read the existing nodes with dag.All", "",
	", or read all nodes with dag.All", "",
	"use its body without Reduce", "leave the reduce out",
	"a sequence needs at least one step", "it needs at least one node: an emit of null does nothing",
	"use one dag.Type for one name", "use one schema for one name",
	"stone.Reduce", "a node {:op :reduce …}",
)

// locate stores in places, by path, the places of a and all ashlars below it.
func (c *compiler) locate(a stone.Ashlar, path string, at *place, places map[string]*place) {
	if own := c.places[a]; own != nil {
		at = own
	}
	places[path] = at
	branches := a.Branches()
	for i, child := range a.Children() {
		if a.Form() == "reduce" {
			c.locate(child, path, at, places)
			continue
		}
		var key *string
		if branches != nil {
			key = &branches[i]
		}
		c.locate(child, pathOf(path, child, key), at, places)
	}
}

// pathOf returns the path of a, in the validator's notation. The path of the parent is up, and branch is the branch of a or nil.
func pathOf(up string, a stone.Ashlar, branch *string) string {
	if branch != nil {
		up += "[" + escaped.Replace(*branch) + "]"
	}
	if up != "" {
		up += "/"
	}
	return up + escaped.Replace(a.Name())
}

var escaped = strings.NewReplacer("/", "%2F", "[", "%5B", "]", "%5D", "#", "%23", "@", "%40", "~", "%7E", "%", "%25")

// within returns the place that f concerns within a node. The node's own place is at.
func within(at *place, f stone.Finding) *place {
	var found *place
	switch f.Type {
	case "missing-producer", "maybe-unavailable", "schema-mismatch", "lane-type-read-as-one":
		(&report{}).template(*at, true).slots(func(r *slotRef) {
			if found == nil && r.name == f.Queried {
				found = r.at
			}
		}, func(string, *place) {})
	case "unknown-check":
		found = named(at, f.Queried, "admit", "done")
	case badExpression:
		found = named(at, f.Queried, "admit", "done")
	case "unknown-schema":
		found = named(at, f.Queried, "requires", "output")
	case "effect-not-granted":
		found = named(at, f.Queried, "effects")
	case "no-candidate":
		found = named(at, "", "cap/id", "tool/id", "dispatch", "intent")
	}
	if found == nil {
		return at
	}
	return found
}

// named returns the place of name within the first of the given fields that the node at at has. If that field does not contain the
// name, named returns the place of the field.
func named(at *place, name string, fields ...string) *place {
	for _, key := range fields {
		v, ok := at.value.Field(key)
		if !ok {
			continue
		}
		at := at.field(key, v)
		if below := at.search(name); below != nil {
			return below
		}
		return at
	}
	return nil
}

// search returns the place of name in the value at p, or nil if the value does not contain it.
func (p *place) search(name string) *place {
	if own, ok := p.value.Name(); ok && own == name {
		return p
	}
	for k, v := range p.value.Entries() {
		if found := p.field(nameOf(k), v).search(name); found != nil {
			return found
		}
	}
	for i, v := range p.value.Elements() {
		if found := p.item(i, v).search(name); found != nil {
			return found
		}
	}
	return nil
}

// asInvalid returns the findings in err, an error of Read or Ashlar, or nil if it contains none.
func asInvalid(err error) stone.Findings {
	if invalid := (*stone.Invalid)(nil); errors.As(err, &invalid) {
		return invalid.Findings
	}
	return nil
}
