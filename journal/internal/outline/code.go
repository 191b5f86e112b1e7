package outline

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/stonelayer/stone/budget"
)

// form is the version of the encoding. Trees with another version are rebuilt.
const form = 1

var (
	// ErrForm means that a block cannot be decoded.
	ErrForm = errors.New("a block of the outline cannot be read")
	// ErrMoved means that the stored tree has changed since it was opened.
	ErrMoved = errors.New("the outline was changed meanwhile")
)

// Flush calls put with each changed block.
func (t *Tree) Flush(put func(Block) error) error {
	if err := t.root.flush("", t.At, put); err != nil {
		return err
	}
	w := &writer{}
	w.int(form)
	w.int(int(t.At))
	w.node(t.root)
	w.int(len(t.places))
	for _, at := range slices.Sorted(maps.Keys(t.places)) {
		p := t.places[at]
		w.text(p.Path)
		w.text(p.First)
		w.int(p.Visits)
		w.int(p.Open)
		w.int(p.Recorded)
		w.int(p.Failed)
		w.usage(p.Usage)
	}
	t.stored = t.At
	return put(Block{Data: w.out})
}

// flush calls put with each changed block of the node at path and of the nodes below it.
func (n *node) flush(path string, at int64, put func(Block) error) error {
	for _, k := range n.kids {
		if err := k.flush(path+k.rest, at, put); err != nil {
			return err
		}
	}
	if !n.out && n.inside() > mostInside {
		n.spill()
	}
	for _, name := range slices.Sorted(maps.Keys(n.slots)) {
		s := n.slots[name]
		if !s.dirty {
			continue
		}
		w := &writer{out: make([]byte, 0, 64*len(s.kids))}
		w.int(int(at))
		w.int(len(s.kids))
		for _, k := range s.kids {
			if err := k.flush(path+k.rest, at, put); err != nil {
				return err
			}
			w.node(k)
		}
		if err := put(Block{Parent: path, Slot: name, Counts: encode(at, s.counts()), Data: w.out}); err != nil {
			return err
		}
		s.dirty = false
	}
	return nil
}

// inside returns the number of nodes that are stored in the same block as n, below it.
func (n *node) inside() (sum int) {
	for _, k := range n.kids {
		sum += 1 + k.inside()
	}
	return sum
}

func encode(at int64, c Counts) []byte {
	w := &writer{}
	w.int(int(at))
	w.counts(c)
	return w.out
}

func (t *Tree) decode(text []byte) (Counts, error) {
	r := t.reading(text)
	c := r.counts()
	return c, r.err
}

// reading returns a reader for the data of a block. The data starts with the position of the block's tree.
func (t *Tree) reading(data []byte) *reader {
	r := &reader{in: data}
	if at := int64(r.int()); at > t.stored && r.err == nil {
		r.in, r.err = nil, ErrMoved
	}
	return r
}

type writer struct{ out []byte }

func (w *writer) int(n int)     { w.out = binary.AppendUvarint(w.out, uint64(max(n, 0))) }
func (w *writer) text(s string) { w.int(len(s)); w.out = append(w.out, s...) }
func (w *writer) flags(b byte)  { w.out = append(w.out, b) }
func (w *writer) float(f float64) {
	w.out = binary.LittleEndian.AppendUint64(w.out, math.Float64bits(f))
}

func (w *writer) counts(c Counts) {
	for _, n := range c {
		w.int(n)
	}
}

func (w *writer) usage(u budget.Usage) {
	if u == (budget.Usage{}) {
		w.flags(0)
		return
	}
	if u.Estimated {
		w.flags(2)
	} else {
		w.flags(1)
	}
	w.int(u.InputTokens)
	w.int(u.OutputTokens)
	w.int(u.CacheReadTokens)
	w.int(u.CacheWriteTokens)
	w.float(u.USD)
}

// The flags of a node.
const (
	isOut  = 1 << iota
	isOnly // the node has one child and no step, so its sums equal the child's
	isLeaf // the node has one step and no child, so its sums equal the step's
	usesNothing
)

