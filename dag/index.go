package dag

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// The two indexes of a DAG, type → nearest node and type → list of nodes, are
// built when they are asked for and kept in the graph itself, so that appending
// costs nothing and every snapshot that shares a piece of the graph shares its
// index too. A new index is the one before it plus what came since: persistent
// tries make that cheap.

// A trie is a persistent hash map from type names; nil is the empty one.
type trie[V any] struct {
	bitmap uint32
	slots  []slot[V]
}

type slot[V any] struct {
	key   string
	value V
	below *trie[V] // in place of key and value where several keys meet
}

const (
	trieBits  = 5
	trieDepth = 13 // 13 × 5 bits use up the 64 of a hash; below that, slots are a list
)

var trieSeed = maphash.MakeSeed()

func (t *trie[V]) get(key string) (V, bool) {
	hash := maphash.String(trieSeed, key)
	for depth := 0; t != nil; depth++ {
		i, ok := t.find(hash, depth, key)
		if !ok {
			break
		}
		s := &t.slots[i]
		if s.below == nil {
			if s.key == key {
				return s.value, true
			}
			break
		}
		t, hash = s.below, hash>>trieBits
	}
	var zero V
	return zero, false
}

// find returns the place of the slot for key, and whether it is taken.
func (t *trie[V]) find(hash uint64, depth int, key string) (int, bool) {
	if depth >= trieDepth {
		i := slices.IndexFunc(t.slots, func(s slot[V]) bool { return s.key == key })
		return max(i, 0), i >= 0
	}
	bit := uint32(1) << (hash & (1<<trieBits - 1))
	return bits.OnesCount32(t.bitmap & (bit - 1)), t.bitmap&bit != 0
}

// with returns a trie that has value under key and everything else of t.
func (t *trie[V]) with(key string, value V) *trie[V] {
	return t.insert(maphash.String(trieSeed, key), 0, slot[V]{key: key, value: value})
}

func (t *trie[V]) insert(hash uint64, depth int, s slot[V]) *trie[V] {
	if t == nil {
		t = &trie[V]{}
	}
	i, taken := t.find(hash, depth, s.key)
	if !taken {
		grown := &trie[V]{bitmap: t.bitmap, slots: slices.Insert(slices.Clip(t.slots), i, s)}
		if depth < trieDepth {
			grown.bitmap |= 1 << (hash & (1<<trieBits - 1))
		}
		return grown
	}
	changed := &trie[V]{bitmap: t.bitmap, slots: slices.Clone(t.slots)}
	switch old := &changed.slots[i]; {
	case old.below != nil:
		old.below = old.below.insert(hash>>trieBits, depth+1, s)
	case old.key == s.key:
		*old = s
	default:
		rehash := maphash.String(trieSeed, old.key) >> (trieBits * (depth + 1))
		below := (*trie[V])(nil).insert(rehash, depth+1, *old)
		*old = slot[V]{below: below.insert(hash>>trieBits, depth+1, s)}
	}
	return changed
}

// stride is how many nodes a search walks before it makes an index.
const stride = 16

// nearest returns the first node of the type on the first-parent line from n,
// n included, or nil.
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
	// An index half-way back is near enough for the next searches from here
	// and from lanes that start here, and they share it.
	at = n
	for range stride / 2 {
		at = at.Parent()
	}
	found, _ := at.index().get(typ)
	return found
}

// index makes the nearest-index of n out of that of its closest ancestor with one.
func (n *Node) index() *trie[*Node] {
	var index *trie[*Node]
	newest := map[string]*Node{}
	for at := n; at != nil; at = at.Parent() {
		if index = at.near.Load(); index != nil {
			break
		}
		if newest[at.typ] == nil {
			newest[at.typ] = at
		}
	}
	for typ, node := range newest {
		index = index.with(typ, node)
	}
	n.near.Store(index)
	return index
}

// A list holds all nodes of one type up to some place of the log: those of
// earlier lists, then its own.
type list struct {
	before *list
	nodes  []*Node
	count  int // with those before
}

// lists returns the list-index of the log up to e.
func (e *entry) lists() *trie[*list] {
	var index *trie[*list]
	var recent []*entry
	for at := e; at != nil; at = at.prev {
		if index = at.byType.Load(); index != nil {
			break
		}
		recent = append(recent, at)
	}
	if len(recent) == 0 {
		return index
	}
	added := map[string][]*Node{}
	for _, at := range slices.Backward(recent) {
		for _, n := range at.nodes() {
			added[n.typ] = append(added[n.typ], n)
		}
	}
	for typ, nodes := range added {
		before, _ := index.get(typ)
		count := len(nodes)
		if before != nil {
			count += before.count
		}
		index = index.with(typ, &list{before: before, nodes: nodes, count: count})
	}
	e.byType.Store(index)
	return index
}

// all returns the nodes in append order.
func (l *list) all() []*Node {
	if l == nil {
		return nil
	}
	out := make([]*Node, l.count)
	for end := l.count; l != nil; l = l.before {
		end -= copy(out[end-len(l.nodes):end], l.nodes)
	}
	return out
}
