package outline_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/journal/internal/outline"
)

// blocks is a store in memory.
type blocks map[[2]string]outline.Block

func (b blocks) put(o outline.Block) error {
	b[[2]string{o.Parent, o.Slot}] = o
	return nil
}

func (b blocks) Block(_ context.Context, parent, slot string) ([]byte, error) {
	return b[[2]string{parent, slot}].Data, nil
}

func (b blocks) Blocks(_ context.Context, parent string, whole bool) (out []outline.Block, err error) {
	for _, key := range slices.SortedFunc(maps.Keys(b), func(x, y [2]string) int { return cmp.Compare(x[1], y[1]) }) {
		if key[0] == parent {
			o := b[key]
			if !whole {
				o.Data = nil
			}
			out = append(out, o)
		}
	}
	return out, nil
}

// model is what a tree should say: every step by itself.
type model struct {
	*testing.T
	steps map[string]*modelStep
	order []string
}

type modelStep struct {
	path     string
	first    int64
	what     outline.What
	usd      float64
	attempts int
}

func (m *model) event(r *rand.Rand, seq int64, path string) outline.Event {
	s := m.steps[path]
	e := outline.Event{Path: path, Kind: "step", Seq: seq, At: 1_000_000 + seq}
	if s == nil {
		s = &modelStep{path: path, first: seq, attempts: 1}
		m.steps[path], m.order = s, append(m.order, path)
		return e
	}
	switch {
	case s.what == outline.Done:
		s.attempts++
		return e // it is started again, which changes nothing
	case s.what == outline.Failed:
		e.What, s.what = outline.Forgotten, outline.Started
		return e
	case r.IntN(5) == 0:
		e.What = outline.Left
	case r.IntN(10) == 0:
		e.What, s.what = outline.Failed, outline.Failed
	default:
		e.What, s.what = outline.Done, outline.Done
	}
	if r.IntN(3) == 0 {
		e.Usage = budget.Usage{USD: 1}
		s.usd++
	}
	return e
}

// below returns what the branches right below a path should be.
func (m *model) below(path string) (names []string, sums map[string]outline.Sums) {
	sums = map[string]outline.Sums{}
	for _, at := range m.order {
		s := m.steps[at]
		rest, ok := strings.CutPrefix(at, path)
		if !ok || rest == "" || path != "" && !strings.ContainsRune("/[~", rune(rest[0])) {
			continue
		}
		end := strings.IndexAny(rest[1:], "/[~")
		name := at
		if end >= 0 {
			name = path + rest[:1+end]
		}
		sum, known := sums[name]
		if !known {
			names = append(names, name)
		}
		if name != at {
			sum.Below++
		}
		switch s.what {
		case outline.Started:
			sum.Open++
		case outline.Failed:
			sum.Failed++
			fallthrough
		default:
			sum.Recorded++
		}
		sum.Usage.USD += s.usd
		sums[name] = sum
	}
	return names, sums
}

// check compares the branches below a path, page by page, with the model.
func (m *model) check(t *outline.Tree, path string, only *outline.State) {
	m.Helper()
	names, sums := m.below(path)
	page := outline.Page{Only: only, Limit: 37}
	var got []string
	var counts outline.Counts
	hidden := -1
	for {
		l, err := t.Level(m.Context(), path, page)
		if err != nil {
			m.Fatal(err)
		}
		counts = l.Counts
		if n := len(l.Branches) + l.Hidden; hidden >= 0 && n != hidden {
			m.Errorf("below %q from %q: %d branches are left, want %d", path, page.From, n, hidden)
		}
		hidden = l.Hidden
		for _, b := range l.Branches {
			got = append(got, b.Path)
			have, want := b.Sums, sums[b.Path]
			have.Started, have.Ended = 0, 0
			if have != want {
				m.Fatalf("%s: %+v, want %+v", b.Path, have, want)
			}
			if b.Started == 0 || only != nil && b.State != *only {
				m.Errorf("%s: started at %d, state %d", b.Path, b.Started, b.State)
			}
		}
		if l.Next == "" {
			break
		}
		page.From = l.Next
	}
	n := 0
	for _, c := range counts {
		n += c
	}
	if n != len(names) {
		m.Errorf("below %q: counts %v, want %d in all", path, counts, len(names))
	}
	if only != nil {
		n = counts[*only]
		if len(got) != n {
			m.Errorf("below %q: %d branches in state %d, want %d", path, len(got), *only, n)
		}
		return
	}
	if len(names) <= 2000 {
		if !slices.Equal(got, names) {
			m.Errorf("below %q: %v, want %v", path, got, names)
		}
		return
	}
	slices.Sort(names)
	slices.Sort(got)
	if !slices.Equal(got, names) {
		m.Errorf("below %q: %d branches, want %d", path, len(got), len(names))
	}
}