func (w *writer) node(n *node) {
	w.text(n.rest)
	var flags byte
	if n.out {
		flags |= isOut
	}
	only := !n.out && len(n.own) == 0 && len(n.kids) == 1
	if only {
		flags |= isOnly
	}
	leaf := !n.out && len(n.own) == 1 && len(n.kids) == 0
	if leaf {
		flags |= isLeaf
	}
	if n.Usage == (budget.Usage{}) {
		flags |= usesNothing
	}
	w.flags(flags)
	if !only {
		w.int(int(n.first))
		w.int(int(n.Started))
		w.int(int(max(n.Ended-n.Started, -1) + 1))
	}
	if !only && !leaf {
		w.int(n.Below)
		w.int(n.Open)
		w.int(n.Recorded)
		w.int(n.Failed)
		if flags&usesNothing == 0 {
			w.usage(n.Usage)
		}
	}
	w.int(len(n.own))
	for _, own := range n.own {
		w.text(own.Kind)
		w.flags(byte(own.What))
		w.int(own.Attempts)
		w.int(own.Failures)
		w.int(int(own.Seq))
		if flags&usesNothing == 0 {
			w.usage(own.Usage)
		}
	}
	if n.out {
		w.counts(n.counts)
		w.text(n.top)
		return
	}
	w.int(len(n.kids))
	for _, k := range n.kids {
		w.node(k)
	}
}

type reader struct {
	in  []byte
	err error
}

func (r *reader) int() int {
	n, size := binary.Uvarint(r.in)
	if size <= 0 || n > math.MaxInt64 {
		r.fail()
		return 0
	}
	r.in = r.in[size:]
	return int(n)
}

func (r *reader) fail() {
	if r.in = nil; r.err == nil {
		r.err = ErrForm
	}
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.in) {
		r.fail()
		return nil
	}
	out := r.in[:n]
	r.in = r.in[n:]
	return out
}

func (r *reader) text() string { return string(r.bytes(r.int())) }

func (r *reader) flags() byte {
	if b := r.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// length reads the number of parts that follow. Each part is at least one byte long.
func (r *reader) length() int {
	n := r.int()
	if n > len(r.in) {
		r.fail()
		return 0
	}
	return n
}

func (r *reader) counts() (c Counts) {
	for i := range c {
		c[i] = r.int()
	}
	return c
}

func (r *reader) usage() (u budget.Usage) {
	kind := r.flags()
	if kind == 0 {
		return u
	}
	u = budget.Usage{InputTokens: r.int(), OutputTokens: r.int(), CacheReadTokens: r.int(), CacheWriteTokens: r.int(), Estimated: kind == 2}
	if b := r.bytes(8); len(b) == 8 {
		u.USD = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return u
}

func (r *reader) node() *node {
	n := &node{key: keyOf(r.text())}
	flags := r.flags()
	n.out = flags&isOut != 0
	if flags&isOnly == 0 {
		n.first = int64(r.int())
		n.Started = int64(r.int())
		n.Ended = n.Started + int64(r.int()) - 1
		if n.Ended < n.Started {
			n.Ended = 0
		}
	}
	if flags&(isOnly|isLeaf) == 0 {
		n.Below, n.Open, n.Recorded, n.Failed = r.int(), r.int(), r.int(), r.int()
		if flags&usesNothing == 0 {
			n.Usage = r.usage()
		}
	}
	for range r.length() {
		own := Own{Kind: r.text(), What: What(r.flags()), Attempts: r.int(), Failures: r.int(), Seq: int64(r.int())}
		if flags&usesNothing == 0 {
			own.Usage = r.usage()
		}
		n.own = append(n.own, own)
	}
	if n.out {
		n.counts, n.top = r.counts(), r.text()
		return n
	}
	for range r.length() {
		if r.err != nil {
			break
		}
		n.kids = append(n.kids, r.node())
	}
	switch {
	case flags&isOnly != 0 && len(n.kids) == 1:
		n.Sums, n.first = n.kids[0].Sums, n.kids[0].first
		n.Below += len(n.kids[0].own)
	case flags&isLeaf != 0 && len(n.own) == 1:
		n.Usage = n.own[0].Usage
		switch n.own[0].What {
		case Started:
			n.Open = 1
		case Failed:
			n.Failed = 1
			fallthrough
		default:
			n.Recorded = 1
		}
	}
	return n
}

func (t *Tree) readSlot(data []byte) (*slot, error) {
	r, s := t.reading(data), new(slot)
	for range r.length() {
		if r.err == nil {
			s.kids = append(s.kids, r.node())
		}
	}
	return s, r.err
}

func (t *Tree) readHead(data []byte) error {
	r := &reader{in: data}
	if r.int() != form {
		return ErrForm
	}
	t.At = int64(r.int())
	t.stored = t.At
	t.root = r.node()
	for range r.length() {
		p := &Place{Path: r.text(), First: r.text(), Visits: r.int(), Open: r.int(), Recorded: r.int(), Failed: r.int(), Usage: r.usage()}
		t.places[p.Path] = p
	}
	return r.err
}
