package journal

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
)

// A Board carries items between the processes that work for one run: orders, and their
// results. It belongs to the run, but not to its record. A run is given a board by the first
// Post of its holder, and loses it when the run ends and no process needs it to resume:
// [Done], [Failed] or removed.
type Board interface {
	// Post stores items, whose keys differ, and returns them as the board has them. The first
	// item with a key wins: if the board has the key already, Post returns that item in place
	// of the one given. It stores all new items or none, and needs no lease. The error is ErrNoBoard
	// if the run has no board and this Journal does not hold the run.
	Post(ctx context.Context, run string, items ...Item) ([]Item, error)
	// PostHeld is Post for the holder of the run. If this Journal does not hold the run, the error is
	// the cause of Holder.Held.
	PostHeld(ctx context.Context, run string, items ...Item) ([]Item, error)
	// Posted returns the items on the board that have the keys, by key.
	Posted(ctx context.Context, run string, keys ...string) (map[string]Item, error)
	// PostedUnder returns the items that the board has whose keys begin with prefix, in the order in
	// which they were stored. It reads these items alone: use it for few of them.
	PostedUnder(ctx context.Context, run, prefix string) ([]Item, error)
	// Watch yields the items after a position, 0 for all, whose keys begin with prefix, in
	// the order in which they were stored, and then waits for more. It ends with the cause
	// of ctx or an error of the store. A run without a board has no items.
	Watch(ctx context.Context, run, prefix string, after int64) iter.Seq2[Item, error]
}

// An Item is on the board of a run.
type Item struct {
	Key  string
	Data []byte
	Seq  int64 // its position, which Post sets
}

// ErrNoBoard means that a run has no board: its holder has not posted anything, or the run has
// ended.
var ErrNoBoard = errors.New("the run has no board: it has ended, or its holder has posted nothing")

// Holders is the prefix of the items that a process posts before it sends leaves of its run to workers.
// Keep resumes a run that has such items only with an executor, which must read the board.
const Holders = "holder/"

// memoryBoard is the board of a run in Memory.
type memoryBoard struct {
	items  []Item
	index  map[string]int
	groups map[string][]int // items by the first two parts of their keys
}

// groupOf returns the first two parts of a key, or "" if it has fewer.
func groupOf(key string) string {
	first, rest, _ := strings.Cut(key, "/")
	second, _, _ := strings.Cut(rest, "/")
	if second == "" {
		return ""
	}
	return key[:len(first)+1+len(second)]
}

// PostHeld implements [Board].
func (m *Memory) PostHeld(ctx context.Context, run string, items ...Item) ([]Item, error) {
	if err := context.Cause(m.Held(run)); err != nil {
		return nil, err
	}
	return m.Post(ctx, run, items...)
}

// Post implements [Board].
func (m *Memory) Post(_ context.Context, run string, items ...Item) ([]Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[run]
	if r == nil || r.board == nil && (!r.held || r.info.State == Done || r.info.State == Failed) {
		return nil, ErrNoBoard
	}
	if r.board == nil {
		r.board = &memoryBoard{index: map[string]int{}, groups: map[string][]int{}}
	}
	b, out := r.board, slices.Clone(items)
	for i, item := range items {
		at, old := b.index[item.Key]
		if !old {
			at = len(b.items)
			b.index[item.Key] = at
			b.groups[groupOf(item.Key)] = append(b.groups[groupOf(item.Key)], at)
			b.items = append(b.items, Item{Key: item.Key, Data: slices.Clone(item.Data), Seq: int64(at + 1)})
		}
		out[i] = b.items[at]
	}
	m.tell()
	return out, nil
}

// Posted implements [Board].
func (m *Memory) Posted(_ context.Context, run string, keys ...string) (map[string]Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]Item{}
	if r := m.runs[run]; r != nil && r.board != nil {
		for _, key := range keys {
			if i, ok := r.board.index[key]; ok {
				found[key] = r.board.items[i]
			}
		}
	}
	return found, nil
}

// PostedUnder implements [Board].
func (m *Memory) PostedUnder(_ context.Context, run, prefix string) (found []Item, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[run]
	if r == nil || r.board == nil {
		return nil, nil
	}
	b := r.board
	add := func(item Item) {
		if strings.HasPrefix(item.Key, prefix) {
			found = append(found, item)
		}
	}
	if group := groupOf(prefix); len(group) < len(prefix) && group != "" { // all in one group
		for _, i := range b.groups[group] {
			add(b.items[i])
		}
		return found, nil
	}
	for _, item := range b.items {
		add(item)
	}
	return found, nil
}

// Watch implements [Board].
func (m *Memory) Watch(ctx context.Context, run, prefix string, after int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for range m.Changes(ctx) {
			for _, item := range m.posted(run, after) {
				if after = item.Seq; strings.HasPrefix(item.Key, prefix) && !yield(item, nil) {
					return
				}
			}
		}
		yield(Item{}, context.Cause(ctx))
	}
}

// posted returns the items after a position.
func (m *Memory) posted(run string, after int64) []Item {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[run]
	if r == nil || r.board == nil {
		return nil
	}
	return r.board.items[min(max(after, 0), int64(len(r.board.items))):]
}
