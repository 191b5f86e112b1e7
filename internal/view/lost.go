package view

import (
	"context"
	"strconv"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// A LostLane is a lane that a run has lost: its address, and the label of its item.
type LostLane struct{ Path, Label string }

// LostLanes returns the lanes that are lost in the DAG with which the run ended.
func LostLanes(ctx context.Context, j journal.Journal, run string) (lanes []LostLane, err error) {
	d, err := j.DAG(ctx, run)
	if err != nil {
		return nil, err
	}
	all, err := dag.Lost(d)
	for _, l := range all {
		if l.FanOut != "" {
			lanes = append(lanes, LostLane{l.FanOut + "[" + strconv.Itoa(l.Index) + "]", l.Marker.Text()})
		}
	}
	return lanes, err
}
