package canon

import (
	"reflect"
	"sync"
	"unsafe"
)

const (
	// maxDepth is the maximum nesting of objects and arrays. The decoder behind AppendJSON has the same limit, so every written
	// text can be read.
	maxDepth = 10_000
	// maxHops is the maximum number of pointers, slices and maps on one path, for chains that open no object or array. It keeps
	// the stack small.
	maxHops = 10 * maxDepth
	// Cycles are detected only after freeHops pointers: few values are that deep, and a cycle that runs up to maxDepth could
	// write a large sibling ten thousand times.
	freeHops = 32
)

// A walk is the state of one encoding: its depth, and the pointers on the path. Types of
// bounded nesting are encoded without one.
type walk struct {
	depth int
	hops  int
	seen  map[visit]struct{}
}

// A visit identifies a pointer, slice or map on the path. The type and the length count, since a struct and its first field have
// the same address, as do a slice and its prefix.
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

// enter enters an object or array; the caller leaves with w.depth--. After a fault
// the walk is over and need not be left.
func (w *walk) enter() *fault {
	if w.depth++; w.depth > maxDepth {
		return faultf("nested deeper than %d levels", maxDepth)
	}
	return nil
}

// follow enters a pointer, slice or map; the caller leaves with back.
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
