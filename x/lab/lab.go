// Package lab lets evaluations use recorded runs as cases. A case consists of a run's input, its accepted result and its recorded
// answers, so that a changed pipeline need not pay for the same answers again.
package lab

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/cases"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// Part allows stone eval to use recorded runs as cases; see cli.Part.
var Part = cases.Of(func(j journal.Journal, q journal.Query, grant []string) past.Runs { return &runs{j, q, grant} })

// runs implements past.Runs with a journal.
type runs struct {
	Journal journal.Journal
	Query   journal.Query
	Grant   []string // effects that may be repeated for a case
}

// Each yields the runs that the query selects, except runs that ended after Query.Until, so that a resumed evaluation has the
// same cases.
func (r *runs) Each(ctx context.Context) iter.Seq2[past.Case, error] {
	return func(yield func(past.Case, error) bool) {
		for q := r.Query; ; {
			q.Limit = journal.DefaultLimit
			page, err := r.Journal.Runs(ctx, q)
			if err != nil {
				yield(past.Case{}, err)
				return
			}
			for _, info := range page {
				c, err := r.caseOf(ctx, info)
				if !yield(c, err) || err != nil {
					return
				}
				q.Before = info.ID
			}
			if len(page) < q.Limit {
				return
			}
		}
	}
}

func (r *runs) caseOf(ctx context.Context, info journal.RunInfo) (past.Case, error) {
	c := past.Case{Run: info.ID}
	switch {
	case info.State != journal.Done:
		c.Skipped = string(info.State)
		return c, nil
	case !r.Query.Until.IsZero() && info.Ended.After(r.Query.Until):
		c.Skipped = "ended later"
		return c, nil
	}
	input, err := journal.Input(ctx, r.Journal, info)
	if errors.Is(err, journal.ErrNoInput) {
		c.Skipped = "without an input"
		return c, nil
	} else if err != nil {
		return c, err
	}
	c.Inputs = map[string][]json.RawMessage{}
	for n := range input.Nodes() {
		c.Inputs[n.Type()] = append(c.Inputs[n.Type()], json.RawMessage(n.JSON()))
	}
	read := sync.OnceValues(func() (dag.DAG, error) { return r.Journal.DAG(ctx, info.ID) })
	c.Column = func(name string) (json.RawMessage, bool, error) {
		if label, ok := strings.CutPrefix(name, "label."); ok {
			text, err := json.Marshal(info.Labels[label])
			return text, true, err
		}
		d, err := read()
		if err != nil {
			return nil, false, err
		}
		if name != "" {
			n, err := d.Nearest(name)
			if n == nil || err != nil {
				return nil, false, nil
			}
			return json.RawMessage(n.Own()), true, nil
		}
		n := result(d, info)
		if n == nil {
			return nil, false, nil
		}
		return json.RawMessage(n.Own()), true, nil
	}
	return c, nil
}

// result returns the last node of a run or, if the run's pipeline is a plan, the value that the plan emitted.
func result(d dag.DAG, info journal.RunInfo) *dag.Node {
	if n, err := d.Nearest(terms.Emit); err == nil && n != nil {
		return n
	}
	return d.Node(info.Node)
}

// Result returns the result of a run.
func (r *runs) Result(ctx context.Context, id string) (past.Result, error) {
	out := past.Result{}
	info, err := r.Journal.Find(ctx, id)
	if err != nil {
		return out, err
	}
	if out.Input, err = journal.Input(ctx, r.Journal, info); err != nil {
		return out, err
	}
	all, err := r.Journal.DAG(ctx, info.ID)
	if err != nil {
		return out, err
	}
	var made []*dag.Node
	for n := range all.Nodes() {
		if out.Input.Node(n.ID()) == nil && n.ID() != info.Node {
			made = append(made, n)
		}
	}
	if last := all.Node(info.Node); last != nil && out.Input.Node(last.ID()) == nil {
		made = append(made, last)
	}
	out.DAG, err = dag.Extend(out.Input, made)
	out.USD, out.Tokens, out.Seconds = info.Usage.USD, info.Usage.Tokens(), info.Ended.Sub(info.Started).Seconds()
	return out, err
}

