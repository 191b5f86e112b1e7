package edn

import (
	"hash/maphash"
	"math"
	"math/bits"
)

// fewItems is the number of entries up to which a search needs no index.
const fewItems = 8

// Equal reports whether two values are equal, regardless of positions. See the package
// comment for the rules. It takes time linear in their size.
func (v Value) Equal(w Value) bool {
	if v.kind != w.kind && !(v.isSequence() && w.isSequence()) {
		return false
	}
	switch v.kind {
	case KindFloat:
		return v.num == w.num || math.Float64frombits(v.num) == math.Float64frombits(w.num)
	case KindList, KindVector, KindMap, KindSet, KindTagged:
		return v.equalItems(w)
	}
	return v.num == w.num && v.text == w.text
}

func (v Value) isSequence() bool { return v.kind == KindList || v.kind == KindVector }

func (v Value) equalItems(w Value) bool {
	items, others := v.items(), w.items()
	if v.more == w.more && v.text == w.text {
		return true
	}
	// Hashes are cached: without them the comparison of nested sets, each element of one
	// with each of the other, takes quadratic time.
	if len(items) != len(others) || v.text != w.text || v.hash() != w.hash() {
		return false
	}
	switch v.kind {
	case KindSet:
		for _, item := range items {
			if w.more.find(KindSet, &item) < 0 {
				return false
			}
		}
	case KindMap:
		for i := 0; i < len(items); i += 2 {
			j := w.more.find(KindMap, &items[i])
			if j < 0 || !items[i+1].Equal(others[j+1]) {
				return false
			}
		}
	default:
		for i, item := range items {
			if !item.Equal(others[i]) {
				return false
			}
		}
	}
	return true
}

// The seeds differ in each process, so that no text can be prepared whose keys all share
// one place of an index.
var (
	seed         = maphash.MakeSeed()
	seedA, seedB = maphash.String(seed, "a"), maphash.String(seed, "b")
)

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^seedA, b^seedB)
	return high ^ low
}

// hash returns equal numbers for equal values.
func (v Value) hash() uint64 {
	kind := uint64(v.kind)
	switch v.kind {
	case KindString, KindSymbol, KindKeyword:
		return mix(kind, maphash.String(seed, v.text))
	case KindFloat:
		if math.Float64frombits(v.num) == 0 {
			return mix(kind, 0) // -0.0, too
		}
	case KindInt, KindDecimal:
		if v.text != "" {
			return mix(kind^v.num, maphash.String(seed, v.text))
		}
	case KindList, KindVector, KindMap, KindSet, KindTagged:
		return v.hashItems()
	}
	return mix(kind, v.num)
}

func (v Value) hashItems() uint64 {
	kind := v.kind
	if kind == KindVector {
		kind = KindList
	}
	if v.more == nil {
		return mix(uint64(kind), 1)
	}
	if known := v.more.hash.Load(); known != 0 {
		return known
	}
	sum := maphash.String(seed, v.text)
	for i, item := range v.more.items {
		switch {
		case kind == KindSet:
			sum += item.hash()
		case kind != KindMap:
			sum = mix(sum, item.hash())
		case i%2 == 1:
			sum += mix(v.more.items[i-1].hash(), item.hash())
		}
	}
	sum = mix(uint64(kind), sum) | 1
	v.more.hash.Store(sum)
	return sum
}

// stride is the distance between the keys of a map, or the elements of a set.
func stride(kind Kind) int {
	switch kind {
	case KindMap:
		return 2
	case KindSet:
		return 1
	}
	return 0
}

// buildIndex makes a map or set ready for find. If two of its keys are equal it returns
// their places; otherwise second is 0.
//
// The index is a hash table with open addressing: each place contains the position of a
// key plus one, or 0.
func (c *collection) buildIndex(kind Kind) (first, second int) {
	step := stride(kind)
	if c == nil {
		return 0, 0
	}
	many := len(c.items) > fewItems*step
	if many {
		c.index = make([]uint32, 1<<bits.Len(uint(len(c.items)/step*3/2)))
	}
	for i := 0; i < len(c.items); i += step {
		if !many {
			if j := linear(c.items[:i], step, &c.items[i]); j >= 0 {
				return j, i
			}
			continue
		}
		place, j := c.place(&c.items[i])
		if j >= 0 {
			return j, i
		}
		c.index[place] = uint32(i + 1)
	}
	return 0, 0
}

// place returns the place of a key in the index, or a free place and -1.
func (c *collection) place(key *Value) (place uint64, found int) {
	mask := uint64(len(c.index) - 1)
	for place = key.hash() & mask; c.index[place] != 0; place = (place + 1) & mask {
		if at := int(c.index[place] - 1); c.items[at].Equal(*key) {
			return place, at
		}
	}
	return place, -1
}

// find returns the position of the key in a map or set, or -1.
func (c *collection) find(kind Kind, key *Value) int {
	step := stride(kind)
	if c == nil || step == 0 {
		return -1
	}
	if c.index == nil {
		return linear(c.items, step, key)
	}
	_, found := c.place(key)
	return found
}

func linear(items []Value, step int, key *Value) int {
	named := key.kind == KindKeyword || key.kind == KindString // as nearly all keys are; Equal is too slow for them
	for i := 0; i < len(items); i += step {
		if item := &items[i]; item.kind == key.kind && named && item.text == key.text || !named && item.Equal(*key) {
			return i
		}
	}
	return -1
}
