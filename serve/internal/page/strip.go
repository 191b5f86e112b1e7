package page

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// A strip shows all lanes of a fan-out in the order in which they started. A column represents a few lanes; its height is the
// duration of the longest, and its color the worst state among them.
type strip struct {
	Each    int           // number of lanes per column
	Paths   []stripPath   // the columns, by state
	Median  time.Duration // median duration of the ended lanes
	P95     time.Duration
	Slowest journal.Branch
}

// stripPath is the SVG path of the columns in a state.
type stripPath struct{ State, D string }

const (
	leastOfStrip  = 20     // minimum number of lanes; fewer are visible in the tree
	mostOfStrip   = 10_000 // maximum number of lanes; more would take too long to read
	columns       = 500
	heightOfStrip = 40
)

// stripOf reads the lanes directly below a path. It returns nil if there are too few or too many.
func stripOf(ctx context.Context, read *view.Run, path string, top journal.Level) (*strip, error) {
	if top.All < leastOfStrip || top.All > mostOfStrip || len(top.Branches) == 0 || !strings.HasPrefix(top.Branches[0].Path[len(path):], "[") {
		return nil, nil
	}
	s := &strip{Each: (top.All + columns - 1) / columns}
	var lasted []time.Duration
	var lanes []journal.Branch
	for at, more := "", true; more; {
		l, err := read.Level(ctx, path, journal.Page{From: at, Limit: 1000})
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, l.Branches...)
		at, more = l.Next, l.Next != ""
	}
	var longest time.Duration
	for _, b := range lanes {
		if b.State() == journal.BranchOpen || b.Ended.IsZero() {
			continue
		}
		took := b.Ended.Sub(b.Started)
		if lasted = append(lasted, took); took > longest || s.Slowest.Path == "" {
			longest, s.Slowest = took, b
		}
	}
	if len(lasted) == 0 {
		return nil, nil
	}
	slices.Sort(lasted)
	s.Median, s.P95 = percentile(lasted, 50), percentile(lasted, 95)
	drawn := map[journal.BranchState]*strings.Builder{}
	for x := 0; x*s.Each < len(lanes); x++ {
		state, took := journal.BranchDone, time.Duration(0)
		for _, b := range lanes[x*s.Each : min((x+1)*s.Each, len(lanes))] {
			if worse(b.State(), state) {
				state = b.State()
			}
			if !b.Ended.IsZero() {
				took = max(took, b.Ended.Sub(b.Started))
			}
		}
		if drawn[state] == nil {
			drawn[state] = &strings.Builder{}
		}
		high := max(float64(took)/float64(max(longest, 1))*heightOfStrip, 2)
		fmt.Fprintf(drawn[state], "M%d %dv-%.1f", 2*x+1, heightOfStrip, high)
	}
	for _, state := range severity {
		if d := drawn[state]; d != nil {
			s.Paths = append(s.Paths, stripPath{string(state), d.String()})
		}
	}
	return s, nil
}

// severity orders the states of branches, worst last.
var severity = []journal.BranchState{journal.BranchDone, journal.BranchOpen, journal.BranchPartly, journal.BranchFailed}

func worse(a, b journal.BranchState) bool {
	return slices.Index(severity, a) > slices.Index(severity, b)
}

// percentile returns the p-th percentile, by nearest rank, of sorted values.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

// Width and Height return the size of the drawing in pixels.
func (s *strip) Width() int { return 2 * columns }
func (*strip) Height() int  { return heightOfStrip }

// A forecast estimates the progress of a running run from earlier runs of its pipeline.
type forecast struct {
	Runs  int // number of earlier runs
	Steps int // median number of steps of these runs
	Left  string
}

// runsOfForecast is the number of earlier runs that a forecast reads.
const runsOfForecast = 20

// forecastOf reads the durations of the same pipeline's last runs. It returns nil if none of them has a result.
func forecastOf(ctx context.Context, v View, info journal.RunInfo) (*forecast, error) {
	before, err := v.Journal.Runs(ctx, journal.Query{Pipeline: info.Pipeline, States: []journal.State{journal.Done}, Limit: runsOfForecast})
	if err != nil || len(before) == 0 || info.Pipeline == "" {
		return nil, err
	}
	var lasted []time.Duration
	var steps []int
	for _, run := range before {
		lasted, steps = append(lasted, run.Ended.Sub(run.Started)), append(steps, run.Steps)
	}
	slices.Sort(lasted)
	slices.Sort(steps)
	f := &forecast{Runs: len(before), Steps: steps[len(steps)/2]}
	if left := percentile(lasted, 50) - time.Since(info.Started); left > 0 {
		f.Left = progress.Duration(left)
	}
	return f, nil
}