// A tree says the same as the steps, wherever it was stored and read again.
func TestTree(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := &model{T: t, steps: map[string]*modelStep{}}
		store := blocks{}
		lanes := []int{3, 40, 300, 5000}[seed%4]
		path := func() string {
			lane := fmt.Sprintf("all/each[%d]", r.IntN(lanes))
			switch r.IntN(8) {
			case 0:
				return "all/each"
			case 1:
				return "all/" + []string{"read", "count", `match["a"]/x`}[r.IntN(3)]
			case 2:
				return lane + fmt.Sprintf("/work@%d/ask~%d", r.IntN(9), r.IntN(3))
			case 3:
				return lane + fmt.Sprintf("/in[%d]/step", r.IntN(lanes))
			case 4:
				return fmt.Sprintf("all/free/%x", r.Uint32N(uint32(lanes)))
			}
			return lane + "/work"
		}
		seq := int64(0)
		for round := range 4 {
			tree, err := outline.Open(t.Context(), store)
			if err != nil || tree.At != seq {
				t.Fatalf("the tree is at %d: %v; want %d", tree.At, err, seq)
			}
			for range 4000 {
				seq++
				if err := tree.Fold(t.Context(), m.event(r, seq, path())); err != nil {
					t.Fatal(err)
				}
			}
			if round%2 == 0 { // before it is stored
				m.checks(tree, r, lanes)
			}
			if err := tree.Flush(store.put); err != nil {
				t.Fatal(err)
			}
			if tree, err = outline.Open(t.Context(), store); err != nil {
				t.Fatal(err)
			}
			m.checks(tree, r, lanes)
		}
	}
}

func (m *model) checks(tree *outline.Tree, r *rand.Rand, lanes int) {
	for _, at := range []string{"", "all", "all/each", "all/free", "all/e", fmt.Sprintf("all/each[%d]", r.IntN(lanes)), fmt.Sprintf("all/each[%d]/in", r.IntN(lanes))} {
		m.check(tree, at, nil)
	}
	for only := range outline.IsFailed + 1 {
		m.check(tree, "all/each", &only)
	}
	open, recorded := 0, 0
	for _, p := range tree.Places() {
		open, recorded = open+p.Open, recorded+p.Recorded
	}
	if open+recorded != len(m.order) {
		m.Errorf("the places have %d steps, want %d", open+recorded, len(m.order))
	}
}

// A tree that was opened before another one was stored says so.
func TestMoved(t *testing.T) {
	store := blocks{}
	fill := func(from int64) {
		tree, err := outline.Open(t.Context(), store)
		for i := range int64(100) {
			err = errors.Join(err, tree.Fold(t.Context(), outline.Event{Path: fmt.Sprintf("p/each[%d]/x", i), Kind: "step", Seq: from + i, What: outline.Done, At: 1}))
		}
		if err = errors.Join(err, tree.Flush(store.put)); err != nil {
			t.Fatal(err)
		}
	}
	fill(1)
	tree, err := outline.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	fill(200)
	if _, err := tree.Level(t.Context(), "p/each", outline.Page{Limit: 10}); !errors.Is(err, outline.ErrMoved) {
		t.Errorf("Level: %v, want ErrMoved", err)
	}
}

// Blocks that were cut or changed are errors, not panics.
func FuzzOpen(f *testing.F) {
	store := blocks{}
	tree, err := outline.Open(f.Context(), store)
	for i := range int64(40) {
		err = errors.Join(err, tree.Fold(f.Context(), outline.Event{Path: fmt.Sprintf("p/each[%d]/x", i), Kind: "step", Seq: i + 1, At: 1}))
	}
	if err = errors.Join(err, tree.Flush(store.put)); err != nil {
		f.Fatal(err)
	}
	for _, b := range store {
		f.Add(b.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := outline.Open(t.Context(), blocks{{}: outline.Block{Data: data}, {"p/each", "/[\x01000000000000"}: outline.Block{Data: data}})
		if err == nil {
			_, _ = tree.Level(t.Context(), "p/each", outline.Page{Limit: 10})
		}
	})
}

func BenchmarkFold(b *testing.B) {
	store := blocks{}
	size := 0
	var tree *outline.Tree
	b.ReportAllocs()
	for i := range b.N {
		if i%2048 == 0 {
			if tree != nil {
				_ = tree.Flush(func(o outline.Block) error { size += len(o.Data); return store.put(o) })
			}
			tree, _ = outline.Open(b.Context(), store)
		}
		path := fmt.Sprintf("run/things[%d]/measure", i)
		_ = tree.Fold(b.Context(), outline.Event{Path: path, Kind: "leaf", Seq: int64(2*i + 1), At: 1_800_000_000_000})
		_ = tree.Fold(b.Context(), outline.Event{What: outline.Done, Path: path, Kind: "leaf", Seq: int64(2*i + 2), At: 1_800_000_000_000})
	}
	b.ReportMetric(float64(size)/float64(b.N), "B/step")
}
