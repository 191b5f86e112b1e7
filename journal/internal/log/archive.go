package log

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stonelayer/stone/journal"
)

// Find implements [journal.Journal].
func (j *Journal) Find(ctx context.Context, prefix string) (journal.RunInfo, error) {
	const most = 6
	var found []*Run
	var err error
	if prefix != "" {
		found, err = j.data.Named(ctx, prefix, most)
	}
	switch {
	case err != nil:
		return journal.RunInfo{}, j.data.Explain(err)
	case len(found) == 0:
		return journal.RunInfo{}, noRun(prefix)
	case len(found) > 1 && found[0].ID != prefix:
		several := &journal.AmbiguousError{Prefix: prefix}
		for _, r := range found {
			several.Found = append(several.Found, r.ID)
		}
		return journal.RunInfo{}, several
	}
	return j.described(ctx, found[0], true)
}

// described returns the description of a run that other processes see. For a damaged run, it has only a few fields.
func (j *Journal) described(ctx context.Context, r *Run, shape bool) (journal.RunInfo, error) {
	return j.seen(ctx, j.facts(r, shape), r, func() (bool, error) { return asks(ctx, j.data, QuestionSelection{Run: r.Row, Open: true}) })
}

// listed is like described, but for a run from a list, whose Asks is set.
func (j *Journal) listed(ctx context.Context, r *Run) (journal.RunInfo, error) {
	return j.seen(ctx, j.facts(r, false), r, func() (bool, error) { return r.Asks, nil })
}

func (j *Journal) facts(r *Run, shape bool) journal.RunInfo {
	info, err := j.opened(r, shape)
	if err != nil {
		info = journal.RunInfo{Pipeline: r.Pipeline, Started: instant(r.Started)}
		info.Ended = instant(r.Ended)
		info.State, info.Failure = journal.Damaged, &journal.Failure{Kind: string(journal.Damaged), Reason: err.Error()}
	}
	return info
}

// asks reports whether there is a question that s selects.
func asks(ctx context.Context, from Reader, s QuestionSelection) (bool, error) {
	s.Most = 1
	for _, err := range from.Questions(ctx, s) {
		return err == nil, err
	}
	return false, nil
}

// seen completes a run's description: its state also depends on its owner and its questions.
func (j *Journal) seen(ctx context.Context, info journal.RunInfo, r *Run, asks func() (bool, error)) (journal.RunInfo, error) {
	owner, held := r.Owner, r.Lease > 0
	if r.Outer != "" {
		outer, err := j.data.Run(ctx, r.Outer)
		if err != nil {
			return info, j.data.Explain(err)
		}
		if outer != nil {
			owner, held = outer.Owner, outer.Lease > 0
		}
	}
	info.ID = r.ID
	switch info.State = cmp.Or(info.State, journal.Running); {
	case held && lives(owner):
		info.Owner = owner
	case info.State == journal.Running:
		info.State = journal.Interrupted
	case info.State == journal.Waiting:
		open, err := asks()
		if err != nil {
			return info, j.data.Explain(err)
		}
		if !open {
			info.State = journal.Answered
		}
	}
	return info, nil
}

// Runs implements [journal.Journal].
func (j *Journal) Runs(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	var before int64
	if q.Before != "" {
		older, err := j.data.Run(ctx, q.Before)
		if err != nil {
			return nil, j.data.Explain(err)
		}
		if older == nil {
			return nil, noRun(q.Before)
		}
		before = older.Row
	}
	var page []journal.RunInfo
	const few = 64
	limit := cmp.Or(q.Limit, journal.DefaultLimit)
	for wanted := limit; ; wanted = max(limit-len(page), few) {
		s := selected(q)
		s.Before, s.Most = before, wanted
		read := 0
		for r, err := range j.data.Runs(ctx, s) {
			if err != nil {
				return nil, j.data.Explain(err)
			}
			read, before = read+1, r.Row
			info, err := j.listed(ctx, r)
			if err != nil {
				return nil, err
			}
			if selects(q, info) {
				page = append(page, info)
			}
			if len(page) == limit {
				return page, nil
			}
		}
		if read < wanted {
			return page, nil
		}
	}
}

// Counts implements [journal.Journal].
func (j *Journal) Counts(ctx context.Context, q journal.Query) (all []journal.Count, err error) {
	q = journal.Query{States: q.States, Pipeline: q.Pipeline, Labels: q.Labels, Asking: q.Asking}
	found, err := j.data.CountRuns(ctx, selected(q))
	if err != nil {
		return nil, j.data.Explain(err)
	}
	at := map[journal.Count]int{}
	for _, c := range found {
		row := &Run{Owner: c.Owner, Outer: c.Outer}
		if c.Held {
			row.Lease = 1
		}
		info, err := j.seen(ctx, journal.RunInfo{Outcome: journal.Outcome{State: journal.State(c.State)}}, row, func() (bool, error) { return c.Asks, nil })
		if err != nil {
			return nil, err
		}
		if len(q.States) > 0 && !slices.Contains(q.States, info.State) {
			continue
		}
		of := journal.Count{Pipeline: c.Pipeline, State: info.State}
		if _, ok := at[of]; !ok {
			at[of], all = len(all), append(all, of)
		}
		all[at[of]].Runs += int(c.Runs)
	}
	return all, nil
}

