package journal

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Query selects runs that meet every condition that is set. The zero Query selects the
// newest runs.
type Query struct {
	States   []State           // one of these
	Pipeline string            // with this name
	Labels   map[string]string // with all of these
	Text     string            // occurs in the kind, path or reason of the failure, ignoring case
	MinCost  float64           // with at least this cost
	Since    time.Time         // started at or after this time
	Until    time.Time         // started before this time
	Asking   bool              // with an open question
	Ended    time.Time         // last ended, or started to wait, at or after this time
	Before   string            // id of a run: selects older ones, for the next page
	Limit    int               // DefaultLimit if zero
}

// DefaultLimit is the number of runs of a page.
const DefaultLimit = 100

// A Count is the number of runs of a pipeline in a state.
type Count struct {
	Pipeline string
	State    State
	Runs     int
}

// Selects reports whether a run meets the conditions, Asking, Before and Limit excepted: the
// journal applies those.
func (q Query) Selects(r RunInfo) bool {
	for name, value := range q.Labels {
		if got, ok := r.Labels[name]; !ok || got != value {
			return false
		}
	}
	return (len(q.States) == 0 || slices.Contains(q.States, r.State)) &&
		(q.Pipeline == "" || q.Pipeline == r.Pipeline) &&
		(q.Text == "" || r.Failure != nil && strings.Contains(strings.ToLower(r.Failure.Kind+" "+r.Failure.Path+" "+r.Failure.Reason), strings.ToLower(q.Text))) &&
		r.Usage.USD >= q.MinCost &&
		!r.Started.Before(q.Since) && (q.Until.IsZero() || r.Started.Before(q.Until)) && !r.Outcome.Ended.Before(q.Ended)
}

// Resumable returns the runs that can continue without a person, the oldest first:
// drained runs, runs whose process died, runs whose questions have been answered, and runs that
// another program refused. A service resumes them when it starts. Cancelled and failed runs are
// not among them.
func Resumable(ctx context.Context, j Journal) ([]RunInfo, error) {
	return every(ctx, j, Query{States: []State{Drained, Interrupted, Answered, Refused}})
}

// QuestionQuery selects questions that meet every condition that is set.
type QuestionQuery struct {
	Run    string            // of this run; empty means all runs that have neither a result nor a failure
	Labels map[string]string // of runs with all these labels
	Path   string            // at this path
	Open   bool              // without an answer
	Due    time.Time         // without an answer, and with a deadline at or before this time
	After  *Question         // asked later than this one, identified by Run and Path
}

// Selects reports whether a question meets the conditions, Run, Labels and After excepted.
func (q QuestionQuery) Selects(one Question) bool {
	return (q.Path == "" || q.Path == one.Path) && (!q.Open || one.Open()) &&
		(q.Due.IsZero() || one.Open() && !one.Due.IsZero() && !one.Due.After(q.Due))
}

// every returns all runs that a query selects, the oldest first.
func every(ctx context.Context, j Journal, q Query) ([]RunInfo, error) {
	var all []RunInfo
	for q.Limit = DefaultLimit; ; {
		page, err := j.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); len(page) < q.Limit {
			slices.Reverse(all)
			return all, nil
		}
		q.Before = page[len(page)-1].ID
	}
}
