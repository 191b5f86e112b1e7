package journal

import (
	"context"
	"errors"
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
	Text     string            // in the kind, path or reason of the failure; case is ignored
	MinCost  float64           // of at least this cost
	Since    time.Time         // started at or after this time
	Until    time.Time         // started before this time
	Asking   bool              // with an open question
	Ended    time.Time         // last ended, or started to wait, at or after this time
	Before   string            // id of a run: only older ones, the next page
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

// Counts counts the runs that q selects, by pipeline and state. Of its conditions, only States, Pipeline, Labels
// and Asking apply. A database that has a method Counts counts them in one query, where a damaged run has the state that is
// stored; of other archives all runs are read.
func Counts(ctx context.Context, a Archive, q Query) (all []Count, err error) {
	q = Query{States: q.States, Pipeline: q.Pipeline, Labels: q.Labels, Asking: q.Asking}
	if c, ok := a.(interface {
		Counts(ctx context.Context, q Query) ([]Count, error)
	}); ok {
		return c.Counts(ctx, q)
	}
	runs, err := every(ctx, a, q)
	at := map[Count]int{}
	for _, r := range runs {
		of := Count{Pipeline: r.Pipeline, State: r.State}
		if _, ok := at[of]; !ok {
			at[of], all = len(all), append(all, of)
		}
		all[at[of]].Runs++
	}
	return all, err
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
func Resumable(ctx context.Context, a Archive) ([]RunInfo, error) {
	return every(ctx, a, Query{States: []State{Drained, Interrupted, Answered, Refused}})
}

// OpenQuestions returns the open questions of all runs with the labels, from the
// oldest run first. It leaves out runs with a damaged question, for which Questions returns a
// *DamageError. A database that has a method OpenQuestions reads those of many runs at once.
func OpenQuestions(ctx context.Context, j Journal, labels map[string]string) ([]Question, error) {
	q := Query{States: []State{Running, Waiting, Interrupted, Drained, Canceled, Refused}, Labels: labels, Asking: true}
	if d, ok := j.(interface {
		OpenQuestions(ctx context.Context, q Query) ([]Question, error)
	}); ok {
		return d.OpenQuestions(ctx, q)
	}
	runs, err := every(ctx, j, q)
	if err != nil {
		return nil, err
	}
	var open []Question
	for _, r := range runs {
		questions, err := j.Questions(ctx, r.ID)
		if errors.As(err, new(*DamageError)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		open = append(open, slices.DeleteFunc(questions, func(q Question) bool { return !q.Open() })...)
	}
	return open, nil
}

// every returns all runs that a query selects, the oldest first.
func every(ctx context.Context, a Archive, q Query) ([]RunInfo, error) {
	var all []RunInfo
	for q.Limit = DefaultLimit; ; {
		page, err := a.Runs(ctx, q)
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
