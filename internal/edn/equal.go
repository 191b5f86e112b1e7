package edn

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

// fewItems is the maximum number of entries that find searches without an index, in a map or set.
const fewItems = 8

// Equal reports whether two values are equal, regardless of their positions. See the package comment for the rules.
func (v Value) Equal(w Value) bool {
	if v.kind != w.kind && !(v.isSequence() && w.isSequence()) {
		return false
	}
	switch v.kind {
	case KindFloat:
		return v.num == w.num || math.Float64frombits(v.num) == math.Float64frombits(w.num)
	case KindList, KindVector, KindMap, KindSet, KindTagged:
		return v.more == w.more && v.text == w.text || len(v.items()) == len(w.items()) && bytes.Equal(v.appendKey(nil), w.appendKey(nil))
	}
	return v.num == w.num && v.text == w.text
}

func (v Value) isSequence() bool { return v.kind == KindList || v.kind == KindVector }

// appendKey appends a text that represents the value: two values have the same text exactly if they are equal. The items of sets
// and maps are sorted by their texts.
func (v Value) appendKey(dst []byte) []byte {
	kind, num := v.kind, v.num
	switch {
	case kind == KindVector:
		kind = KindList
	case kind == KindFloat && math.Float64frombits(num) == 0:
		num = 0 // also for -0.0
	}
	dst = append(dst, byte(kind))
	dst = binary.AppendUvarint(dst, num)
	dst = binary.AppendUvarint(dst, uint64(len(v.text)))
	dst = append(dst, v.text...)
	items, step := v.items(), stride(kind)
	dst = binary.AppendUvarint(dst, uint64(len(items)))
	if step == 0 {
		for _, item := range items {
			dst = item.appendKey(dst)
		}
		return dst
	}
	texts := make([]string, 0, len(items)/step)
	for entry := range slices.Chunk(items, step) {
		var text []byte
		for _, item := range entry {
			text = item.appendKey(text)
		}
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	for _, text := range texts {
		dst = append(dst, text...)
	}
	return dst
}

// stride returns the distance between two keys of a map, or two elements of a set, in the list of items.
func stride(kind Kind) int {
	switch kind {
	case KindMap:
		return 2
	case KindSet:
		return 1
	}
	return 0
}

// buildIndex builds the index that find uses for a large map or set. If two keys are equal, it returns their positions;
// otherwise, second is 0.
func (c *collection) buildIndex(kind Kind) (first, second int) {
	step := stride(kind)
	if c == nil {
		return 0, 0
	}
	many := len(c.items) > fewItems*step
	if many {
		c.index = make(map[string]uint32, len(c.items)/step)
	}
	for i := 0; i < len(c.items); i += step {
		key := &c.items[i]
		if many {
			text := string(key.appendKey(nil))
			if j, known := c.index[text]; known {
				return int(j), i
			}
			c.index[text] = uint32(i)
		} else if j := linear(c.items[:i], step, key); j >= 0 {
			return j, i
		}
	}
	return 0, 0
}

// find returns the position of a key in a map or set, or -1 if it is missing.
func (c *collection) find(kind Kind, key *Value) int {
	step := stride(kind)
	if c == nil || step == 0 {
		return -1
	}
	if c.index == nil {
		return linear(c.items, step, key)
	}
	if i, known := c.index[string(key.appendKey(nil))]; known {
		return int(i)
	}
	return -1
}

func linear(items []Value, step int, key *Value) int {
	named := key.kind == KindKeyword || key.kind == KindString // nearly all keys are names, and Equal is too slow for them
	for i := 0; i < len(items); i += step {
		if item := &items[i]; item.kind == key.kind && named && item.text == key.text || !named && item.Equal(*key) {
			return i
		}
	}
	return -1
}
