package view

import (
	"cmp"
	"context"
	"slices"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// A Run is a recorded run with its branches.
type Run struct {
	Head
	Questions []journal.Question // shortened with Brief
	Recorded  int                // current number of steps with a result
	Cost      budget.Total       // current cost; for a large run that has not ended, without possible costs
	Large     bool               // the run is large, so its steps were not read
	All       []journal.Step
	Lanes     *Lanes

	journal.Outline
	journal journal.Journal
	asked   map[string]*journal.Question // questions by path

	// The last turn and the last call that were read, with their paths. They are cached because rows of the same turn or call
	// follow each other.
	turnAt, callAt string
	lastReply      *llm.Reply   // nil if there is no reply at turnAt
	lastCall       *call.Record // nil if there is no record at callAt
}

// Small is the maximum number of steps in a run that is read completely. In a larger run, the journal sums up the steps that are
// not shown.
const Small = 20_000

// Read reads a run, including its steps if all is set or there are only a few.
func Read(ctx context.Context, j journal.Journal, info journal.RunInfo, all bool) (*Run, error) {
	r := &Run{Head: Head{info}, Lanes: LanesOf(j, info.ID), journal: j, asked: map[string]*journal.Question{}}
	var err error
	if r.Questions, err = BriefQuestions(ctx, j, info.ID); err != nil {
		return nil, err
	}
	for i, q := range r.Questions {
		r.asked[q.Path] = &r.Questions[i]
	}
	if !all && (info.Ended.IsZero() || info.Steps > Small) {
		if r.Outline, err = j.Outline(ctx, info.ID); err != nil {
			return nil, err
		}
		whole, err := r.Outline.Level(ctx, "", journal.Page{Limit: 1})
		if err != nil {
			return nil, err
		}
		r.Large = whole.Sum.Open+whole.Sum.Recorded > Small
		r.Recorded, r.Cost = whole.Sum.Recorded, info.Usage
		if info.Ended.IsZero() {
			r.Cost = budget.Total{Usage: whole.Sum.Usage}
		}
	}
	if !r.Large {
		if r.All, err = j.Steps(ctx, info.ID); err != nil {
			return nil, err
		}
		r.Outline = journal.OutlineOf(r.All) // includes possible costs
		r.Recorded, r.Cost = journal.Total(r.All)
	}
	return r, nil
}

// Below returns the branches directly below a path, by number. If a large run has more than 1,000 such branches, it returns the
// first ones, and some in each state other than done.
func (r *Run) Below(ctx context.Context, path string) (journal.Level, error) {
	const most, some = 1000, 10
	l, err := r.Level(ctx, path, journal.Page{Limit: most})
	for next := l; err == nil && next.Next != "" && !r.Large; {
		next, err = r.Level(ctx, path, journal.Page{From: next.Next, Limit: most})
		l.Branches = append(l.Branches, next.Branches...)
	}
	for _, state := range []journal.BranchState{journal.BranchFailed, journal.BranchPartly, journal.BranchOpen} {
		if err != nil || l.Next == "" || !r.Large {
			break
		}
		var more journal.Level
		more, err = r.Level(ctx, path, journal.Page{Only: state, Limit: some})
		for _, b := range more.Branches {
			if !slices.ContainsFunc(l.Branches, func(a journal.Branch) bool { return a.Path == b.Path }) {
				l.Branches = append(l.Branches, b)
			}
		}
	}
	number := func(b journal.Branch) int { return address.Parse(b.Path[len(path):]).Number() }
	slices.SortStableFunc(l.Branches, func(a, b journal.Branch) int { return cmp.Compare(number(a), number(b)) })
	return l, err
}
