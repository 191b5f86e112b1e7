package view

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// Lanes labels the lanes of a run's maps with the names of their items.
type Lanes struct {
	journal journal.Journal
	run     string
	items   map[string][]json.RawMessage // lane items, by path of the map
	read    int                          // total size of items in bytes
}

// maxItems is the maximum total size in bytes of the items that are searched for labels. Lanes of further maps have no labels.
const maxItems = 16 << 20

// LanesOf returns the lane labels of a run. They are read when they are needed.
func LanesOf(j journal.Journal, run string) *Lanes {
	return &Lanes{journal: j, run: run, items: map[string][]json.RawMessage{}}
}

// Label returns the label of a lane, or "" if it has none. The path must end with the number of the lane.
func (l *Lanes) Label(ctx context.Context, path string) (string, error) {
	above := path[:max(strings.LastIndexByte(path, '['), 0)]
	n := address.Parse(path[len(above):]).Number()
	if above == "" || n < 0 || !strings.HasSuffix(path, "]") {
		return "", nil
	}
	items, known := l.items[above]
	if !known && l.read < maxItems {
		rec, err := Record(ctx, l.journal, l.run, above, "decision") // for a map, its items
		if err != nil {
			return "", err
		}
		if rec != nil && len(rec.Content) < maxItems {
			_ = json.Unmarshal(rec.Content, &items) // for a match, this fails: it has no items
			l.read += len(rec.Content)
		}
		l.items[above] = items
	}
	if n >= len(items) {
		return "", nil
	}
	return text.Line(bounds.Label(items[n])), nil
}

// Shown returns a path in which lane numbers are replaced by lane labels.
func (l *Lanes) Shown(ctx context.Context, path string) (string, error) {
	segments := slices.Collect(address.Segments(path))
	at := 0
	for i, segment := range segments {
		at += len(segment)
		if _, number, ok := strings.Cut(segment, "["); ok && strings.HasSuffix(number, "]") {
			label, err := l.Label(ctx, path[:at+i])
			if err != nil {
				return path, err
			}
			if label != "" {
				segments[i] = segment[:strings.LastIndexByte(segment, '[')] + "[" + label + "]"
			}
		}
	}
	return strings.Join(segments, "/"), nil
}

// A LostLane is a lane that a run has lost, with its address and label.
type LostLane struct{ Path, Label string }

// LostLanes returns the lanes that are lost in the final DAG of a run.
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
