// Package outline sums up the steps of a run, branch by branch. A journal stores these sums in addition to the records, so
// showing a run with a million steps requires reading only a few sums.
//
// A [Tree] has a node for each path that leads to a step. A node with few nodes below it is stored in its parent's block. The
// children of any other node are stored in blocks of their own, with up to 128 neighboring children in each: see [Block]. The
// outline of a fan-out with a million lanes therefore consists of one small node and about 8,000 blocks. Showing a page of lanes
// reads one or two of these blocks, and recording a step changes one.
//
// A Tree depends only on the rows of the run. To bring it up to date, a reader folds the rows after the tree's position, or all
// rows if no tree is stored.
package outline

import (
	"context"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/step"
)

// What is the kind of an event.
type What byte

const (
	Started   What = iota // the work of the step starts
	Done                  // the step has a result
	Failed                // the result of the step is a failure
	Left                  // an attempt at the step ended without a result
	Forgotten             // the failure of the step was discarded, so the step is open again
)

// An Event is the information in a row about one step. A row may contain several events.
type Event struct {
	What  What
	Path  string
	Kind  string
	Seq   int64 // number of the row
	Place int   // index within the row
	At    int64 // Unix milliseconds
	Usage budget.Usage
}

// A Block is a stored part of a tree. The block with an empty Slot is the root. Each other block contains children of the node at
// Parent whose keys differ only in the last bits of the number.
type Block struct {
	Parent, Slot string
	Counts       []byte // encoded counts of the children by state
	Data         []byte
}

// A Store stores the blocks of a tree.
type Store interface {
	// Block returns the data of a block, or nil if it is not in the store.
	Block(ctx context.Context, parent, slot string) ([]byte, error)
	// Blocks returns all blocks of a parent in any order. Their Data is nil unless whole is set.
	Blocks(ctx context.Context, parent string, whole bool) ([]Block, error)
}

// State is the state of a branch.
type State byte

const (
	IsDone State = iota
	IsOpen
	IsPartly
	IsFailed
	states
)

// Counts are the numbers of branches in each state.
type Counts [states]int

func (c Counts) sum() (n int) {
	for _, i := range c {
		n += i
	}
	return n
}

// Own describes a step whose path is the path of the node.
type Own struct {
	Kind     string
	What     What // Started, Done or Failed
	Attempts int
	Failures int
	Seq      int64 // number of the row with the step's result or its last start
	Usage    budget.Usage
}

// Sums are the sums over the steps of a branch.
type Sums struct {
	Below                  int // number of steps below the path
	Open, Recorded, Failed int // number of steps at the path and below
	Started, Ended         int64
	Usage                  budget.Usage
}

// node sums up the steps at a path and below it.
type node struct {
	Sums
	key          // end of the path, after the parent's path
	at    *Place // place of the node; nil until it is looked up
	first int64  // row and place of the node's first event
	own   []Own

	kids []*node // the children, unless out is set

	out    bool             // the children are stored in blocks
	counts Counts           // counts of the children
	top    string           // highest slot of the node
	slots  map[string]*slot // blocks that were read or changed, by slot
}

// slot is a decoded Block.
type slot struct {
	kids  []*node // sorted by key
	dirty bool
}

// Tree is the outline of a run up to some row. It reads blocks from its store as needed.
type Tree struct {
	At     int64 // number of the last row that the tree includes
	root   *node
	places map[string]*Place
	store  Store
	stored int64  // value of At in the stored root
	chain  []link // used by Fold: the nodes on the path of an event
}

// Open returns the tree in a store, or an empty tree if the store has none.
func Open(ctx context.Context, store Store) (*Tree, error) {
	t := &Tree{root: new(node), places: map[string]*Place{}, store: store}
	data, err := store.Block(ctx, "", "")
	if err != nil || data == nil {
		return t, err
	}
	return t, t.readHead(data)
}

const (
	mostInside = 16 // maximum number of nodes stored in the same block as their parent
	placeBits  = 16 // bits of a place in a row
	slotBits   = 7
)

// Fold adds an event to the tree.
func (t *Tree) Fold(ctx context.Context, e Event) error {
	if e.Kind == step.Value { // a value is a part of its step's work
		t.At = max(t.At, e.Seq)
		return nil
	}
	t.chain = append(t.chain[:0], link{t.root, nil})
	for start := 0; start < len(e.Path); {
		end := next(e.Path, start)
		kid, err := t.kid(ctx, t.chain[len(t.chain)-1].node, e.Path[:start], e.Path[start:end], e.Seq<<placeBits|int64(e.Place))
		if err != nil {
			return err
		}
		t.chain, start = append(t.chain, kid), end
	}
	t.At = max(t.At, e.Seq)
	last := t.chain[len(t.chain)-1].node
	before, known := last.state(), last.known()
	d := last.note(e)
	t.place(last, e, d)
	for i := len(t.chain) - 1; i >= 0; i-- {
		n := t.chain[i].node
		if n != last {
			before, known = n.state(), n.known()
		}
		n.add(e, d, n == last)
		if s := t.chain[i].slot; s != nil {
			up := t.chain[i-1].node
			if known {
				up.counts[before]--
			}
			up.counts[n.state()]++
			s.dirty = true
		}
	}
	return nil
}

