package export

import (
	"container/heap"
	"iter"
	"time"

	"github.com/stonelayer/stone/journal"
)

// queue is a heap of steps. The step that started first is on top. If an outer and an inner step started at the same time, the
// outer step is first.
type queue []*journal.Step

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if c := q[i].Started.Compare(q[j].Started); c != 0 {
		return c < 0
	}
	return len(q[i].Path) < len(q[j].Path)
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(s any)   { *q = append(*q, s.(*journal.Step)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return s
}

// sorted returns an iterator over steps in the order of their last starts, outer steps before inner steps. It omits the input and
// steps that were not started. The given steps are in the order of their first starts, so only restarted steps have to be held
// back.
func sorted(steps iter.Seq2[journal.Step, error]) iter.Seq2[journal.Step, error] {
	return func(yield func(journal.Step, error) bool) {
		waiting := new(queue)
		until := func(now time.Time) bool {
			for waiting.Len() > 0 && (now.IsZero() || (*waiting)[0].Started.Before(now)) {
				if !yield(*heap.Pop(waiting).(*journal.Step), nil) {
					return false
				}
			}
			return true
		}
		for s, err := range steps {
			if err != nil {
				yield(s, err)
				return
			}
			if s.Started.IsZero() || s.Kind == "input" {
				continue
			}
			if s.Attempts <= 1 && !until(s.Started) {
				return
			}
			heap.Push(waiting, &s)
		}
		until(time.Time{})
	}
}
