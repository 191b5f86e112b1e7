package log

import (
	"context"
	"iter"
	"time"

	"github.com/stonelayer/stone/journal"
)

// sighting is an observed lease, with the times at which this state was first and last seen.
type sighting struct {
	lease
	since, last time.Time
}

// busy is the longest gap between two observations that a busy machine explains.
const busy = 250 * time.Millisecond

// again returns the sighting of a lease now. While a database is down, no owner can renew its lease. So a gap restarts the watch,
// and only an owner that is silent while the database answers is presumed dead.
func (s sighting) again(now lease) sighting {
	at := time.Now()
	if s.lease != now || at.Sub(s.last) > max(now.patience()/2, busy) {
		s = sighting{lease: now, since: at}
	}
	s.last = at
	return s
}

// over reports whether the owner has been silent for as long as the lease.
func (s sighting) over() bool { return s.last.Sub(s.since) > s.patience() }

// Abandoned yields, until ctx is done, the runs that can continue and have no live owner: those whose owner did not renew its
// lease, and those released before their end, including drained ones. It looks eight times per lease, and yields a run each time
// until a process takes it. Acquire then takes the run without watching its owner again, so a process that ranges over Abandoned
// takes over a dead process's run within 1.25 times the lease. One of several processes gets the run; the others get a
// [*journal.HeldError]. Runs covered by the lease of an outer run are not yielded. After an error, Abandoned tries again.
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

// silent returns the runs that can continue and have no live owner.
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

// sighted returns the last sighting of a run's lease by Abandoned, if any.
func (j *Journal) sighted(id string) sighting {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sightings[id]
}
