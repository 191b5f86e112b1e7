package log

import (
	"context"
	"iter"
	"time"

	"github.com/stonelayer/stone/journal"
)

// sighting is the observed state of a lease, with the times when this state was first and last seen.
type sighting struct {
	lease
	since, last time.Time
}

// busy is the longest gap between two observations that can be explained by a busy machine.
const busy = 250 * time.Millisecond

// again returns the sighting updated with the current state of the lease. If there was a long gap since the last observation,
// watching starts over, because no owner can renew its lease while the database is down. An owner is presumed dead only if it is
// silent while the database responds.
func (s sighting) again(now lease) sighting {
	at := time.Now()
	if s.lease != now || at.Sub(s.last) > max(now.patience()/2, busy) {
		s = sighting{lease: now, since: at}
	}
	s.last = at
	return s
}

// over reports whether the owner has been silent for longer than the lease is valid.
func (s sighting) over() bool { return s.last.Sub(s.since) > s.patience() }

// Abandoned yields, until ctx is done, the runs that can continue and have no live owner: runs whose owner did not renew its
// lease, and runs that were released before their end, including drained runs. It checks eight times per lease period, and each
// time yields every such run, until a process takes it. Acquire does not watch the owner of a yielded run again, so a process that
// ranges over Abandoned takes over a dead process's run within 1.25 lease periods. If several processes try to, only one acquires
// the run, and the others receive a [*journal.HeldError]. Runs covered by the lease of an outer run are not yielded. After an
// error, Abandoned tries again.
//
// For runs whose questions have been answered, see journal.Resumable.
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
				info, _ := j.opened(r, false) // any damage is reported by Acquire
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

// sighted returns Abandoned's last sighting of the run's lease, or the zero sighting.
func (j *Journal) sighted(id string) sighting {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sightings[id]
}
