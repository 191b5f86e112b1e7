// Package graph draws the structure of a pipeline, as Mermaid or as DOT.
//
// Arrows lead from each step to the next. A match is a diamond whose arrows are labeled with its branches. A fan-out and its
// reducer are trapezoids, connected by thick arrows. A question to a person is a parallelogram. Loops, rescues and other
// composites are frames: a dashed arrow leads from a loop's end back to its start, and an arrow leads from a rescue to its
// handler. Ids are assigned in tree order, so the same pipeline always results in the same text.
package graph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/tree"
)

// maxNodes is the maximum number of nodes in a drawing. A larger drawing would be unreadable, and a pipeline that repeats parts
// can have more places than fit into memory.
const maxNodes = 20_000

// A Graph is the drawing of a pipeline.
type Graph struct {
	top   frame
	nodes int
	edges []edge
}

// A frame is a part of the drawing that contains nodes and other frames.
type frame struct {
	id, label string
	nodes     []node
	frames    []*frame
}

type node struct {
	id, label string
	about     []string // lines below the label
	shape     shape
}

type shape uint8

const (
	box shape = iota
	choice
	question
	fork
	gather
	scope
)

type edge struct {
	from, to  string
	label     string
	kind      kind
	fromFrame string // if not "", the arrow starts at this frame, which contains the node from
}

type kind uint8

const (
	next kind = iota
	lane
	back
	heal
	runs
)

// A part is an ashlar that has been drawn and will be connected to others by its composite.
type part struct {
	entry    string // "" if there is nothing to draw
	exits    []exit
	optional bool // whether the part may be skipped
}

type exit struct {
	id   string
	kind kind // kind of the arrow that starts here
}

// Of returns the drawing of a pipeline, or an error if the pipeline has too many steps.
func Of(p stone.Ashlar) (*Graph, error) {
	g := &Graph{}
	g.draw(&g.top, p, box)
	if g.nodes > maxNodes {
		return nil, fmt.Errorf("the pipeline has more than %d steps: draw a part of it", maxNodes)
	}
	return g, nil
}

func (g *Graph) node(in *frame, label string, s shape) string {
	g.nodes++
	id := fmt.Sprintf("n%d", g.nodes)
	in.nodes = append(in.nodes, node{id: id, label: label, shape: s})
	return id
}

// leaf adds a node for a leaf, with its most important details.
func (g *Graph) leaf(in *frame, a stone.Ashlar, s shape) string {
	id := g.node(in, a.Name(), s)
	in.nodes[len(in.nodes)-1].about = about(a)
	return id
}

// about returns lines that name the model, tools or capabilities that a leaf calls, and its effects.
func about(a stone.Ashlar) (lines []string) {
	var tools []string
	for name, value := range tree.Facts(a) {
		switch {
		case name == "tool" && a.Form() == "leaf":
			tools = append(tools, value)
		case name == "model" || name == "intent" || name == "capability":
			lines = append(lines, name+" "+value)
		}
	}
	if tools != nil {
		lines = append(lines, "tools "+strings.Join(tools, ", "))
	}
	if effects := a.Effects(); len(effects) > 0 && a.Form() == "leaf" {
		lines = append(lines, "effects "+strings.Join(effects, ", "))
	}
	return lines
}

func (g *Graph) frame(in *frame, label string) *frame {
	g.nodes++
	f := &frame{id: fmt.Sprintf("f%d", g.nodes), label: label}
	in.frames = append(in.frames, f)
	return f
}

// draw adds an ashlar to a frame. The shape is used if the ashlar is a leaf.
func (g *Graph) draw(in *frame, a stone.Ashlar, leaf shape) part {
	if g.nodes > maxNodes {
		return part{}
	}
	if a.IsGlue() {
		return g.glue(in, a)
	}
	return g.form(in, a, leaf)
}

