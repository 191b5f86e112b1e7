package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/step"
)

// Fork makes a new run reuse the results of another run. The new run repeats the step At and all steps within it. Every other step
// takes its result from the other run if it reads the same nodes there. If a step has been repeated there (see Options.Again), its
// newest result is used. The other run is not changed.
type Fork struct {
	Run string `json:"run"` // ID of the other run, or a unique prefix of it
	At  string `json:"at"`  // path of a recorded step; if it is within a body, the body's later steps are repeated too
	// Set replaces the result of the leaf At, which then does not run. If Set is nil, the leaf runs.
	Set json.RawMessage `json:"set,omitempty"`
}

// made contains the sum and the ID of the node that a leaf created in the origin.
type made struct{ sum, node dag.ID }

// forked decides which results a forked run takes from its origin, the run it was forked from.
type forked struct {
	Fork
	run     runner             // represents the origin; needed because its repeated steps have renewed keys
	before  map[[2]string]bool // steps before At in the bodies around it; reused whatever they read
	anew    map[string]bool    // steps to repeat, together with all steps within them
	retried map[string]bool    // paths of the failures that ended the origin
	typ     string             // type of Set's content
	was     map[string]made    // results of the origin's leaves, by path
}

// fork reads the records of the origin from which a new or resumed run takes results. It does nothing if the run is not a fork.
func (r *runner) fork(ctx context.Context, p stone.Ashlar, before RunInfo, info *RunInfo) error {
	if info.Fork = before.Fork; !r.resumed {
		info.Fork = r.opts.Fork
	}
	if info.Fork == nil || r.doneBefore() {
		return nil
	}
	from, err := r.journal.Find(ctx, info.Fork.Run)
	switch {
	case err != nil:
		return fmt.Errorf("the run from which run %q is forked: %w", info.ID, err)
	case !r.resumed && from.State == Running:
		return &HeldError{Where: "the journal", Run: from.ID, Owner: from.Owner}
	}
	own := *info.Fork
	own.Run, info.Fork = from.ID, &own
	var steps []Step
	for s, err := range r.journal.EachStep(ctx, from.ID) {
		if err != nil {
			return err
		}
		steps = append(steps, s)
	}
	r.forked = newForked(own, from, info.Shape, Current(steps))
	if own.Set != nil {
		if err := r.checkSet(ctx, p); err != nil {
			return err
		}
		info.Fork.Set = r.forked.Set
	}
	if r.resumed {
		return nil
	}
	if r.given.Len() == 0 {
		if r.given, err = Input(ctx, r.journal, from); err != nil {
			return err
		}
		r.cfg.Input, info.Input = r.given, from.Input
	}
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.Path == own.At }) {
		return fmt.Errorf("fork: run %q: %s: %w", from.ID, own.At, ErrNoStep)
	}
	return nil
}

// checkSet validates Set, the content that replaces a result, and converts it to canonical JSON.
func (r *runner) checkSet(ctx context.Context, p stone.Ashlar) (err error) {
	const most = 1 << 20
	f := r.forked
	t := producer(tree.Body(p), address.Escape(p.Name()), address.Place(f.At))
	switch {
	case t == nil:
		return fmt.Errorf("fork: the pipeline has no leaf %s whose result could be set", f.At)
	case len(f.Set) > most:
		return fmt.Errorf("fork: the content for %s has %d bytes: want at most %d", f.At, len(f.Set), most)
	case r.secrets.Holds(string(f.Set)):
		return fmt.Errorf("fork: the content for %s contains a secret, which must not be recorded: remove it", f.At)
	}
	if err := t.Schema().Validate(ctx, f.Set); err != nil {
		return fmt.Errorf("fork: the content for %s: %w", f.At, err)
	}
	f.typ = t.Name()
	f.Set, err = canon.Canonical(f.Set)
	return err
}

// producer returns the node type that the leaf at place produces, or nil if a contains no such leaf.
func producer(a stone.Ashlar, path, place string) dag.AnyType {
	if path == place && a.Form() == "leaf" {
		return a.Produces()
	}
	for occurrence, c := range tree.Children(a) {
		if below := address.Child(path, c.Name(), occurrence); below == place || address.Within(place, below) {
			if t := producer(c, below, place); t != nil {
				return t
			}
		}
	}
	return nil
}

