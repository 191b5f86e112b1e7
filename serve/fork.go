package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/internal/page"
)

// forkable returns a run with its pipeline of today.
func (s *Server) forkable(ctx context.Context, who Principal, run string) (info journal.RunInfo, p *Pipeline, err error) {
	if info, err = s.owned(ctx, who, run); err != nil {
		return info, nil, err
	}
	p, adopted, ok := s.publishedOf(info)
	switch {
	case !ok || adopted:
		err = notPublished(info)
	case info.State == journal.Running:
		err = conflict("the run is running: fork it when it has ended or waits")
	}
	return info, p, err
}

// foresee predicts what a fork of a run does.
func (s *Server) foresee(ctx context.Context, who Principal, run, at string) (f page.Forecast, err error) {
	info, p, err := s.forkable(ctx, who, run)
	if err != nil {
		return f, err
	}
	f.Anew, f.Perhaps, f.Shared, err = journal.Fork{Run: info.ID, At: at}.Forecast(ctx, s.cfg.Journal, p.Ashlar, dag.DAG{})
	f.Effects = view.SideEffects(p.Ashlar, slices.Concat(f.Anew, f.Perhaps))
	return f, err
}

// fork starts a run with an id that repeats a step of another run, with its input.
func (s *Server) fork(ctx context.Context, who Principal, id, run, at string) error {
	info, p, err := s.forkable(ctx, who, run)
	if err != nil {
		return err
	}
	input, err := journal.Input(ctx, s.cfg.Journal, info)
	if err != nil && !errors.Is(err, journal.ErrNoInput) {
		return err
	}
	t := task{Pipeline: p, who: who, most: who.Runs, run: stone.Config{RunID: keyOf(who, id), Input: input}}
	t.keep.Fork = &journal.Fork{Run: info.ID, At: at}
	t.source = source{Published: p.Name, Request: fmt.Sprintf("%x", sha256.Sum256([]byte(info.ID+"\x00"+at))), Owner: who.Name}
	_, _, err = s.begin(ctx, t)
	return err
}
