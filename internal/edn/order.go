package edn

import (
	"cmp"
	"slices"
	"strings"
)

// sorted returns the items of a map or set in the order in which they are written.
func (v Value) sorted() []Value {
	step := stride(v.kind)
	if len(v.items()) <= step {
		return v.items()
	}
	if known := v.more.order.Load(); known != nil {
		return *known
	}
	type entry struct{ key, value Value }
	entries := make([]entry, 0, v.Len())
	for i := 0; i < len(v.more.items); i += step {
		entries = append(entries, entry{v.more.items[i], v.more.items[i+step-1]})
	}
	slices.SortFunc(entries, func(a, b entry) int { return order(a.key, b.key) })
	out := make([]Value, 0, len(v.more.items))
	for _, e := range entries {
		out = append(out, e.key)
		if step == 2 {
			out = append(out, e.value)
		}
	}
	// The result is cached because sets inside sets are compared again at each level, so the time would otherwise grow
	// exponentially with the depth.
	v.more.order.Store(&out)
	return out
}

// order returns -1, 0 or +1, depending on the order of two values, which the package comment describes.
func order(a, b Value) int {
	if a.kind != b.kind {
		return cmp.Compare(a.kind, b.kind)
	}
	switch a.kind {
	case KindInt, KindFloat, KindDecimal:
		return compareNumbers(a, b)
	case KindMap, KindSet:
		return slices.CompareFunc(a.sorted(), b.sorted(), order)
	case KindList, KindVector:
		return slices.CompareFunc(a.items(), b.items(), order)
	case KindTagged:
		return cmp.Or(strings.Compare(a.text, b.text), order(a.more.items[0], b.more.items[0]))
	}
	return cmp.Or(cmp.Compare(a.num, b.num), strings.Compare(a.text, b.text))
}
