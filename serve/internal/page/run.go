package page

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// runPage is the page of a run.
type runPage struct {
	runRow
	Results int          // current number of steps with a result
	Cost    budget.Total // current cost
	Failed  bool
	At      string  // path of the failed step, containing the labels of lanes
	Read    []piece // nodes that the failed step read
	Retry   []string
	Retried budget.Usage // previous cost of the steps that resuming repeats
	Result  *piece
	Asked   asked
	Parent  *journal.RunInfo // run that started this one, if it is in the journal
	Tree    tree
	Answers bool   // questions can be answered on the page
	Resumes bool   // the run can be resumed on the page
	Regains bool   // the run's lost lanes can be repeated on the page
	Dir     string // directory of the command that started the run, if it cannot be resumed on the page
	Forces  bool   // the run was refused, and can be resumed on the page with the current pipeline
	Cancels bool   // the run can be canceled on the page
	// Forecast estimates the remaining time of a running run. It is nil if there are no earlier runs.
	Forecast *forecast
	*view.Glance
	Within *within // a search within the run
}

// Seen identifies the last stop of the run.
func (b runPage) Seen() string { return seen(b.RunInfo) }

// Stopped reports whether the run has stopped without a result, a failure or a question.
func (b runPage) Stopped() bool {
	return view.Resumable(b.State) && b.State != journal.Failed
}

// run shows a run: its state, its failure, its questions and its tree.
func (p *pages) run(w http.ResponseWriter, r *http.Request, v View) error {
	ctx := r.Context()
	info, err := find(ctx, v, r.PathValue("id"))
	if err != nil {
		return err
	}
	body := runPage{runRow: rowOf(info), Failed: (info.State == journal.Failed || info.State == journal.Damaged) && info.Failure != nil, Answers: v.Answer != nil}
	read, err := view.Read(ctx, v.Journal, info, false)
	if err != nil {
		return err
	}
	if body.Asked, err = askedOf(ctx, v, read); err != nil {
		return err
	}
	if body.Parent, err = parentOf(ctx, v, info.ID); err != nil {
		return err
	}
	if body.Tree, err = readTree(ctx, read, partOf(r.URL.Query())); err != nil {
		return err
	}
	if err := body.look(ctx, v, read, r.URL.Query()); err != nil {
		return err
	}
	body.Results, body.Cost = read.Recorded, read.Cost
	switch {
	case body.Failed:
		body.Retried = retried(read)
		if body.At, err = read.Lanes.Shown(ctx, info.Failure.Path); err == nil {
			err = body.explain(ctx, v)
		}
	case info.State == journal.Done && info.Node != dag.ID{}:
		if body.Result, err = pieceOf(ctx, v, info, info.Node.String()); err == nil {
			body.Result.Eval, err = evaluatedOf(ctx, v, info, body.Result)
		}
	}
	if err != nil {
		return err
	}
	if info.State == journal.Running {
		if body.Forecast, err = forecastOf(ctx, v, info); err != nil {
			return err
		}
	}
	runs := v.Runs == nil || v.Runs(info)
	body.Resumes = runs && v.Resume != nil && view.Resumable(info.State)
	if !runs {
		body.Dir = view.Dir(info)
	}
	body.Regains = runs && v.Resume != nil && info.Lanes.Lost > 0 && info.State != journal.Running
	body.Forces = runs && v.Resume != nil && v.Force && info.State == journal.Refused
	body.Cancels = v.Cancel != nil && !view.Over(info.State)
	f := frame{Title: info.ID + " · " + info.Pipeline, Here: "runs", Body: body}
	if !view.Over(info.State) {
		f = p.live(f, "/runs/"+url.PathEscape(info.ID)+"/events?said=true")
		f.Poll = f.Poll || body.Tree.Large
	}
	return v.show(w, r, "run", f)
}

// look adds the summary of the run, and the results of a search in it.
func (b *runPage) look(ctx context.Context, v View, read *view.Run, query url.Values) (err error) {
	for i := range b.Asked.Open {
		if b.Asked.Open[i].Answers = b.Answers; b.Parent != nil && !view.Over(b.Parent.State) {
			b.Asked.Open[i].Answers, b.Asked.Open[i].Parent = false, b.Parent.ID
		}
	}
	if words := query.Get("q"); strings.TrimSpace(words) != "" {
		after, _ := strconv.ParseInt(query.Get("after"), 10, 64) // 0 if the value is not a number
		if b.Within, err = searchWithin(ctx, v, read, words, after); err != nil {
			return err
		}
		b.Tree.Within = b.Within
	}
	if b.Glance, err = read.Glance(ctx); b.Glance != nil && isEvaluation(read.RunInfo) { // an evaluation's report already covers its cases
		b.Glance = &view.Glance{Spent: b.Spent}
	}
	return err
}

// find returns the run with exactly this id.
func find(ctx context.Context, v View, id string) (journal.RunInfo, error) {
	info, err := v.Journal.Find(ctx, id)
	if err == nil && info.ID != id || errors.As(err, new(*journal.AmbiguousError)) {
		err = journal.ErrNoRun
	}
	if errors.Is(err, journal.ErrNoRun) {
		return info, missing("There is no run %q. It may have been removed.", id)
	}
	return info, err
}

// retried returns the total cost so far of the steps that resuming would repeat.
func retried(read *view.Run) (out budget.Usage) {
	for _, s := range read.All {
		if slices.Contains(read.Retry, s.Path) {
			out = out.Add(s.Usage)
		}
	}
	return out
}

// explain determines what the failed step read and what resuming would do.
func (b *runPage) explain(ctx context.Context, v View) error {
	const most = 20
	b.Retry = b.RunInfo.Retry[:min(len(b.RunInfo.Retry), most)]
	if b.Node == (dag.ID{}) {
		return nil
	}
	failure, err := v.Journal.Node(ctx, b.ID, b.Node.String())
	if err != nil {
		return err
	}
	const few = 3
	for _, id := range failure.Parents[:min(len(failure.Parents), few)] {
		read, err := pieceOf(ctx, v, b.RunInfo, id.String())
		if err != nil {
			return err
		}
		b.Read = append(b.Read, *read)
	}
	return nil
}