// selected returns the conditions of a query that the database can check. Time ranges are extended by a millisecond, because the
// database stores milliseconds: see RunSelection.
func selected(q journal.Query) RunSelection {
	s := RunSelection{Pipeline: q.Pipeline, Labels: q.Labels, Started: millis(q.Since) - 1, Ended: millis(q.Ended) - 1}
	if q.Since.IsZero() {
		s.Started = 0
	}
	if q.Ended.IsZero() {
		s.Ended = 0
	}
	if !q.Until.IsZero() {
		s.Until = millis(q.Until) + 1
	}
	s.Cost, s.Failed, s.Asking = q.MinCost, q.Text != "", q.Asking
	if plain(q.Text) {
		s.Failure = strings.ToLower(q.Text)
	}
	for _, state := range q.States {
		switch state {
		case journal.Damaged: // the database stores some other state
			s.States = nil
			return s
		case journal.Running, journal.Interrupted:
			s.States = append(s.States, string(journal.Running), "")
		case journal.Answered:
			s.States = append(s.States, string(journal.Waiting))
		default:
			s.States = append(s.States, string(state))
		}
	}
	s.Answered = slices.Contains(q.States, journal.Answered) && !slices.Contains(q.States, journal.Waiting)
	slices.Sort(s.States)
	s.States = slices.Compact(s.States)
	return s
}

// plain reports whether text is such that databases convert its case the same way as Go does.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || r == 0 })
}

// millis returns a time as Unix milliseconds, or 0 for the zero time.
func millis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// selects reports whether a run that the database has selected really meets the conditions of q. For a damaged run, it can check
// only the state; such a run never meets conditions on failure or cost.
func selects(q journal.Query, info journal.RunInfo) bool {
	if info.State != journal.Damaged {
		return q.Selects(info)
	}
	return (len(q.States) == 0 || slices.Contains(q.States, journal.Damaged)) && q.Text == "" && q.MinCost == 0
}

// Remove implements [journal.Journal]. The freed space is reused, but the file does not shrink.
func (j *Journal) Remove(ctx context.Context, id string) error {
	row, err := j.data.Run(ctx, id)
	if err != nil {
		return j.data.Explain(err)
	}
	if row == nil {
		return noRun(id)
	}
	if row.Rows <= AtOnce {
		if gone, err := j.removeFree(id); err != nil {
			return err
		} else if gone {
			return journal.RemoveChildren(ctx, j, id)
		}
	}
	r, _, err := j.hold(ctx, id)
	if err != nil {
		return err
	}
	if err = j.shrink(ctx, r, row.Rows); err == nil {
		err = j.out.write(&write{run: r, do: func(t *transaction) error {
			p := t.part(r)
			if err := t.flush(); err != nil {
				return err
			}
			return t.remove(p)
		}})
	}
	if err = errors.Join(err, j.Release(id)); err != nil {
		return err
	}
	return journal.RemoveChildren(ctx, j, id)
}

// removeFree removes a run unless it is held, and reports whether it did so.
func (j *Journal) removeFree(id string) (gone bool, err error) {
	removed := false // set in the writer's goroutine, which may still be running after write has returned an error
	err = j.out.write(&write{also: id, do: func(t *transaction) error {
		row, now, err := j.lease(background, t, id)
		if removed = err == nil && row != nil && now.free(); !removed {
			return err
		}
		return t.Remove(row.Row)
	}})
	if err != nil {
		return false, err
	}
	return removed, nil
}

// AtOnce is the maximum number of records that one transaction removes. It is limited because other runs must wait for the
// transaction.
var AtOnce int64 = 10_000

// removing is the failure kind of a run whose removal has started. The run cannot be resumed, because records are missing.
const removing = "removed"

const interrupted = "its removal was interrupted: remove it again"

func isRemoving(o journal.Outcome) bool { return o.Failure != nil && o.Failure.Kind == removing }

// shrink removes most records of a large run, in several transactions. If it is interrupted, the run's failure kind shows that its
// removal has started.
func (j *Journal) shrink(ctx context.Context, r *run, rows int64) error {
	ended := j.now()
	text, err := json.Marshal(journal.Outcome{State: journal.Failed, Ended: ended, Failure: &journal.Failure{Kind: removing, Reason: interrupted}})
	if err != nil {
		return err
	}
	removed := int64(0)
	for first := int64(0); removed < rows-AtOnce && first < 4*rows; first += AtOnce { // numbers may have gaps
		if err := ctx.Err(); err != nil {
			return err
		}
		var now int64
		err := j.out.write(&write{run: r, do: func(t *transaction) error {
			t.part(r)
			if err := t.flush(); err != nil {
				return err
			}
			row, err := t.Run(background, r.id)
			if err == nil && first == 0 && row.Info != nil {
				row.State, row.Outcome, row.Ended, row.Tail, row.Tip = string(journal.Failed), text, millis(ended), 0, 0
				row.seal()
				err = t.Put(row, Ending)
			}
			if err == nil {
				now, err = t.Delete(row.Row, first, first+AtOnce-1)
			}
			return err
		}})
		if err != nil {
			return err
		}
		removed += now
	}
	return nil
}
