package dag

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// An Excerpt has the nodes that queries read in a DAG, so that the queries can run in
// another process. It is written as JSON. Its size depends on the nodes read, not on the
// DAG; only [Everything] takes the whole DAG.
type Excerpt struct {
	nodes  []*Node // the nodes of one type are in append order
	line   []*Node // the nodes on the current line, in its order; reading starts at the last one
	latest *Node
	whole  *DAG       // for Everything
	apart  map[int]ID // contents that are elsewhere, by the position of their node
}

// NewExcerpt returns the excerpt of d for the queries, without a failure in flight.
func NewExcerpt(d DAG, queries ...Query) Excerpt {
	d = d.Within(nil).WithoutFailure()
	var x Excerpt
	if d.log == nil {
		return x
	}
	x.latest = d.Latest()
	known := map[ID]bool{}
	add := func(n *Node) {
		if n != nil && !known[n.id] {
			known[n.id] = true
			x.nodes = append(x.nodes, n)
		}
	}
	for _, q := range queries {
		switch q.mode {
		case everything:
			return Excerpt{whole: &d}
		case all: // first, so that the others do not disturb the order
			for _, n := range d.log.all(nameOf(q.typ)) {
				add(n)
			}
		}
	}
	ends := map[ID]bool{} // how far back the order on the line counts
	for _, q := range queries {
		if q.mode == since {
			if end := d.here().nearest(nameOf(q.after)); end != nil {
				ends[end.id] = true
				add(end)
			}
		}
		if q.mode == since || q.mode == nearest {
			for _, n := range q.answer(d, false) {
				add(n)
			}
		}
	}
	add(d.here())
	add(x.latest)
	x.line = lineOf(d.here(), queries, known, ends)
	return x
}

// lineOf returns the nodes of an excerpt that are on the line from here: in their
// order as far back as the ends, and before them the nearest ones of the queries, whose
// order does not matter.
func lineOf(here *Node, queries []Query, known, ends map[ID]bool) []*Node {
	var line []*Node
	placed := map[ID]bool{}
	for n := here; n != nil && (n == here || len(ends) > 0); n = n.Parent() {
		if known[n.id] {
			line, placed[n.id] = append(line, n), true
		}
		delete(ends, n.id)
	}
	for _, q := range queries {
		if q.mode != nearest {
			continue
		}
		if n := here.nearest(nameOf(q.typ)); n != nil && !placed[n.id] {
			line, placed[n.id] = append(line, n), true
		}
	}
	slices.Reverse(line)
	return line
}

// DAG returns a DAG in which the queries find the same nodes as in the original, with
// the same ids. It has no other nodes, and the nodes have other parents.
func (x Excerpt) DAG() DAG {
	switch {
	case x.whole != nil:
		return *x.whole
	case len(x.nodes) == 0:
		return DAG{}
	}
	copies := make(map[ID]*Node, len(x.nodes))
	g := &group{}
	for _, n := range x.nodes {
		c := &Node{id: n.id, typ: n.typ, content: n.content, at: n.at, meta: n.meta}
		c.self[0], copies[n.id] = c, c
		g.nodes = append(g.nodes, c)
	}
	var here *Node
	for _, n := range x.line {
		if here != nil {
			copies[n.id].parents = []*Node{here}
		}
		here = copies[n.id]
	}
	g.heads, g.from = []*Node{copies[x.latest.id]}, []*Node{here}
	return DAG{log: &entry{group: g, count: len(g.nodes)}}
}

// Detach returns the excerpt without the contents that have at least size bytes, and these
// contents by their digests. Excerpts that share large contents can so travel without them. An
// excerpt for [Everything] stays whole.
func (x Excerpt) Detach(size int) (Excerpt, map[ID]json.RawMessage) {
	var contents map[ID]json.RawMessage
	for i, n := range x.nodes {
		if len(n.content) < size {
			continue
		}
		if contents == nil {
			contents, x.apart = map[ID]json.RawMessage{}, maps.Clone(x.apart)
		}
		if x.apart == nil {
			x.apart = map[int]ID{}
		}
		digest := ID(sha256.Sum256([]byte(n.content)))
		contents[digest], x.apart[i] = json.RawMessage(n.content), digest
	}
	return x, contents
}