// link is a node on a path, together with the parent's block that contains it, if the parent has blocks.
type link struct {
	*node
	slot *slot
}

func (n *node) known() bool { return n.Open+n.Recorded > 0 }

// next returns the end of the path segment that begins at start.
func next(path string, start int) int {
	if end := strings.IndexAny(path[start+1:], "/[~"); end >= 0 {
		return start + 1 + end
	}
	return len(path)
}

// delta is the change that an event makes to the counts of steps.
type delta struct {
	fresh, open, recorded, failed int
	anew                          bool // the step is repeated: it already had a result
}

// note adds an event for a step whose path is the path of the node.
func (n *node) note(e Event) (d delta) {
	var own *Own
	for i := range n.own {
		if n.own[i].Kind == e.Kind {
			own = &n.own[i]
		}
	}
	if own == nil {
		n.own = append(n.own, Own{Kind: e.Kind})
		own = &n.own[len(n.own)-1]
		d.fresh, d.open = 1, 1
	}
	was := own.What
	own.Usage = sum(own.Usage, e.Usage)
	switch e.What {
	case Started:
		own.Attempts++
		if was == Started {
			own.Seq = e.Seq
		}
		d.anew = was != Started
		return d
	case Left:
		own.Failures++
		return d
	case Forgotten:
		own.Failures++
		if was == Started {
			return d
		}
		own.What = Started
		d.open, d.recorded = d.open+1, -1
	default:
		own.What, own.Seq = e.What, e.Seq
		if was == Started {
			d.open, d.recorded = d.open-1, 1
		}
		if e.What == Failed {
			d.failed = 1
		}
	}
	if was == Failed {
		d.failed--
	}
	return d
}

// add adds an event for a step at the node's path (if here is set) or below it.
func (n *node) add(e Event, d delta, here bool) {
	n.Open, n.Recorded, n.Failed = n.Open+d.open, n.Recorded+d.recorded, n.Failed+d.failed
	if !here {
		n.Below += d.fresh
	}
	if e.What == Forgotten {
		return
	}
	n.Usage = sum(n.Usage, e.Usage)
	if here && d.anew && n.Below == 0 { // a repeated step does not count from its first start
		n.Started, n.Ended = 0, 0
	}
	if e.What != Left && (n.Started == 0 || e.At < n.Started) {
		n.Started = e.At
	}
	if e.What == Done || e.What == Failed {
		n.Ended = max(n.Ended, e.At)
	}
}

// sum adds two usages. It is faster if b is zero, as for most steps.
func sum(a, b budget.Usage) budget.Usage {
	if b == (budget.Usage{}) {
		return a
	}
	return a.Add(b)
}

func (n *node) state() State {
	for _, own := range n.own {
		if own.What == Failed {
			return IsFailed
		}
	}
	switch {
	case n.Open > 0:
		return IsOpen
	case n.Failed == 0:
		return IsDone
	case n.Failed == n.Recorded:
		return IsFailed
	}
	return IsPartly
}

// kid returns the child with the key rest of the node at path. It creates a missing child unless first is 0.
func (t *Tree) kid(ctx context.Context, n *node, path, rest string, first int64) (link, error) {
	if !n.out {
		for _, k := range n.kids {
			if k.rest == rest {
				return link{k, nil}, nil
			}
		}
		if first == 0 {
			return link{}, nil
		}
		if len(n.kids) < mostInside {
			k := &node{key: keyOf(rest), first: first}
			n.kids = append(n.kids, k)
			return link{k, nil}, nil
		}
		n.spill()
	}
	key := keyOf(rest)
	name := key.slot()
	s, err := t.slot(ctx, n, path, name)
	if err != nil || s == nil && first == 0 {
		return link{}, err
	}
	if s == nil {
		s = n.make(name)
	}
	at, found := s.find(key)
	if found {
		return link{s.kids[at], s}, nil
	}
	if first == 0 {
		return link{}, nil
	}
	k := &node{key: key, first: first}
	s.insert(at, k)
	return link{k, s}, nil
}

// slot returns the block name of the node at path, or nil if there is none.
func (t *Tree) slot(ctx context.Context, n *node, path, name string) (*slot, error) {
	if s := n.slots[name]; s != nil || name > n.top {
		return s, nil
	}
	data, err := t.store.Block(ctx, path, name)
	if err != nil || data == nil {
		return nil, err
	}
	s, err := t.readSlot(data)
	if err == nil {
		n.keep(name, s)
	}
	return s, err
}

func (n *node) keep(name string, s *slot) {
	if n.slots == nil {
		n.slots = map[string]*slot{}
	}
	n.slots[name] = s
}

func (n *node) make(name string) *slot {
	s := &slot{dirty: true}
	n.keep(name, s)
	n.top = max(n.top, name)
	return s
}

// spill moves the children of a node into blocks.
func (n *node) spill() {
	n.out = true
	for _, k := range n.kids {
		s := n.slots[k.slot()]
		if s == nil {
			s = n.make(k.slot())
		}
		at, _ := s.find(k.key)
		s.insert(at, k)
		n.counts[k.state()]++
	}
	n.kids = nil
}
