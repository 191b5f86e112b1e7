package marks

import (
	"maps"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/address"
)

// visit walks an ashlar.
func (w *walker) visit(a stone.Ashlar, path string) {
	switch a.Form() {
	case "leaf":
		w.leaf(a, path)
	case "flow":
		w.flows++
		w.children(a, path)
		w.flows--
	case "loop":
		w.loop(a, path)
	case "match", "map", "parallel":
		w.branches(a, path)
	case "rescue":
		w.rescue(a, path)
	case "scoped":
		s := w.read(w.readings(a.Queries()))
		w.reads[a] |= s
		w.inside(a, path, s)
	default:
		w.children(a, path)
	}
}

func (w *walker) children(a stone.Ashlar, path string) {
	children := a.Children()
	for i := range children {
		w.child(a, children, path, i)
	}
}

func (w *walker) child(a stone.Ashlar, children []stone.Ashlar, path string, i int) {
	c := children[i]
	if a.Form() == "reduce" {
		w.visit(c, path)
		return
	}
	if keys := a.Branches(); keys != nil {
		path += "[" + address.Escape(keys[i]) + "]"
	}
	nth := 1
	for _, before := range children[:i] {
		if before.Name() == c.Name() {
			nth++
		}
	}
	w.visit(c, pathOf(path, c, nth))
}

// depending records that the following steps depend on the decision of an ashlar, until the returned function end is called.
func (w *walker) depending(a stone.Ashlar) (end func()) {
	outer := w.deps
	for _, q := range a.Queries() {
		if t := q.Type(); t != nil {
			w.deps = append(slices.Clip(w.deps), t.Name())
		}
	}
	return func() { w.deps = outer }
}

// loop walks the body of a loop again and again until the marks no longer change.
func (w *walker) loop(a stone.Ashlar, path string) {
	for start := w.clone(); ; w.state = start.clone() {
		w.children(a, path)
		next := join(start, w.state)
		if next.equal(start) {
			break
		}
		start = next
	}
	// The loop's end depends on an answer that the loop reads.
	for _, q := range a.Queries() {
		if t := q.Type(); t != nil && w.flows == 0 {
			for r, s := range w.shown[t.Name()] {
				w.lift([]reading{r}, s)
			}
		}
	}
}

// branches walks the branches of a match, the lanes of a parallel, or the lanes of a map. A map may have no lanes.
func (w *walker) branches(a stone.Ashlar, path string) {
	defer w.depending(a)()
	start := w.clone()
	end := start
	for i := range a.Children() {
		w.state = start.clone()
		if a.Form() == "map" {
			readings := w.readings(a.Queries())
			if all := a.ProducesAll(); len(all) > 0 { // the first type is the type of the items
				s := w.read(readings) | w.typed(all[0].Name())
				w.write(all[0].Name(), s, w.way(s, readings, a.Name()))
			}
		}
		w.child(a, a.Children(), path, i)
		if i == 0 && a.Form() != "map" {
			end = w.state
		} else {
			end = join(end, w.state)
		}
	}
	w.state = end
}

// rescue walks the body and the handler. The handler sees the nodes that the body produced before it failed.
func (w *walker) rescue(a stone.Ashlar, path string) {
	start, outer := w.clone(), w.failing
	w.failing = map[string]set{}
	for i := range a.Children() {
		if i == 0 {
			w.child(a, a.Children(), path, i)
			continue
		}
		ended := w.clone()
		w.state = join(start, ended)
		union(w.near, w.failing)
		union(w.ever, w.failing)
		w.child(a, a.Children(), path, i)
		w.state = join(ended, w.state)
	}
	union(outer, w.failing)
	w.failing = outer
}

// inside walks the children of a body, which may be executed in any order and any number of times. The body works with text that
// has the marks s. The tools of an agent are checked when they are called; its judges are always executed.
func (w *walker) inside(a stone.Ashlar, path string, s set) {
	_, agent := a.Detail().Value.(acting)
	own := a.ProducesAll()
	for start := w.clone(); ; w.state = start.clone() {
		for _, t := range own {
			w.add(t.Name(), s|w.typed(t.Name()), a.Name())
		}
		for way, children := range a.Walk() {
			tools := agent && way == "perhaps"
			for _, c := range children {
				if tools {
					w.quiet++
				}
				w.visit(c, pathOf(path, c, 1))
				if tools {
					w.quiet--
				}
			}
		}
		next := join(start, w.state)
		if maps.Equal(next.near, start.near) && maps.Equal(next.ever, start.ever) {
			w.state = next
			return
		}
		start = next
	}
}
