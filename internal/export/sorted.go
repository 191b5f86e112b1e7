package export

import (
	"container/heap"
	"iter"
	"time"

	"github.com/stonelayer/stone/journal"
)

// queue has the step that is first in some order on top.
type queue struct {
	steps []*journal.Step
	less  func(a, b *journal.Step) bool
}

func (q *queue) Len() int           { return len(q.steps) }
func (q *queue) Less(i, j int) bool { return q.less(q.steps[i], q.steps[j]) }
func (q *queue) Swap(i, j int)      { q.steps[i], q.steps[j] = q.steps[j], q.steps[i] }
func (q *queue) Push(s any)         { q.steps = append(q.steps, s.(*journal.Step)) }
func (q *queue) Pop() any {
	last := len(q.steps) - 1
	s := q.steps[last]
	q.steps[last] = nil
	q.steps = q.steps[:last]
	return s
}

// sorted yields steps in the order of their last starts, the outer one first. It leaves out the input and steps that were not
// started. Steps come in the order of their first starts, so that only restarted steps wait.
func sorted(steps iter.Seq2[journal.Step, error]) iter.Seq2[journal.Step, error] {
	return func(yield func(journal.Step, error) bool) {
		waiting := &queue{less: func(a, b *journal.Step) bool {
			if c := a.Started.Compare(b.Started); c != 0 {
				return c < 0
			}
			return len(a.Path) < len(b.Path)
		}}
		until := func(now time.Time) bool {
			for waiting.Len() > 0 && (now.IsZero() || waiting.steps[0].Started.Before(now)) {
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
