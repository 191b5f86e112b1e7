package outline

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// Branch is a child of a node.
type Branch struct {
	Sums
	Path  string
	State State
	Own   []Own
}

// Level is a page of the branches directly below a path.
type Level struct {
	Sums
	Branches []Branch
	Counts   Counts // counts of all branches
	Next     string // first path on the next page; empty on the last page
	Hidden   int    // number of branches after this page
}

// Page selects branches.
type Page struct {
	From  string // path of the first branch to return; empty to start with the first one
	Only  *State // only branches in this state; nil for all
	Limit int
}

// inOrder is the maximum number of branches that are sorted by their start time. More branches are sorted by name and number.
const inOrder = 2000

// Level returns a page of the branches directly below a path.
func (t *Tree) Level(ctx context.Context, path string, p Page) (l Level, err error) {
	n := t.root
	for start := 0; start < len(path) && n != nil && err == nil; {
		end := next(path, start)
		var kid link
		kid, err = t.kid(ctx, n, path[:start], path[start:end], 0)
		n, start = kid.node, end
	}
	if n == nil || err != nil {
		return l, err
	}
	l.Sums = n.Sums
	l.Started, l.Ended = n.Started, n.Ended
	if n.out {
		l.Counts = n.counts
	} else {
		for _, k := range n.kids {
			l.Counts[k.state()]++
		}
	}
	kids := slices.Clone(n.kids)
	if n.out {
		if l.Counts.sum() > inOrder {
			return l, t.page(ctx, n, path, p, &l)
		}
		if kids, err = t.all(ctx, n, path); err != nil {
			return l, err
		}
	}
	slices.SortStableFunc(kids, func(a, b *node) int { return cmp.Compare(a.first, b.first) })
	kids = slices.DeleteFunc(kids, func(k *node) bool { return p.Only != nil && k.state() != *p.Only })
	at := max(slices.IndexFunc(kids, func(k *node) bool { return path+k.rest == p.From }), 0)
	l.take(kids[at:], path, p.Limit)
	if rest := len(kids) - at - len(l.Branches); rest > 0 {
		l.Next, l.Hidden = path+kids[len(kids)-rest].rest, rest
	}
	return l, nil
}

func (l *Level) take(kids []*node, path string, limit int) {
	for _, k := range kids {
		if len(l.Branches) == limit {
			return
		}
		l.Branches = append(l.Branches, Branch{Sums: k.Sums, Path: path + k.rest, State: k.state(), Own: k.own})
	}
}

// all returns all children of the node at path.
func (t *Tree) all(ctx context.Context, n *node, path string) (kids []*node, err error) {
	blocks, err := t.store.Blocks(ctx, path, true)
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		if n.slots[b.Slot] != nil || b.Slot == "" {
			continue
		}
		s, err := t.readSlot(b.Data)
		if err != nil {
			return nil, err
		}
		kids = append(kids, s.kids...)
	}
	for _, s := range n.slots {
		kids = append(kids, s.kids...)
	}
	if len(kids) != n.counts.sum() {
		return nil, ErrForm
	}
	return kids, nil
}

// page reads a page of a large node's children. It reads the counts of all blocks, but the data only of blocks on the page.
func (t *Tree) page(ctx context.Context, n *node, path string, p Page, l *Level) error {
	counts, err := t.counts(ctx, n, path)
	if err != nil {
		return err
	}
	wanted := func(c Counts) int {
		if p.Only != nil {
			return c[*p.Only]
		}
		return c.sum()
	}
	names := slices.Sorted(maps.Keys(counts))
	first, from := "", key{}
	if rest, ok := strings.CutPrefix(p.From, path); ok && rest != "" {
		from = keyOf(rest)
		first = from.slot()
	}
	left := 0
	for _, name := range names {
		many := wanted(counts[name])
		if name < first || many == 0 {
			continue
		}
		if len(l.Branches) == p.Limit && l.Next != "" {
			left += many
			continue
		}
		s, err := t.slot(ctx, n, path, name)
		if err != nil {
			return err
		}
		if s == nil {
			return ErrForm // the block has counts
		}
		kids := slices.DeleteFunc(slices.Clone(s.kids), func(k *node) bool {
			return p.Only != nil && k.state() != *p.Only || name == first && k.compare(from) < 0
		})
		before := len(l.Branches)
		l.take(kids, path, p.Limit)
		if shown := len(l.Branches) - before; shown < len(kids) {
			l.Next, left = path+kids[shown].rest, len(kids)-shown
		}
	}
	l.Hidden = left
	return nil
}

// counts returns the counts for each block of the node at path.
func (t *Tree) counts(ctx context.Context, n *node, path string) (map[string]Counts, error) {
	blocks, err := t.store.Blocks(ctx, path, false)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]Counts, len(blocks))
	for _, b := range blocks {
		if b.Slot == "" {
			continue
		}
		if counts[b.Slot], err = t.decode(b.Counts); err != nil {
			return nil, err
		}
	}
	for name, s := range n.slots {
		counts[name] = s.counts()
	}
	all := 0
	for _, c := range counts {
		all += c.sum()
	}
	if all != n.counts.sum() {
		return nil, ErrForm
	}
	return counts, nil
}

// Check reads every block once, without keeping it in memory. It returns ErrForm if the outline is damaged.
func (t *Tree) Check(ctx context.Context) error { return t.check(ctx, t.root, "") }

// check checks everything below the node at path.
func (t *Tree) check(ctx context.Context, n *node, path string) error {
	below := func(kids []*node) error {
		for _, k := range kids {
			if err := t.check(ctx, k, path+k.rest); err != nil {
				return err
			}
		}
		return nil
	}
	if !n.out {
		return below(n.kids)
	}
	counts, err := t.counts(ctx, n, path)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		_, held := n.slots[name]
		s, err := t.slot(ctx, n, path, name)
		switch {
		case err != nil:
			return err
		case s == nil && counts[name].sum() == 0:
			continue
		case s == nil || len(s.kids) != counts[name].sum():
			return ErrForm
		}
		if err := below(s.kids); err != nil {
			return err
		}
		if !held {
			delete(n.slots, name)
		}
	}
	return nil
}

// Places returns the places of the pipeline, sorted by name.
func (t *Tree) Places() (out []Place) {
	for _, at := range slices.Sorted(maps.Keys(t.places)) {
		out = append(out, *t.places[at])
	}
	return out
}
