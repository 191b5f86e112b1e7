package progress

import (
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
)

// A Ledger adds up the costs of a run while it is running. Models report the cost of each answer immediately. Calls and leaves
// report sums later, and these may include additional costs. For example, a program reports its usage only in its reply.
type Ledger struct {
	leaves  map[string]bool         // running leaves, by path
	claims  map[string]budget.Usage // usage of the attempts of running calls, by path
	counted map[string]budget.Usage // usage counted so far within running leaves, by path
}

// Note processes an event and returns the usage that no earlier event has reported.
func (l *Ledger) Note(e event.Event) budget.Usage {
	if _, first := e.Data.(event.RunStarted); first || l.leaves == nil {
		*l = Ledger{leaves: map[string]bool{}, claims: map[string]budget.Usage{}, counted: map[string]budget.Usage{}}
	}
	switch d := e.Data.(type) {
	case event.StepStarted:
		if d.Form == "leaf" {
			l.leaves[e.Path] = true
		}
	case event.ModelResponse:
		if !d.Replayed {
			l.counted[e.Path] = l.counted[e.Path].Add(d.Usage)
			return d.Usage.Sane()
		}
	case event.CallAttempt:
		l.claims[e.Path] = l.claims[e.Path].Add(d.Usage)
		return l.settle(e.Path, l.claims[e.Path])
	case event.StepDone:
		if d.Form == "leaf" {
			return l.done(e.Path, d)
		}
	}
	return budget.Usage{}
}

// settle returns the part of a sum that has not yet been counted at the path or below it.
func (l *Ledger) settle(path string, sum budget.Usage) budget.Usage {
	var counted budget.Usage
	for at, u := range l.counted {
		if at == path || address.Within(at, path) {
			counted = counted.Add(u)
			delete(l.counted, at)
		}
	}
	more := budget.Usage{
		InputTokens: sum.InputTokens - counted.InputTokens, OutputTokens: sum.OutputTokens - counted.OutputTokens,
		USD: sum.USD - counted.USD, Estimated: sum.Estimated,
	}.Sane()
	l.counted[path] = counted.Add(more)
	return more
}

// done settles the sum that a leaf has reported.
func (l *Ledger) done(path string, d event.StepDone) (more budget.Usage) {
	if !d.Replayed {
		more = l.settle(path, d.Usage)
	}
	delete(l.leaves, path)
	delete(l.claims, path)
	for up := address.Parent(path); up != ""; up = address.Parent(up) {
		if l.leaves[up] {
			return more // the sum of the enclosing leaf will include this one
		}
	}
	delete(l.counted, path)
	return more
}
