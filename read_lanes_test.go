package stone_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

var (
	names = dag.NewType[[]string]("names")
	name  = dag.NewType[string]("name")
	done  = dag.NewType[string]("done")
	rowed = dag.NewType[string]("rows")
)

// rows writes what each lane had and made, a lane after the other.
func rows(reducer string) stone.Ashlar {
	return stone.Reduce(stone.Func(reducer, dag.Lanes2(name, done), rowed, func(_ context.Context, lanes []dag.Row2[string, string]) (string, error) {
		var out []string
		for _, l := range lanes {
			out = append(out, l.A+":"+l.B)
		}
		return strings.Join(out, " "), nil
	}))
}

func given(list ...string) stone.Ashlar {
	return stone.Func0("given", names, func(context.Context) ([]string, error) { return list, nil })
}

func then(list ...string) stone.Ashlar {
	return stone.Func0("then", names, func(context.Context) ([]string, error) { return list, nil })
}

// mark makes the done node of a lane; it fails for "bad".
func mark(step string) stone.Ashlar {
	return stone.Func(step, name, done, func(_ context.Context, n string) (string, error) {
		if n == "bad" {
			return "", errBoom
		}
		return step + " " + n, nil
	})
}

// until repeats mark until it has run once more than the name has letters "+".
func until() stone.Ashlar {
	return stone.Loop("loop", stone.Func2("round", name, dag.Since(done, name), done, func(_ context.Context, n string, before []string) (string, error) {
		return fmt.Sprint(n, "/", len(before)+1), nil
	}), stone.Until(dag.Derive2(name, dag.Since(done, name), func(n string, all []string) bool { return len(all) > strings.Count(n, "+") }), func(ok bool) bool { return ok }), 3)
}

// What a Reduce reads of its lanes pairs, whatever happened in the lanes, before them and in
// earlier rounds.
func TestLanesPair(t *testing.T) {
	round := func(n int) string { return fmt.Sprint("round", n) }
	perRound := stone.Func("list", dag.All(rowed), names, func(_ context.Context, before []string) ([]string, error) {
		return []string{round(len(before)) + "a", round(len(before)) + "b"}, nil
	})
	for _, c := range []struct {
		name string
		p    stone.Ashlar
		want string
	}{
		{"a lost lane", stone.Seq("p", given("a", "bad", "c"), stone.Map("each", names, name, mark("m"), stone.Quorum(1)), rows("r")),
			"a:m a c:m c"},
		{"a loop in the lanes", stone.Seq("p", given("a", "b+", "c"), stone.Map("each", names, name, until(), stone.AllLanes()), rows("r")),
			"a:a/1 b+:b+/2 c:c/1"},
		{"an earlier round", stone.Loop("p", stone.Seq("round", perRound, stone.Map("each", names, name, mark("m"), stone.AllLanes()), rows("r")),
			stone.Until(dag.All(rowed), func(all []string) bool { return len(all) == 3 }), 3),
			"round2a:m round2a round2b:m round2b"},
		{"an earlier fan-out", stone.Seq("p", given("a", "b"), stone.Map("one", names, name, mark("m"), stone.AllLanes()), rows("first"),
			then("c", "d"), stone.Map("two", names, name, mark("n"), stone.AllLanes()), rows("second")),
			"c:n c d:n d"},
		{"an earlier fan-out, and now no item", stone.Seq("p", given("a", "b"), stone.Map("one", names, name, mark("m"), stone.AllLanes()), rows("first"),
			then(), stone.Map("two", names, name, mark("n"), stone.AllowEmpty(), stone.AllLanes()), rows("second")),
			""},
		{"equal items", stone.Seq("p", given("a", "a", "b", "a"), stone.Map("each", names, name, mark("m"), stone.AllLanes()), rows("r")),
			"a:m a a:m a b:m b a:m a"},
		{"a fan-out in the lanes", stone.Seq("p", given("ab", "c"), stone.Map("each", names, name, stone.Seq("lane",
			stone.Func("letters", name, names, func(_ context.Context, n string) ([]string, error) { return strings.Split(n, ""), nil }),
			stone.Map("inner", names, name, mark("m"), stone.AllLanes()),
			stone.Reduce(stone.Func("sum", dag.Lanes(done), done, func(_ context.Context, all []string) (string, error) { return strings.Join(all, "+"), nil })),
		), stone.AllLanes()), rows("r")),
			"ab:m a+m b c:m c"},
		{"read later in the Reduce, after a fan-out there", stone.Seq("p", given("a", "b"), stone.Map("each", names, name, mark("m"), stone.AllLanes()),
			stone.Reduce(stone.Seq("all", given("x", "y", "z"), stone.Map("more", names, name, mark("n"), stone.AllLanes()), rows("inner"), rows("outer").Children()[0]))),
			"a:m a b:m b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // resumed, too
				l := newLedger(t)
				result, err := stone.Run(t.Context(), c.p, stone.Config{RunID: "r", Recorder: l})
				if err != nil || result.Node.JSON() != fmt.Sprintf("%q", c.want) {
					t.Errorf("got %s, %v; want %q", result.Node.JSON(), err, c.want)
				}
				l.nextRun()
			}
		})
	}
}

