package canon

import (
	"reflect"
	"sync"
	"unsafe"
)

const (
	// maxDepth is the maximum nesting of objects and arrays. The decoder behind AppendJSON has the same limit, so every text that
	// is written can also be read.
	maxDepth = 10_000
	// maxHops is the maximum number of pointers, slices and maps on one path. It limits the stack for chains of pointers that
	// contain no objects or arrays.
	maxHops = 10 * maxDepth
	// Cycles are detected only after freeHops pointers, because few values are that deep. They must be detected before maxDepth,
	// because a cycle could otherwise write a large sibling ten thousand times.
	freeHops = 32
)

// A walk is the state of encoding one value: the current depth, and the pointers on the path. Types with bounded nesting are
// encoded without a walk.
type walk struct {
	depth int
	hops  int
	seen  map[visit]struct{}
}

// A visit identifies a pointer, slice or map on the path. It includes the type and the length, because a struct and its first
// field have the same address, and so do a slice and a prefix of it.
type visit struct {
	p   unsafe.Pointer
	len int
	typ reflect.Type
}

var walks = sync.Pool{New: func() any { return new(walk) }}

func (w *walk) release() {
	*w = walk{}
	walks.Put(w)
}

// enter enters an object or array. The caller leaves it with w.depth--, except after a fault, which ends the walk.
func (w *walk) enter() *fault {
	if w.depth++; w.depth > maxDepth {
		return faultf("nested deeper than %d levels", maxDepth)
	}
	return nil
}

// follow enters a pointer, slice or map. The caller leaves it by calling back.
func (w *walk) follow(v visit) *fault {
	if w.hops++; w.hops <= freeHops {
		return nil
	}
	if w.hops > maxHops {
		return faultf("more than %d pointers deep", maxHops)
	}
	if _, ok := w.seen[v]; ok {
		return faultf("cycle: %s contains itself", v.typ)
	}
	if w.seen == nil {
		w.seen = make(map[visit]struct{})
	}
	w.seen[v] = struct{}{}
	return nil
}

func (w *walk) back(v visit) {
	if w.hops > freeHops {
		delete(w.seen, v)
	}
	w.hops--
}