// Open returns the recorded run from which a case is answered, as a past.Source. It holds the places where answers are recorded
// rather than the answers themselves.
func (r *runs) Open(ctx context.Context, id string) (*past.Run, error) {
	o := &origin{journal: r.Journal, id: id, requests: map[string][]place{}, leaves: map[string]dag.ID{}}
	o.dag = sync.OnceValues(func() (dag.DAG, error) { return r.Journal.DAG(ctx, id) })
	return &past.Run{Source: o, ID: id, Grant: r.Grant}, o.read(ctx, id, "")
}

// read stores the places of the answers below a path of a run. If a fork has copied a leaf, the leaf's steps are in the run from
// which it was forked.
func (o *origin) read(ctx context.Context, run, path string) error {
	var steps []journal.Step
	for s, err := range o.journal.EachStep(ctx, run) {
		if err != nil {
			return err
		}
		steps = append(steps, s)
	}
	for _, s := range journal.Current(steps) {
		if !s.Recorded || s.Failure != "" || path != "" && !address.Within(s.Path, path) {
			continue
		}
		if request := s.Meta[terms.Request]; request != "" {
			o.requests[request] = append(o.requests[request], place{run, s.Path})
			continue
		}
		if s.Kind == "leaf" && run == o.id {
			o.leaves[s.Path] = s.Node
		}
		if s.Kind == "leaf" && s.From != "" && s.From != run {
			if err := o.read(ctx, s.From, s.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// A place identifies a recorded step.
type place struct{ run, path string }

// origin implements past.Source for one recorded run.
type origin struct {
	journal  journal.Journal
	id       string
	requests map[string][]place // recorded answers, by request
	leaves   map[string]dag.ID  // nodes of leaves, by path
	dag      func() (dag.DAG, error)

	mu      sync.Mutex
	answers map[string]ask.Answer // answers to questions, by version; nil until they are read
}

func (o *origin) Step(ctx context.Context, request string, nth int) (*step.Record, error) {
	places := o.requests[request]
	if nth >= len(places) {
		return nil, nil
	}
	rec, err := o.journal.Record(ctx, places[nth].run, places[nth].path, "step")
	if err != nil || rec.Kept != nil { // nodes that the leaf kept have parents in the recorded run
		return nil, err
	}
	rec = rec.ReusedFrom(o.id)
	var fields map[string]json.RawMessage
	if json.Unmarshal(rec.Content, &fields) == nil && fields["usage"] != nil { // reusing the answer costs nothing
		rec.Meta[terms.UsageNote] = string(fields["usage"])
		delete(fields, "usage")
		rec.Content, err = canon.Append(nil, fields)
	}
	rec.Sum = rec.Seal()
	return &rec, err
}

func (o *origin) Leaf(_ context.Context, path string, same func(dag.DAG) bool) (*dag.Node, error) {
	d, err := o.dag()
	if err != nil {
		return nil, err
	}
	n := d.Node(o.leaves[path]) // not for a leaf in a flow, which commits another node
	if n == nil {
		return nil, nil
	}
	before, err := record.Reached(n.Parents())
	if err != nil || !same(before) {
		return nil, err
	}
	return n, nil
}

func (o *origin) Person(ctx context.Context, version string) (ask.Answer, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.answers == nil {
		all, err := o.journal.Questions(ctx, o.id)
		if err != nil {
			return ask.Answer{}, false, err
		}
		o.answers = map[string]ask.Answer{}
		for _, q := range slices.Backward(all) { // the first answer to a version of a question counts
			if !q.Open() && !strings.HasPrefix(q.By, "the run,") { // "the run" means that the run has withdrawn the question
				version, _, _ := strings.Cut(q.Version, "-") // a count of repetitions follows
				o.answers[version] = ask.Answer{Response: q.Response, By: q.By, Given: q.Answered}
			}
		}
	}
	a, known := o.answers[version]
	return a, known, nil
}
