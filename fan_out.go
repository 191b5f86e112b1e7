package stone

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
)

func (r *run) mapItems(f *frame, d dag.DAG) dag.DAG {
	items, err := f.choose(d)
	if err != nil {
		return f.fail(d, err)
	}
	base, err := dag.Origin(d)
	if err != nil {
		return f.fail(d, err)
	}
	starts, err := f.spec.enter(base, items)
	if err != nil {
		return f.fail(d, badContent(err))
	}
	switch {
	case len(starts) > 0:
	case f.spec.allowEmpty:
		if base, err = dag.Join(base, nil); err != nil {
			return f.fail(d, err)
		}
		return base
	default:
		return f.fail(d, Fail(kind.MapEmpty, "no items to fan out over: to allow an empty list, add the option AllowEmpty to the Map"))
	}
	if r.recorder != nil {
		f.more().items = &laneItems{starts: starts}
	}
	return r.fan(f, base, starts, func(lane *frame, _ int) *frame { return lane.child(childSegment, 0) })
}

func (r *run) parallel(f *frame, d dag.DAG) dag.DAG {
	if len(f.spec.children) == 0 {
		return f.fail(d, Fail(kind.ParallelEmpty, "parallel %q has no lanes", f.spec.name))
	}
	base, err := dag.Origin(d)
	if err != nil {
		return f.fail(d, err)
	}
	starts := make([]dag.DAG, len(f.spec.children))
	for i := range starts {
		if starts[i], err = dag.Lane(base, i); err != nil {
			return f.fail(d, err)
		}
	}
	return r.fan(f, base, starts, func(lane *frame, i int) *frame { return lane.child(childSegment, i) })
}

// fan runs one lane from each start and returns the joined lanes. Of a failed lane, it keeps only the start and the failure. A
// lane that ends because of the run, for example because it is waiting for an answer, has not failed: instead, the whole fan-out
// ends.
func (r *run) fan(f *frame, base dag.DAG, starts []dag.DAG, body func(*frame, int) *frame) dag.DAG {
	t := fanned{lanes: make([]dag.DAG, len(starts)), lost: make([]bool, len(starts))}
	f.lanes(len(starts), func(i int) {
		lane := f.below(f.spec, indexSegment, i)
		ended := lane.laneStarted(starts[i], len(starts))
		out := r.visit(body(lane, i), starts[i])
		failed := out.InFlight()
		if failed {
			if t.lost[i] = !t.concernsRun(out.Cause()) && f.over() == nil; t.lost[i] {
				out = f.lost(starts[i], out, i, len(starts))
			}
			out = out.WithoutFailure()
		}
		if ended != nil {
			ended(!failed, t.lost[i])
		}
		t.lanes[i] = out
	})
	finished := t.lanes[:0]
	lost, why := 0, ""
	for i, lane := range t.lanes {
		if lane.Len() == 0 { // The run is over or the body called runtime.Goexit.
			if f.over() != nil {
				continue
			}
			t.lost[i] = true
			lane = f.lost(starts[i], f.fail(starts[i], Fail(kind.Panic, "the lane called runtime.Goexit")), i, len(starts))
		}
		if t.lost[i] {
			if lost++; lost == 1 {
				why = fmt.Sprintf("; lane %d: %s", i, lane.Latest().Get("reason", ""))
			}
		}
		finished = append(finished, lane)
	}
	joined, err := dag.Join(base, finished)
	if err != nil {
		return f.fail(base, err)
	}
	if err := f.over(); err != nil {
		return f.fail(joined, err)
	}
	survived, want := len(starts)-lost, f.spec.survivors(len(starts))
	if why := t.ended(survived < want); why != nil {
		out, _ := f.inFlight(joined, why) // the step has already reported the failure
		return out
	}
	if survived < want {
		return f.fail(joined, Fail(kind.LanesFailed, "%d of %d lanes survived, want at least %d%s", survived, len(starts), want, why))
	}
	return joined
}

// fanned holds the lane results of a fan-out.
type fanned struct {
	lanes []dag.DAG // empty where a lane did not finish
	lost  []bool    // whether each lane failed

	exhausted, waiting atomic.Pointer[error] // the reason why the run ends, if a lane has ended it
}

// concernsRun reports whether err ends the run. If it does, concernsRun stores err.
func (t *fanned) concernsRun(err error) bool {
	switch {
	case errors.Is(err, kind.Waiting):
		t.waiting.CompareAndSwap(nil, &err)
	case ofRun(err):
		t.exhausted.CompareAndSwap(nil, &err)
	default:
		return false
	}
	return true
}

// ended returns the error that ends the run, or nil if the run continues. An exhausted budget and the loss of too many lanes take
// precedence over an open question, because answering it would not help.
func (t *fanned) ended(tooFew bool) error {
	if why := t.exhausted.Load(); why != nil {
		return *why
	}
	if why := t.waiting.Load(); why != nil && !tooFew {
		return *why
	}
	return nil
}

// survivors returns the number of lanes, out of n, that must survive.
func (s *spec) survivors(n int) int {
	if s.allLanes {
		return n
	}
	return max(1, s.quorum)
}

// lost returns the DAG that represents a failed lane: the lane's first DAG with the failure node appended. The failure's meta
// contains the path of the fan-out and its number of lanes.
func (f *frame) lost(start, out dag.DAG, lane, lanes int) dag.DAG {
	content, err := dag.Failure.Of(out.Latest())
	if err != nil {
		return start
	}
	content.Lane = &lane
	meta := maps.Clone(out.Latest().Meta())
	if meta == nil {
		meta = map[string]string{}
	}
	meta[terms.FanOut], meta[terms.Lanes] = f.path(), strconv.Itoa(lanes)
	f.run.lossy.Store(true)
	kept, err := start.Append(dag.NewFailure(start, content, meta, f.run.now()))
	if err != nil {
		return start
	}
	return kept
}