func (g *Graph) form(in *frame, a stone.Ashlar, leaf shape) part {
	switch a.Form() {
	case "seq", "flow":
		return g.sequence(in, a.Children(), a.Name())
	case "loop":
		p := g.draw(g.frame(in, a.Name()), a.Children()[0], box)
		again := fmt.Sprintf("again, %d at most", a.Rounds())
		for _, x := range p.exits {
			g.edges = append(g.edges, edge{from: x.id, to: p.entry, label: again, kind: back})
		}
		return p
	case "match":
		return g.match(in, a)
	case "map", "parallel":
		return g.fan(in, a)
	case "reduce":
		return g.draw(in, a.Children()[0], gather)
	case "rescue":
		return g.rescue(in, a)
	}
	if len(a.Children()) > 0 { // a composite defined by the user, or a leaf with helpers
		f := g.frame(in, "")
		hub := g.leaf(f, a, scope)
		for _, c := range a.Children() {
			p := g.draw(f, c, box)
			g.edges = append(g.edges, edge{from: hub, to: p.entry, label: "runs", kind: runs})
		}
		return alone(hub)
	}
	if len(tree.Questions(a)) > 0 {
		leaf = question
	}
	return alone(g.leaf(in, a, leaf))
}

func alone(id string) part { return part{entry: id, exits: []exit{{id, next}}} }

// sequence draws an arrow from each step to the next, and an additional arrow that bypasses each optional step.
func (g *Graph) sequence(in *frame, steps []stone.Ashlar, name string) (whole part) {
	if len(steps) == 0 {
		return alone(g.node(in, name, box))
	}
	for _, s := range steps {
		p := g.draw(in, s, box)
		switch {
		case p.entry == "":
		case whole.entry == "":
			whole = p
		default:
			from := whole.exits
			label := ""
			if p.optional {
				label = "when"
			}
			for _, x := range from {
				g.edges = append(g.edges, edge{from: x.id, to: p.entry, label: label, kind: x.kind})
			}
			if p.optional {
				p.exits = append(p.exits, whole.exits...)
			}
			whole.exits, whole.optional = p.exits, whole.optional && p.optional
		}
	}
	return whole
}

// glue draws the visible parts of glue. A match with only one visible branch is a guard; the branch is optional.
func (g *Graph) glue(in *frame, a stone.Ashlar) part {
	switch a.Form() {
	case "leaf":
		return part{}
	case "match":
		shown := slices.DeleteFunc(a.Children(), tree.Hidden)
		switch len(shown) {
		case 0:
			return part{}
		case 1:
		default:
			return g.match(in, a)
		}
		p := g.draw(in, shown[0], box)
		p.optional = true
		return p
	case "rescue":
		return g.rescue(in, a)
	}
	return g.sequence(in, a.Children(), a.Name())
}

func (g *Graph) match(in *frame, a stone.Ashlar) part {
	whole := part{entry: g.node(in, a.Name(), choice)}
	keys := a.Branches()
	for i, c := range a.Children() {
		p := g.draw(in, c, box)
		g.edges = append(g.edges, edge{from: whole.entry, to: p.entry, label: branch(keys[i])})
		whole.exits = append(whole.exits, p.exits...)
	}
	return whole
}

// branch returns a string unchanged and any other value as JSON.
func branch(key string) string {
	var s string
	if json.Unmarshal([]byte(key), &s) == nil {
		return s
	}
	return key
}

func (g *Graph) fan(in *frame, a stone.Ashlar) part {
	whole := part{entry: g.node(in, a.Name(), fork)}
	label := ""
	if a.Form() == "map" {
		label = "each"
	}
	for _, c := range a.Children() {
		p := g.draw(in, c, box)
		g.edges = append(g.edges, edge{from: whole.entry, to: p.entry, label: label, kind: lane})
		for _, x := range p.exits {
			whole.exits = append(whole.exits, exit{x.id, lane})
		}
	}
	return whole
}

func (g *Graph) rescue(in *frame, a stone.Ashlar) part {
	children := a.Children()
	if tree.Hidden(children[1]) {
		return g.draw(in, children[0], box)
	}
	body := g.frame(in, a.Name())
	whole := g.draw(body, children[0], box)
	healing := g.draw(in, children[1], box)
	g.edges = append(g.edges, edge{from: whole.entry, to: healing.entry, label: "on failure", kind: heal, fromFrame: body.id})
	whole.exits = append(whole.exits, healing.exits...)
	return whole
}
