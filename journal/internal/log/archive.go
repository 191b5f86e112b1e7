package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/journal"
)

// Find implements [journal.Archive].
func (j *Journal) Find(ctx context.Context, prefix string) (journal.RunInfo, error) {
	const most = 6
	var found []*Run
	whole, err := j.data.Run(ctx, prefix)
	if err == nil && whole != nil {
		found, err = j.visible(ctx, []*Run{whole})
	}
	if err == nil && prefix != "" && len(found) == 0 {
		if found, err = j.data.Named(ctx, prefix, most); err == nil {
			found, err = j.visible(ctx, found)
		}
	}
	switch {
	case err != nil:
		return journal.RunInfo{}, j.data.Explain(err)
	case len(found) == 0:
		return journal.RunInfo{}, fmt.Errorf("run %q: %w", prefix, journal.ErrNoRun)
	case len(found) > 1:
		several := &journal.AmbiguousError{Prefix: prefix}
		for _, r := range found {
			several.Found = append(several.Found, r.ID)
		}
		return journal.RunInfo{}, several
	}
	info, err := j.opened(found[0], true)
	if err != nil {
		return info, err
	}
	return j.seen(ctx, info, found[0])
}

// visible leaves out boards, and runs that were acquired but have no start, step or question: their
// process died in between, or will start them soon.
func (j *Journal) visible(ctx context.Context, runs []*Run) (found []*Run, err error) {
	for _, r := range runs {
		if isBoard(r.ID) {
			continue
		}
		there := r.Info != nil || r.Rows > 0
		if !there {
			if there, err = asks(ctx, j.data, r.Row, QuestionSelection{}); err != nil {
				return nil, j.data.Explain(err)
			}
		}
		if there {
			found = append(found, r)
		}
	}
	return found, nil
}

// asks reports whether a run has a question of the selection.
func asks(ctx context.Context, from Reader, run int64, s QuestionSelection) (bool, error) {
	found, err := from.Questions(ctx, run, s)
	return len(found) > 0, err
}

// seen completes the facts about a run with the state of its owner and its questions.
func (j *Journal) seen(ctx context.Context, info journal.RunInfo, r *Run) (journal.RunInfo, error) {
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
		open, err := asks(ctx, j.data, r.Row, QuestionSelection{Open: true})
		if err != nil {
			return info, j.data.Explain(err)
		}
		if !open {
			info.State = journal.Answered
		}
	}
	return info, nil
}

// Runs implements [journal.Archive].
func (j *Journal) Runs(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	var before int64
	if q.Before != "" {
		older, err := j.data.Run(ctx, q.Before)
		if err != nil {
			return nil, j.data.Explain(err)
		}
		if older == nil {
			return nil, fmt.Errorf("run %q: %w", q.Before, journal.ErrNoRun)
		}
		before = older.Row
	}
	var page []journal.RunInfo
	const few = 64
	limit := cmp.Or(q.Limit, journal.DefaultLimit)
	for {
		wanted := max(limit-len(page), few)
		// Only a query of the owner shows whether a run is interrupted, so a chunk is read
		// completely before any of its runs is examined.
		chunk, err := j.chunk(ctx, before, q.States, wanted)
		if err != nil {
			return nil, err
		}
		full := len(chunk) == wanted
		if full {
			before = chunk[wanted-1].Row
		}
		if chunk, err = j.visible(ctx, chunk); err != nil {
			return nil, err
		}
		for _, r := range chunk {
			info, err := j.opened(r, false)
			if err == nil {
				info, err = j.seen(ctx, info, r)
			}
			if err != nil {
				return nil, err
			}
			if q.Selects(info) {
				page = append(page, info)
			}
			if len(page) == limit {
				return page, nil
			}
		}
		if !full {
			return page, nil
		}
	}
}

// chunk returns up to n runs that may be in one of the states.
func (j *Journal) chunk(ctx context.Context, before int64, states []journal.State, n int) (found []*Run, err error) {
	var stored []string
	for _, s := range states {
		switch stored = append(stored, string(s)); s {
		case journal.Running, journal.Interrupted:
			stored = append(stored, string(journal.Running), "")
		case journal.Answered:
			stored = append(stored, string(journal.Waiting))
		}
	}
	for r, err := range j.data.Runs(ctx, before, stored) {
		if err != nil {
			return nil, j.data.Explain(err)
		}
		if found = append(found, r); len(found) == n {
			break
		}
	}
	return found, nil
}

// Remove implements [journal.Archive]. The space is reused; the file does not become
// smaller.
func (j *Journal) Remove(ctx context.Context, id string) error {
	row, err := j.data.Run(ctx, id)
	if err != nil {
		return j.data.Explain(err)
	}
	if row == nil {
		return fmt.Errorf("run %q: %w", id, journal.ErrNoRun)
	}
	if _, err := j.Acquire(ctx, id); err != nil && !errors.As(err, new(*journal.DamageError)) {
		return err
	}
	r := j.holding(id)
	if r == nil {
		return j.notHeld(id)
	}
	err = j.out.write(&write{run: r, also: id + onBoard, do: func(t *transaction) error {
		p := t.part(r)
		if err := t.flush(); err != nil {
			return err
		}
		if err := t.clear(id); err != nil {
			return err
		}
		return t.remove(p)
	}})
	return errors.Join(err, j.Release(id))
}
