package year

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// Steps records a run with a fan-out of n lanes, unless it is already in the journal. One lane in a thousand fails. If every is
// not 0, each lane whose number is divisible by every has a different result than it has if every is 0.
func Steps(ctx context.Context, j journal.Journal, id string, n, every int) error {
	if known, err := j.Find(ctx, id); err == nil && known.ID == id {
		return nil
	}
	info := journal.RunInfo{ID: id, Pipeline: "fan", Started: time.Now(), Shape: []journal.Part{
		{Path: "fan", Form: "seq"}, {Path: "fan/things", Form: "map"}, {Path: "fan/things/measure", Form: "leaf"},
	}}
	_, err := j.Acquire(ctx, id)
	if err = errors.Join(err, j.Begin(ctx, info, dag.DAG{})); err != nil {
		return err
	}
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, 64)
	for w := range errs {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				path := fmt.Sprintf("fan/things[%d]/measure", i)
				key := step.Key{RunID: id, Path: path, Kind: "leaf", Name: "measure", Digest: sha256.Sum256([]byte(path))}
				_, errs[w] = j.Do(ctx, key, func(context.Context) (step.Record, error) { return measured(i, every > 0 && i%every == 0) })
			}
		})
	}
	group.Wait()
	end := j.End(ctx, id, journal.Outcome{State: journal.Done, Ended: time.Now(), Steps: n})
	return errors.Join(errors.Join(errs...), end, j.Release(id))
}

func measured(i int, other bool) (step.Record, error) {
	now := time.Unix(1_800_000_000, 0)
	if i%1000 == 999 {
		return step.Record{Failure: &dag.FailureContent{Kind: "unreadable", Reason: fmt.Sprintf("thing %d cannot be measured", i)}, Time: now}, nil
	}
	content := strings.Repeat(strconv.Itoa(i), 20)
	if other {
		content = "other " + content
	}
	n, err := dag.NewNode(dag.Spec{Type: "measure", Content: content, Time: now})
	if err != nil {
		return step.Record{}, err
	}
	rec := step.Record{Node: n, Type: n.Type(), Content: n.Content(), Time: now}
	rec.Sum = rec.Seal()
	return rec, nil
}
