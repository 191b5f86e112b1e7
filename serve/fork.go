package serve

import (
	"context"
	"errors"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/internal/page"
)

// fork starts a run with the given id that repeats a step of another run with the same input. If id is empty, it only predicts
// what such a run would do.
func (s *Server) fork(ctx context.Context, who Principal, run, at, id string) (*page.Forecast, error) {
	info, err := s.owned(ctx, who, run)
	if err != nil {
		return nil, err
	}
	p, adopted, ok := s.publishedOf(info)
	switch {
	case !ok || adopted:
		return nil, notPublished(info)
	case info.State == journal.Running:
		return nil, conflict("the run is running: fork it when it has ended or waits")
	}
	fork, f := journal.Fork{Run: info.ID, At: at}, new(page.Forecast)
	if f.Anew, f.Perhaps, f.Shared, err = fork.Forecast(ctx, s.cfg.Journal, p.Ashlar, dag.DAG{}); err != nil {
		return nil, err
	}
	all := slices.Concat(f.Anew, f.Perhaps)
	if !slices.ContainsFunc(all, func(s journal.Step) bool { return s.Path == at }) {
		return nil, notFound("the run has no step %q", at)
	}
	if f.Effects = view.SideEffects(p.Ashlar, all); id == "" {
		return f, nil
	}
	t := task{Pipeline: p, who: who, most: who.Runs, keep: journal.Options{Fork: &fork}}
	if t.run = (stone.Config{RunID: keyOf(who, id)}); !runName.MatchString(id) {
		return nil, badID(id)
	}
	if t.run.Input, err = journal.Input(ctx, s.cfg.Journal, info); err != nil && !errors.Is(err, journal.ErrNoInput) {
		return nil, err
	}
	t.source = source{Published: p.Name, Request: "fork of " + info.ID + " at " + at, Owner: who.Name}
	_, _, err = s.begin(ctx, t)
	return f, err
}
