package log

import (
	"context"
	"iter"
	"time"

	"github.com/stonelayer/stone/journal"
)

// sighting is a lease, when it was first seen in this state, and when last.
type sighting struct {
	lease
	since, last time.Time
}

// busy is a gap between two looks that a busy machine explains.
const busy = 250 * time.Millisecond

// again returns the sighting of a lease now. While a database is down, no owner can give a
// sign of life. So the watch starts anew after a gap, and only an owner that is silent
// although the database answers is given up.
func (s sighting) again(now lease) sighting {
	at := time.Now()
	if s.lease != now || at.Sub(s.last) > max(now.patience()/2, busy) {
		s = sighting{lease: now, since: at}
	}
	s.last = at
	return s
}

// over reports whether the owner has been silent for the time of the lease.
func (s sighting) over() bool { return s.last.Sub(s.since) > s.patience() }

// Abandoned yields the runs that can continue and have no live owner, as it finds them,
// until ctx is done: those whose owner gave no sign of life for the time of its lease, and
// those that their owner left before the end, drained ones included. It looks eight times per lease, and yields a
// run each time until somebody takes it. Acquire then takes the run without watching its
// owner once more, so a process that ranges over Abandoned has the run of a dead process
// within 1.25 times the lease. Of several processes one gets the run; the others get a
// [*journal.HeldError]. A run that the lease of an outer run covers is not yielded. After
// an error Abandoned looks again.
//
// Runs whose questions have been answered are in journal.Resumable.
func (j *Journal) Abandoned(ctx context.Context) iter.Seq2[journal.RunInfo, error] {
	return func(yield func(journal.RunInfo, error) bool) {
		timer := time.NewTicker(max(j.opts.Lease/8, time.Millisecond))
		defer timer.Stop()
		for {
			found, err := j.silent(ctx)
			if err != nil && !yield(journal.RunInfo{}, j.data.Explain(err)) {
				return
			}
			for _, r := range found {
				info, _ := j.opened(r, false) // Acquire reports damage
				info.ID = r.ID
				if info.State == journal.Running {
					info.State = journal.Interrupted
				}
				if !yield(info, nil) {
					return
				}
			}
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// silent looks at the leases of all runs that can continue, and returns those without a
// live owner.
func (j *Journal) silent(ctx context.Context) (found []*Run, err error) {
	seen := map[string]sighting{}
	for r, err := range j.data.Runs(ctx, RunSelection{States: []string{string(journal.Running), string(journal.Drained)}}) {
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return nil, err
		}
		if r.Outer != "" || r.Lease > 0 && r.Owner == j.owner {
			continue
		}
		now := lease{true, r.Owner, r.Beat, r.Lease}
		seen[r.ID] = j.sighted(r.ID).again(now)
		if now.free() || seen[r.ID].over() {
			found = append(found, r)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sightings = seen
	return found, nil
}

// sighted returns how Abandoned saw the lease of a run last, if it did.
func (j *Journal) sighted(id string) sighting {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sightings[id]
}