func newForked(f Fork, from RunInfo, now []Part, steps []Step) *forked {
	out := &forked{Fork: f, run: runner{again: from.Again}, before: map[[2]string]bool{}, anew: map[string]bool{f.At: true}, retried: map[string]bool{}, was: map[string]made{}}
	for _, path := range from.Retry {
		out.retried[path] = true
	}
	changed := map[string]bool{} // places of leaves whose prompt has changed
	for _, n := range prompts(from.Shape, now) {
		changed[n.Path] = true
	}
	bodies := map[string]bool{}
	for _, s := range steps {
		if s.Kind == "leaf" || s.Kind == "step" {
			bodies[s.Path] = true
		}
	}
	at := slices.IndexFunc(steps, func(s Step) bool { return s.Path == f.At })
	for i, s := range steps {
		if s.Kind == "leaf" && changed[address.Place(s.Path)] && !address.Within(f.At, s.Path) {
			out.anew[s.Path] = true
		}
		if s.Kind == "leaf" && s.Recorded && s.Failure == "" {
			node := s.Node
			if as, err := dag.ParseID(s.Meta[terms.As]); err == nil {
				node = as
			}
			out.was[s.Path] = made{s.Sum, node}
		}
		around := address.Parent(s.Path)
		for around != "" && !bodies[around] {
			around = address.Parent(around)
		}
		switch inside := s.Kind != "leaf" && around != "" && address.Within(f.At, around); {
		case inside && i >= at:
			out.anew[s.Path] = true
		case inside && !address.Within(f.At, s.Path):
			out.before[[2]string{s.Path, s.Kind}] = true
		}
	}
	return out
}

// shares reports whether the step at path may take its result from the origin.
func (f *forked) shares(path, kind string) bool {
	if kind != "decision" && address.Within(f.At, path) { // the step is a body around At
		return false
	}
	if f.retried[path] {
		return false
	}
	for ; path != ""; path = address.Parent(path) {
		if f.anew[path] {
			return false
		}
	}
	return true
}

// origin returns a context that identifies the step's result in the origin. If the step must not take its result from there, origin
// returns ctx unchanged.
func (f *forked) origin(ctx context.Context, key step.Key) context.Context {
	if f == nil || !f.shares(key.Path, key.Kind) {
		return ctx
	}
	f.run.renew(&key)
	return record.WithOrigin(ctx, record.Origin{Run: f.Run, Digest: key.Digest, Placed: f.before[[2]string{key.Path, key.Kind}]})
}

// again is called for a leaf that ran again. If its result is the same as in the origin, again records the ID of the origin's node
// in the new node, so that later steps can reuse results. It reports whether it has changed rec.
func (f *forked) again(key step.Key, rec *step.Record) (bool, error) {
	if f == nil || key.Kind != "leaf" || rec.Failure != nil || rec.Node == nil {
		return false, nil
	}
	was := f.was[key.Path]
	if was.node == (dag.ID{}) || was.sum != rec.Sum || was.node == rec.Node.ID() {
		return false, nil
	}
	rec.Meta = maps.Clone(rec.Meta)
	if rec.Meta == nil {
		rec.Meta = map[string]string{}
	}
	*rec = record.As(*rec, was.node)
	n, err := dag.NewNode(dag.Spec{Type: rec.Type, Content: rec.Content, Parents: rec.Node.Parents(), Meta: rec.Meta, Time: rec.Time})
	rec.Node = n
	return true, err
}

// sets returns the record with the content Set if key is the key of the step At, and nil if the step must run.
func (f *forked) sets(key step.Key, now time.Time) *step.Record {
	if f == nil || f.Set == nil || key.Path != f.At || key.Kind != "leaf" {
		return nil
	}
	rec := &step.Record{Type: f.typ, Content: bytes.Clone(f.Set), Time: now}
	rec.Sum = rec.Seal()
	return rec
}
