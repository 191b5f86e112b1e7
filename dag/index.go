package dag

import "slices"

// The two indexes of a DAG, type → nearest node and type → list of nodes, are built on first use and stored in the graph.
// Appending costs nothing, and snapshots share the indexes of their common part. A new index is a copy of the previous index with
// the newer nodes added, which tries make cheap.

// stride is the number of nodes that a search visits before it builds an index.
const stride = 16

// checkpoint reports whether a copy of the index is stored at the given distance from its start while the index is built. The
// distances double, so that another lane, which shares only the older part, finds a copy at most about as far back as the lanes
// are long.
func checkpoint(distance int) bool {
	return distance == 0 || distance >= stride && distance&(distance-1) == 0
}

// nearest returns the first node of the given type among n, its first parent, the first parent of that, and so on, or nil if
// there is none.
func (n *Node) nearest(typ string) *Node {
	at := n
	for range stride {
		if at == nil || at.typ == typ {
			return at
		}
		if index := at.near.Load(); index != nil {
			found, _ := index.get(typ)
			return found
		}
		at = at.Parent()
	}
	// The next searches from here, and from lanes that start here, share an index half-way back.
	at = n
	for range stride / 2 {
		at = at.Parent()
	}
	found, _ := at.index().get(typ)
	return found
}

// index builds the nearest-node index of n from the index of its closest indexed ancestor.
func (n *Node) index() *trie[*Node] {
	var index *trie[*Node]
	var line []*Node
	for at := n; at != nil; at = at.Parent() {
		if index = at.near.Load(); index != nil {
			break
		}
		line = append(line, at)
	}
	newest := map[string]*Node{}
	for distance, at := range slices.Backward(line) {
		newest[at.typ] = at
		if checkpoint(distance) {
			for typ, node := range newest {
				index = index.with(typ, node)
			}
			clear(newest)
			at.near.Store(index)
		}
	}
	return index
}

// A list holds all nodes of one type up to an entry of the log: first the nodes of the earlier lists, then the list's own nodes.
type list struct {
	before *list
	nodes  []*Node
	lost   []*Node // the items of lost lanes among the nodes of this list and earlier lists
	count  int     // the number of nodes in this list and all earlier lists
}

// and returns the nodes of the list in append order, followed by the nodes in more. It omits the items of lost lanes.
func (l *list) and(more, lost []*Node) []*Node {
	out := more
	if l != nil {
		out = make([]*Node, l.count+len(more))
		copy(out[l.count:], more)
	}
	for ; l != nil; l = l.before {
		copy(out[l.count-len(l.nodes):], l.nodes)
		lost = append(lost, l.lost...)
	}
	if len(lost) == 0 {
		return out
	}
	gone := idSet(lost)
	return slices.DeleteFunc(out, func(n *Node) bool { return gone[n.id] })
}

// itemOfLost returns the item of the lane that was dropped with the failure node n, or nil if the lane has no item.
func itemOfLost(n *Node) *Node {
	if n.typ != Failure.Name() || !lostLane(n) {
		return nil
	}
	return n.Parent()
}

// all returns the nodes of the given type in append order.
func (e *entry) all(typ string) []*Node {
	indexed := e.indexed()
	var recent, lost []*Node
	for at := e; at != indexed; at = at.prev {
		for _, n := range slices.Backward(at.nodes()) {
			if n.typ == typ {
				recent = append(recent, n)
			}
			if item := itemOfLost(n); item != nil && item.typ == typ {
				lost = append(lost, item)
			}
		}
	}
	slices.Reverse(recent)
	var older *list
	if indexed != nil {
		older, _ = indexed.byType.Load().get(typ)
	}
	return older.and(recent, lost)
}

// Types returns the type names of all nodes, each once, in no particular order. It does not read the whole log: the cost
// depends on the number of types. It ignores the view of d.
func (d DAG) Types() []string {
	if d.log == nil {
		return nil
	}
	var out []string
	indexed := d.log.indexed()
	var index *trie[*list]
	if indexed != nil {
		index = indexed.byType.Load()
	}
	index.keys(func(name string) { out = append(out, name) })
	for at := d.log; at != indexed; at = at.prev {
		for _, n := range at.nodes() {
			if _, known := index.get(n.typ); !known && !slices.Contains(out, n.typ) {
				out = append(out, n.typ)
			}
		}
	}
	return out
}

// indexed returns an entry that has a list index and is followed by at most stride nodes. It returns nil if the whole log has at
// most stride nodes and no index.
func (e *entry) indexed() *entry {
	half := e
	for at := e; e.len()-at.len() <= stride; at = at.prev {
		if at == nil || at.byType.Load() != nil {
			return at
		}
		if e.len()-at.len() <= stride/2 {
			half = at
		}
	}
	half.index()
	return half
}

// index builds the list index of e from the index of the last indexed entry.
func (e *entry) index() {
	var index *trie[*list]
	var log []*entry
	for at := e; at != nil; at = at.prev {
		if index = at.byType.Load(); index != nil {
			break
		}
		log = append(log, at)
	}
	added := map[string]*list{}
	of := func(typ string) *list {
		l := added[typ]
		if l == nil {
			l = new(list)
			added[typ] = l
		}
		return l
	}
	for distance, at := range slices.Backward(log) {
		for _, n := range at.nodes() {
			l := of(n.typ)
			l.nodes = append(l.nodes, n)
			if item := itemOfLost(n); item != nil {
				l := of(item.typ)
				l.lost = append(l.lost, item)
			}
		}
		if checkpoint(distance) {
			for typ, l := range added {
				l.before, _ = index.get(typ)
				l.count = l.before.len() + len(l.nodes)
				index = index.with(typ, l)
			}
			clear(added)
			at.byType.Store(index)
		}
	}
}

func (l *list) len() int {
	if l == nil {
		return 0
	}
	return l.count
}
