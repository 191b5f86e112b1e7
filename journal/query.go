package journal

import (
	"context"
	"errors"
	"iter"
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

// QuestionQuery selects questions that meet every condition that is set.
type QuestionQuery struct {
	Run    string            // of this run; if empty, of all runs that have neither a result nor a failure
	Labels map[string]string // of runs with all of these
	Path   string            // at this path
	Open   bool              // without an answer
	Due    time.Time         // without an answer, and with a deadline at or before this time
	After  *Question         // asked later than this one, of which only Run and Path count
}

// Selects reports whether a question meets the conditions, Run, Labels and After excepted.
func (q QuestionQuery) Selects(one Question) bool {
	return (q.Path == "" || q.Path == one.Path) && (!q.Open || one.Open()) &&
		(q.Due.IsZero() || one.Open() && !one.Due.IsZero() && !one.Due.After(q.Due))
}

// A questioner searches and counts questions by index.
type questioner interface {
	EachQuestion(ctx context.Context, q QuestionQuery) iter.Seq2[Question, error]
	CountQuestions(ctx context.Context, q QuestionQuery) (int, error)
}

// EachQuestion yields the questions that q selects, the oldest first, and keeps few of them in memory. Of several
// runs it leaves out damaged questions; for one of a single run it yields a *DamageError. An error is the last
// thing that it yields. A database that has the methods EachQuestion and CountQuestions searches by index; of other journals the
// questions of a run are read at once, and come in the order of the runs.
func EachQuestion(ctx context.Context, j Journal, q QuestionQuery) iter.Seq2[Question, error] {
	if d, ok := j.(questioner); ok {
		return d.EachQuestion(ctx, q)
	}
	if q.Run != "" {
		return questionsOf(ctx, j, q)
	}
	return func(yield func(Question, error) bool) {
		runs, err := every(ctx, j, Query{States: []State{Running, Waiting, Answered, Interrupted, Drained, Canceled, Refused}, Labels: q.Labels, Asking: q.Open || !q.Due.IsZero()})
		if q.After != nil {
			runs = from(runs, func(r RunInfo) bool { return r.ID == q.After.Run })
		}
		for _, r := range runs {
			one := q
			if one.Run = r.ID; q.After != nil && q.After.Run != r.ID {
				one.After = nil
			}
			for asked, failed := range questionsOf(ctx, j, one) {
				if errors.As(failed, new(*DamageError)) {
					break
				}
				if !yield(asked, failed) || failed != nil {
					return
				}
			}
		}
		if err != nil {
			yield(Question{}, err)
		}
	}
}

// CountQuestions counts the questions that q selects by Run, Labels, Path and Open, damaged ones included. A database that has the
// methods EachQuestion and CountQuestions reads no texts.
func CountQuestions(ctx context.Context, j Journal, q QuestionQuery) (n int, err error) {
	q = QuestionQuery{Run: q.Run, Labels: q.Labels, Path: q.Path, Open: q.Open}
	if d, ok := j.(questioner); ok {
		return d.CountQuestions(ctx, q)
	}
	for _, err := range EachQuestion(ctx, j, q) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// questionsOf yields the questions of the run of a query.
func questionsOf(ctx context.Context, j Interviewer, q QuestionQuery) iter.Seq2[Question, error] {
	if d, ok := j.(questioner); ok {
		return d.EachQuestion(ctx, q)
	}
	return func(yield func(Question, error) bool) {
		questions, err := j.Questions(ctx, q.Run)
		if err != nil {
			yield(Question{}, err)
			return
		}
		if q.After != nil {
			questions = from(questions, func(one Question) bool { return one.Path == q.After.Path })
			questions = questions[min(1, len(questions)):]
		}
		for _, one := range questions {
			if q.Selects(one) && !yield(one, nil) {
				return
			}
		}
	}
}

// from returns the part of a list that starts with the first match, which is empty without one.
func from[T any](list []T, match func(T) bool) []T {
	if i := slices.IndexFunc(list, match); i >= 0 {
		return list[i:]
	}
	return nil
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
