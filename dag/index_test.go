package dag

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTrieWithFullCollisions(t *testing.T) {
	const hash = 0xfeedfacecafebeef
	for _, hashes := range [][]uint64{
		{hash, hash, hash, hash},               // alike to the last bit
		{hash, hash ^ 1<<63, hash ^ 1<<62},     // apart at the deepest level only
		{hash, hash ^ 1<<60, hash, hash ^ 1},   // some of each
		{0, 0, 1 << 5, 1 << 10, 1 << 60, 1, 0}, // with empty bits between
	} {
		var before, full *trie[int]
		for i, h := range hashes {
			before = full
			full = full.insert(0, slot[int]{hash: h, key: fmt.Sprint(i), value: i})
			if _, ok := before.lookup(h, fmt.Sprint(i)); ok {
				t.Errorf("%x: inserting key %d changed the trie before", hashes, i)
			}
		}
		again := full
		for i, h := range hashes {
			again = again.insert(0, slot[int]{hash: h, key: fmt.Sprint(i), value: -i})
		}
		for i, h := range hashes {
			if v, ok := full.lookup(h, fmt.Sprint(i)); !ok || v != i {
				t.Errorf("%x: key %d has %d, %v", hashes, i, v, ok)
			}
			if v, ok := again.lookup(h, fmt.Sprint(i)); !ok || v != -i {
				t.Errorf("%x: after a change key %d has %d, %v", hashes, i, v, ok)
			}
			if _, ok := full.lookup(h, "other"); ok {
				t.Errorf("%x: found a key that is not there", hashes)
			}
		}
	}
}

func TestTrieIsAMap(t *testing.T) {
	var index *trie[int]
	const keys = 100_000
	for i := range keys {
		index = index.with(fmt.Sprint(i), i)
	}
	for i := range keys {
		if v, ok := index.get(fmt.Sprint(i)); !ok || v != i {
			t.Fatalf("key %d has %d, %v", i, v, ok)
		}
	}
	if _, ok := index.get("other"); ok {
		t.Error("found a key that is not there")
	}
}

func TestManyTypes(t *testing.T) {
	var d DAG
	const types = 100_000
	for i := range types {
		d = appendNode(t, d, fmt.Sprint(i), i)
	}
	for i := 0; i < types; i += 97 {
		n, err := d.Nearest(fmt.Sprint(i))
		if err != nil || n.JSON() != fmt.Sprint(i) {
			t.Fatalf("nearest %d: %s, %v", i, n, err)
		}
		if all, _ := d.All(fmt.Sprint(i)); len(all) != 1 || all[0] != n {
			t.Fatalf("all %d: %d nodes", i, len(all))
		}
	}
}

func appendNode(t testing.TB, d DAG, typ string, content any) DAG {
	t.Helper()
	n, err := NewNode(Spec{Type: typ, Content: content, Parents: d.next()})
	if err != nil {
		t.Fatal(err)
	}
	if d, err = d.Append(n); err != nil {
		t.Fatal(err)
	}
	return d
}

// steps counts the nodes and entries without an index that a search from the
// end of d walks over.
func steps(d DAG) (nodes, entries int) {
	for n := d.here(); n != nil && n.near.Load() == nil; n = n.Parent() {
		nodes++
	}
	for e := d.log; e != nil && e.byType.Load() == nil; e = e.prev {
		entries++
	}
	return nodes, entries
}

// However long the lanes are when they first read something, only the first one
// walks the whole base.
func TestLanesShareTheIndexOfTheirBase(t *testing.T) {
	for _, length := range []int{1, stride, 5 * stride, 50 * stride} {
		var base DAG
		for i := range 10_000 {
			base = appendNode(t, base, "t", i)
		}
		for lane := range 4 {
			d := base
			for i := range length {
				d = appendNode(t, d, "u", fmt.Sprint(lane, i))
			}
			nodes, entries := steps(d)
			if most := 2*length + 2*stride; lane > 0 && (nodes > most || entries > most) {
				t.Errorf("lane %d of length %d walks %d nodes and %d entries, want at most %d", lane, length, nodes, entries, most)
			}
			if _, err := d.Nearest("none"); !errors.Is(err, ErrMissing) {
				t.Error(err)
			}
			if all, _ := d.All("t"); len(all) != 10_000 {
				t.Errorf("%d nodes", len(all))
			}
		}
	}
}

