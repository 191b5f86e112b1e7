package limit

import "slices"

// order decides whose turn it is in a queue.
type order struct {
	row    int // started in a row before one that has waited longer
	served map[string]uint64
	clock  uint64
}

// next returns the waiter whose turn it is, nil in an empty queue: the highest priority, then the tenant that was served
// least recently, then who waits longest. After inRow that passed the one that waits longest, nothing passes it.
func (o *order) next(q queue) *waiter {
	if len(q) == 0 {
		return nil
	}
	best := q[0]
	if o.row >= inRow {
		return best
	}
	for _, w := range q[1:] {
		if w.rank.Priority > best.rank.Priority || w.rank.Priority == best.rank.Priority && o.served[w.rank.Tenant] < o.served[best.rank.Tenant] {
			best = w
		}
	}
	return best
}

// start notes that a waiter starts, before it leaves the queue.
func (o *order) start(q queue, w *waiter) {
	if o.row++; q[0] == w {
		o.row = 0
	}
	if o.served == nil || len(o.served) > 1000 && !slices.ContainsFunc(q, func(other *waiter) bool { return other.rank.Tenant != w.rank.Tenant }) {
		o.served = map[string]uint64{} // nobody waits who could lose a turn
	}
	o.clock++
	o.served[w.rank.Tenant] = o.clock
}