// All leaves out the items of lost lanes, whether they are few, many, or are read later.
func TestAllWithoutLostItems(t *testing.T) {
	for _, n := range []int{1, 10, 100} {
		var list, want []string
		for i := range n {
			good := fmt.Sprint("n", i)
			list, want = append(list, good, "bad"), append(want, good)
		}
		p := stone.Seq("p", given(list...), stone.Map("each", names, name, mark("m"), stone.Quorum(1)), stone.Reduce(last), say("later", "x"), last)
		result, err := stone.Run(t.Context(), p, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		items, err := dag.All(name).From(result.DAG)
		lost, _ := dag.Lost(result.DAG)
		if err != nil || !slices.Equal(items, want) || len(lost) != n {
			t.Errorf("of %d lanes: got %d items, %v, and %d lost ones; want %d and as many lost", 2*n, len(items), err, len(lost), n)
		}
	}
}

// A lane that lacks a node is named.
func TestLaneWithoutNode(t *testing.T) {
	p := stone.Seq("p", given("a", "b", "c"), stone.Map("each", names, name,
		stone.Match("m", stone.On(name, func(n string) bool { return n == "b" }), stone.Case(true, say("other", "x")), stone.Case(false, mark("m")))), rows("r"))
	_, err := stone.Run(t.Context(), p, stone.Config{})
	if err == nil || !strings.Contains(err.Error(), `lane 1 (b) has no "done" node`) {
		t.Errorf("got %v, want the lane named", err)
	}
}

var checked = dag.NewType[string]("checked")

// lanesModel draws fan-outs whose reducers compare what they read with what a plain loop over the same
// items says.
type lanesModel struct {
	*rapid.T
	fans     int
	mu       sync.Mutex
	rows     int
	problems []string
}

func (m *lanesModel) fan(depth int) stone.Ashlar {
	m.fans++
	id := fmt.Sprint("f", m.fans)
	loops := rapid.Bool().Draw(m.T, "loops")
	var items, want []string
	lost := map[string]bool{}
	for i := range rapid.IntRange(0, 4).Draw(m.T, "lanes") {
		item := fmt.Sprint(id, "-", i, strings.Repeat("+", rapid.IntRange(0, 2).Draw(m.T, "rounds")))
		if i > 0 && rapid.IntRange(0, 3).Draw(m.T, "again") == 0 {
			item = items[0] // an equal one
		} else {
			lost[item] = rapid.IntRange(0, 3).Draw(m.T, "fails") == 0
		}
		items = append(items, item)
	}
	for _, item := range items {
		switch {
		case lost[item]:
		case loops:
			want = append(want, fmt.Sprint(item, ":", item, "/", strings.Count(item, "+")+1))
		default:
			want = append(want, item+":m "+item)
		}
	}
	lane := []stone.Ashlar{stone.Func("check", name, checked, func(_ context.Context, n string) (string, error) {
		if lost[n] {
			return "", errBoom
		}
		return n, nil
	})}
	if depth > 0 && rapid.Bool().Draw(m.T, "inner") {
		lane = append(lane, stone.Rescue("inside", m.fan(depth-1), say("nothing", "survived")))
	}
	if loops {
		lane = append(lane, until())
	} else {
		lane = append(lane, mark("m"))
	}
	return stone.Seq(id, given(items...), stone.Map("each", names, name, stone.Seq("lane", lane...), stone.AllowEmpty()),
		stone.Reduce(stone.Func("rows", dag.Lanes3(name, done, checked), rowed, func(_ context.Context, lanes []dag.Row3[string, string, string]) (string, error) {
			var got []string
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, l := range lanes {
				got = append(got, l.A+":"+l.B)
				if l.A != l.C {
					m.problems = append(m.problems, fmt.Sprintf("%s and %s are in one row", l.A, l.C))
				}
			}
			if m.rows += len(got); !slices.Equal(got, want) {
				m.problems = append(m.problems, fmt.Sprintf("%s read %q, want %q", id, got, want))
			}
			return "", nil
		})))
}

// The Reduce of a fan-out reads what a plain loop over the same lanes computes: with fan-outs in
// lanes, loops in lanes, equal items, lost lanes, and earlier rounds and fan-outs around it.
func TestLanesAgainstModel(t *testing.T) {
	rows, lost := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := &lanesModel{T: t}
		var fans []stone.Ashlar
		for i := range rapid.IntRange(1, 3).Draw(t, "fans") {
			fans = append(fans, stone.Rescue(fmt.Sprint("r", i), m.fan(2), say("heal", "none survived")))
		}
		n := 0
		p := stone.Loop("l", stone.Seq("round", fans...), stone.Until(dag.Nothing, func(struct{}) bool { n++; return n == 2 }), 2)
		result, err := stone.Run(t.Context(), p, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if len(m.problems) > 0 {
			t.Fatal(strings.Join(m.problems, "\n"))
		}
		rows, lost = rows+m.rows, lost+len(result.Lost)
	})
	if rows < 50 || lost < 20 {
		t.Errorf("only %d rows were read, and %d lanes lost", rows, lost)
	}
}
