package dag

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// A trie is a persistent hash map whose keys are type names. The method with returns a new trie, which shares all but one path
// with the old one. A nil trie is empty.
type trie[V any] struct {
	bitmap uint32
	slots  []slot[V]
}

type slot[V any] struct {
	hash  uint64
	key   string
	value V
	below *trie[V] // used in place of key and value if several keys share the slot
}

const (
	trieBits  = 5
	trieDepth = 13 // 13 levels of 5 bits use all 64 bits of a hash; below, slots form a list
)

var trieSeed = maphash.MakeSeed()

func (t *trie[V]) get(key string) (V, bool) {
	return t.lookup(maphash.String(trieSeed, key), key)
}

func (t *trie[V]) lookup(hash uint64, key string) (V, bool) {
	for depth := 0; t != nil; depth++ {
		i, taken := t.find(hash, depth, key)
		if !taken {
			break
		}
		s := &t.slots[i]
		if s.below == nil {
			if s.key == key {
				return s.value, true
			}
			break
		}
		t = s.below
	}
	var zero V
	return zero, false
}

// find returns the position of the slot for key, and whether the slot is in use.
func (t *trie[V]) find(hash uint64, depth int, key string) (int, bool) {
	if depth >= trieDepth {
		i := slices.IndexFunc(t.slots, func(s slot[V]) bool { return s.key == key })
		return max(i, 0), i >= 0
	}
	bit := bitAt(hash, depth)
	return bits.OnesCount32(t.bitmap & (bit - 1)), t.bitmap&bit != 0
}

// bitAt returns the bit for the hash in the bitmap of a trie at the given depth.
func bitAt(hash uint64, depth int) uint32 {
	return 1 << (hash >> (depth * trieBits) & (1<<trieBits - 1))
}

// with returns a copy of t with value under key.
func (t *trie[V]) with(key string, value V) *trie[V] {
	return t.insert(0, slot[V]{hash: maphash.String(trieSeed, key), key: key, value: value})
}

func (t *trie[V]) insert(depth int, s slot[V]) *trie[V] {
	if t == nil {
		t = &trie[V]{}
	}
	i, taken := t.find(s.hash, depth, s.key)
	if !taken {
		grown := &trie[V]{bitmap: t.bitmap, slots: slices.Insert(slices.Clip(t.slots), i, s)}
		if depth < trieDepth {
			grown.bitmap |= bitAt(s.hash, depth)
		}
		return grown
	}
	changed := &trie[V]{bitmap: t.bitmap, slots: slices.Clone(t.slots)}
	switch at := &changed.slots[i]; {
	case at.below != nil:
		at.below = at.below.insert(depth+1, s)
	case at.key == s.key:
		*at = s
	default:
		var below *trie[V]
		*at = slot[V]{below: below.insert(depth+1, *at).insert(depth+1, s)}
	}
	return changed
}

// keys calls fn for every key.
func (t *trie[V]) keys(fn func(string)) {
	if t == nil {
		return
	}
	for i := range t.slots {
		if s := &t.slots[i]; s.below != nil {
			s.below.keys(fn)
		} else {
			fn(s.key)
		}
	}
}