// After a first search no search walks far.
func TestSearchesAreShort(t *testing.T) {
	var d DAG
	for i := range 20 * stride {
		d = appendNode(t, d, "t", i)
		_, _ = d.Nearest("none")
		_, _ = d.All("none")
		if nodes, entries := steps(d); nodes > stride || entries > stride+1 {
			t.Fatalf("after %d nodes: %d nodes and %d entries to walk", i+1, nodes, entries)
		}
	}
	// And it makes an index for every few nodes only.
	var near, lists int
	for e := d.log; e != nil; e = e.prev {
		if e.node.near.Load() != nil {
			near++
		}
		if e.byType.Load() != nil {
			lists++
		}
	}
	if most := d.Len() / (stride / 2); near > most || lists > most {
		t.Errorf("%d and %d indexes for %d nodes, want at most %d", near, lists, d.Len(), most)
	}
	// One entry of many nodes has an index of its own.
	lanes := make([]DAG, 10*stride)
	for i := range lanes {
		lanes[i], _ = Lane(d, i)
	}
	d, err := Join(d, lanes)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = d.All("none")
	if _, entries := steps(d); entries != 0 {
		t.Errorf("the entry of a fan-out has no index: %d to walk", entries)
	}
}

func TestGatherMakesJoinsOfJoins(t *testing.T) {
	here := appendNode(t, DAG{}, "base", nil).Latest()
	for _, c := range []struct {
		heads, width int
		want         string // parents of the joins that it makes, then of what is left
	}{
		{0, 3, "; 0"},
		{3, 3, "; 3"},
		{4, 3, "3 1; 2"},
		{9, 3, "3 3 3; 3"},
		{10, 3, "3 3 3 1 3 1; 2"},
		{28, 3, "3 3 3 3 3 3 3 3 3 1 3 3 3 1 3 1; 2"},
	} {
		var heads []*Node
		for i := range c.heads {
			heads = append(heads, appendNode(t, DAG{}, "head", i).Latest())
		}
		joins, left, err := gather(heads, here, c.width)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[*Node]int{}
		var sizes []string
		for _, j := range joins {
			if j.Parent() != here {
				t.Errorf("%d heads: a join begins with %s", c.heads, j.Parent())
			}
			sizes = append(sizes, fmt.Sprint(len(j.parents)-1))
			for _, p := range j.parents[1:] {
				seen[p]++
			}
		}
		for _, n := range left {
			seen[n]++
		}
		if got := fmt.Sprintf("%s; %d", strings.Join(sizes, " "), len(left)); got != c.want {
			t.Errorf("%d heads: got %q, want %q", c.heads, got, c.want)
		}
		for _, n := range append(heads, joins...) {
			if seen[n] != 1 {
				t.Errorf("%d heads: %s has %d children", c.heads, n, seen[n])
			}
		}
	}
}

// Types returns every type once, and does not look at nodes that an index knows.
func TestTypes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d DAG
		want := map[string]bool{}
		for range rapid.IntRange(0, 100).Draw(t, "nodes") {
			typ := fmt.Sprint("t", rapid.IntRange(0, 40).Draw(t, "type"))
			var err error
			if d, err = NewType[int](typ).Append(d, len(want)); err != nil {
				t.Fatal(err)
			}
			want[typ] = true
			if rapid.Bool().Draw(t, "read") {
				d.log.all(typ)
			}
		}
		got := d.Types()
		for _, typ := range got {
			if !want[typ] {
				t.Errorf("type %s is not there, or twice", typ)
			}
			delete(want, typ)
		}
		if len(want) > 0 {
			t.Errorf("missing %v of %v", want, got)
		}
	})
	var d DAG
	for i := range 10_000 {
		d, _ = NewType[int](fmt.Sprint("t", i%5)).Append(d, i)
	}
	d.Types()
	if n := testing.AllocsPerRun(100, func() { d.Types() }); n > 8 {
		t.Errorf("%v allocations for 5 types of 10,000 nodes", n)
	}
}
