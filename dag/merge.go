package dag

import "slices"

// Merge returns the union of the DAGs: the nodes of the first, then the further nodes
// of the second, and so on, each in its own order. Its heads are the nodes without
// children. Reading from a head continues as in the first DAG that has it. The first
// failure in flight stays in flight, and the first limited view is kept.
//
// Merge is associative and idempotent. A DAG merged with one that extends it is the
// latter. DAGs that were appended to the same DAG share its nodes; the cost is linear
// in the other nodes.
func Merge(ds ...DAG) DAG {
	var out DAG
	m := newMerger()
	for _, d := range ds {
		if out.fail == nil {
			out.fail = d.fail
		}
		if out.view == nil {
			out.view = d.view
		}
		if out.closing == nil {
			out.closing = d.closing
		}
		m.add(d.log)
	}
	out.log = m.main.extend(m.added, m.from)
	return out
}

// A merger has the first log and the nodes that the others add to it. It walks the
// first log back only as far as the others need, and only once: with many lanes on a
// long base, a walk for each lane would be quadratic.
type merger struct {
	main  *entry
	low   *entry          // main was walked back to here
	above map[*entry]bool // the entries of main after low
	known map[ID]bool     // the nodes of above, and the added ones
	added []*Node
	from  map[ID]*Node // for added heads: the node where reading continues, if different
}

func newMerger() *merger {
	return &merger{above: map[*entry]bool{}, known: map[ID]bool{}, from: map[ID]*Node{}}
}

func (m *merger) add(log *entry) {
	switch {
	case log == nil:
		return
	case m.main == nil:
		m.main, m.low = log, log
		return
	}
	own, shared := m.own(log)
	if shared == m.main && len(m.added) == 0 { // log extends main
		m.pass(own...)
		m.main = log
		return
	}
	for i, h := range log.heads() {
		if from := log.from()[i]; from != h && !m.known[h.id] {
			m.from[h.id] = from
		}
	}
	for _, e := range slices.Backward(own) {
		for _, n := range e.nodes() {
			if !m.known[n.id] {
				m.known[n.id] = true
				m.added = append(m.added, n)
			}
		}
	}
}

// own returns the entries of the log that main lacks, newest first, and the last common one.
func (m *merger) own(log *entry) (own []*entry, shared *entry) {
	for at := log; ; {
		switch {
		case at == m.low || m.above[at]:
			return own, at
		case m.low.len() >= at.len():
			m.pass(m.low)
			m.low = m.low.prev
		default:
			own = append(own, at)
			at = at.prev
		}
	}
}

func (m *merger) pass(entries ...*entry) {
	for _, e := range entries {
		m.above[e] = true
		for _, n := range e.nodes() {
			m.known[n.id] = true
		}
	}
}