// Apart returns the digests of the contents that Detach has taken out.
func (x Excerpt) Apart() []ID { return slices.Collect(maps.Values(x.apart)) }

// Attach puts contents back into an excerpt that was read from JSON.
func (x *Excerpt) Attach(contents map[ID]json.RawMessage) error {
	for i, digest := range x.apart {
		content, ok := contents[digest]
		if !ok || ID(sha256.Sum256(content)) != digest {
			return fmt.Errorf("excerpt: the content with the digest %s is missing or was changed", digest)
		}
		x.nodes[i].content = string(content)
	}
	x.apart = nil
	return nil
}

// excerpt is the JSON form of an Excerpt. Line and Latest are positions in Nodes.
type excerpt struct {
	Nodes  []excerptNode `json:"nodes,omitempty"`
	Line   []int         `json:"line,omitempty"`
	Latest int           `json:"latest,omitempty"`
	Whole  string        `json:"whole,omitempty"` // in the format of Write
}

type excerptNode struct {
	ID      ID                `json:"id"`
	Type    string            `json:"type"`
	Content json.RawMessage   `json:"content,omitempty"`
	Apart   ID                `json:"apart,omitzero"` // digest of a content that is elsewhere
	Meta    map[string]string `json:"meta,omitempty"`
	Time    time.Time         `json:"time,omitzero"`
}

// MarshalJSON writes the excerpt.
func (x Excerpt) MarshalJSON() ([]byte, error) {
	var out excerpt
	if x.whole != nil {
		var all bytes.Buffer
		if err := Write(&all, *x.whole); err != nil {
			return nil, err
		}
		out.Whole = all.String()
		return json.Marshal(out)
	}
	at := make(map[ID]int, len(x.nodes))
	for i, n := range x.nodes {
		at[n.id] = i
		node := excerptNode{ID: n.id, Type: n.typ, Apart: x.apart[i], Meta: n.meta, Time: n.Time()}
		if node.Apart == (ID{}) {
			node.Content = n.Content()
		}
		out.Nodes = append(out.Nodes, node)
	}
	for _, n := range x.line {
		out.Line = append(out.Line, at[n.id])
	}
	if x.latest != nil {
		out.Latest = at[x.latest.id]
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the form that MarshalJSON writes. It does not check that an id
// matches its node: that would need all ancestors of the node.
func (x *Excerpt) UnmarshalJSON(data []byte) error {
	var in excerpt
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*x = Excerpt{}
	if in.Whole != "" {
		d, err := Read(bytes.NewReader([]byte(in.Whole)))
		x.whole = &d
		return err
	}
	for i, n := range in.Nodes {
		if n.Apart != (ID{}) {
			if x.apart == nil {
				x.apart = map[int]ID{}
			}
			x.apart[i], n.Content = n.Apart, json.RawMessage("null")
		}
		node, err := NewNode(Spec{Type: n.Type, Content: n.Content, Meta: n.Meta, Time: n.Time})
		if err != nil {
			return err
		}
		node.id = n.ID
		x.nodes = append(x.nodes, node)
	}
	if len(x.nodes) == 0 {
		return nil
	}
	if len(in.Line) == 0 || in.Latest < 0 || in.Latest >= len(x.nodes) {
		return errors.New("excerpt: want a line and the latest node")
	}
	seen := make(map[int]bool, len(in.Line))
	for _, i := range in.Line {
		if i < 0 || i >= len(x.nodes) || seen[i] {
			return fmt.Errorf("excerpt: want each number on the line to be a node, and once: got %d", i)
		}
		seen[i], x.line = true, append(x.line, x.nodes[i])
	}
	x.latest = x.nodes[in.Latest]
	return nil
}
