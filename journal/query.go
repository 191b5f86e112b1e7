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
	States   []State           // state of the run is one of these
	Pipeline string            // name of the run's pipeline is equal to this
	Labels   map[string]string // run has all of these labels
	Text     string            // kind, path or reason of the failure contains this, ignoring case
	MinCost  float64           // run has cost at least this amount, in USD
	Since    time.Time         // run started at or after this time
	Until    time.Time         // started before this time
	Asking   bool              // with an open question
	Ended    time.Time         // run last ended, or started to wait, at or after this time
	Before   string            // run started before the run with this ID; selects the next page
	Limit    int               // DefaultLimit if zero
}

// DefaultLimit is the default number of runs on a page.
const DefaultLimit = 100

// A Count is the number of a pipeline's runs in one state.
type Count struct {
	Pipeline string
	State    State
	Runs     int
}

// Selects reports whether a run meets all conditions of q except Asking, Before and Limit. The journal itself applies these.
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

// Resumable returns the runs that can continue without a person, oldest first: drained runs, runs whose process died, waiting runs
// whose questions have all been answered, and runs that a different program refused. It does not return canceled and failed runs. A
// service resumes the returned runs when it starts.
func Resumable(ctx context.Context, j Journal) ([]RunInfo, error) {
	return every(ctx, j, Query{States: []State{Drained, Interrupted, Answered, Refused}})
}

// QuestionQuery selects questions that meet every condition that is set.
type QuestionQuery struct {
	Run    string            // ID of the run that asked; empty for all runs without a result or failure
	Labels map[string]string // run has all of these labels
	Path   string            // at this path
	Open   bool              // without an answer yet
	Due    time.Time         // question is open, and its deadline is at or before this time
	After  *Question         // question was asked after this one, identified by Run and Path
}

// Selects reports whether a question meets all conditions of q except Run, Labels and After.
func (q QuestionQuery) Selects(one Question) bool {
	return (q.Path == "" || q.Path == one.Path) && (!q.Open || one.Open()) &&
		(q.Due.IsZero() || one.Open() && !one.Due.IsZero() && !one.Due.After(q.Due))
}

// every returns all runs that q selects, oldest first.
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
