package serve

import (
	"context"
	"errors"
	"iter"
	"maps"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// tenantJournal is a journal as a caller reads it: it has the runs of its tenant alone, of all without a
// tenant, under the ids by which the caller calls them, and no run with secrets.
type tenantJournal struct {
	journal.Journal // nil, so that what is not read here cannot be reached
	server          *Server
	who             Principal
}

func (t tenantJournal) key(ctx context.Context, id string) (string, error) {
	info, err := t.server.owned(ctx, t.who, id)
	return info.ID, err
}

func (t tenantJournal) Find(ctx context.Context, id string) (journal.RunInfo, error) {
	info, err := t.server.owned(ctx, t.who, id)
	info.ID = nameOf(t.who, info.ID)
	return info, err
}

func (t tenantJournal) Runs(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	q.Labels = maps.Clone(q.Labels)
	if q.Labels == nil {
		q.Labels = map[string]string{}
	}
	maps.Copy(q.Labels, t.who.labels())
	if q.Before != "" {
		q.Before = keyOf(t.who, q.Before)
	}
	runs, err := t.server.cfg.Journal.Runs(ctx, q)
	for i := range runs {
		runs[i].ID = nameOf(t.who, runs[i].ID)
	}
	return runs, err
}

func (t tenantJournal) Steps(ctx context.Context, run string) ([]journal.Step, error) {
	key, err := t.key(ctx, run)
	if err != nil {
		return nil, err
	}
	return t.server.cfg.Journal.Steps(ctx, key)
}

func (t tenantJournal) EachStep(ctx context.Context, run string) iter.Seq2[journal.Step, error] {
	key, err := t.key(ctx, run)
	if err != nil {
		return func(yield func(journal.Step, error) bool) { yield(journal.Step{}, err) }
	}
	return t.server.cfg.Journal.EachStep(ctx, key)
}

func (t tenantJournal) EachNode(ctx context.Context, run string) iter.Seq2[journal.NodeInfo, error] {
	key, err := t.key(ctx, run)
	if err != nil {
		return func(yield func(journal.NodeInfo, error) bool) { yield(journal.NodeInfo{}, err) }
	}
	return t.server.cfg.Journal.EachNode(ctx, key)
}

func (t tenantJournal) Record(ctx context.Context, run, path, kind string) (step.Record, error) {
	key, err := t.key(ctx, run)
	if err != nil {
		return step.Record{}, err
	}
	return t.server.cfg.Journal.Record(ctx, key, path, kind)
}

func (t tenantJournal) DAG(ctx context.Context, run string) (dag.DAG, error) {
	key, err := t.key(ctx, run)
	if err != nil {
		return dag.DAG{}, err
	}
	return t.server.cfg.Journal.DAG(ctx, key)
}

func (t tenantJournal) Outline(ctx context.Context, run string) (journal.Outline, error) {
	key, err := t.key(ctx, run)
	if err != nil {
		return nil, err
	}
	return t.server.cfg.Journal.Outline(ctx, key)
}

func (t tenantJournal) Node(ctx context.Context, run, prefix string) (journal.NodeInfo, error) {
	key, err := t.key(ctx, run)
	if err != nil {
		return journal.NodeInfo{}, err
	}
	return t.server.cfg.Journal.Node(ctx, key, prefix)
}

func (t tenantJournal) Follow(ctx context.Context, run string, after int64) iter.Seq2[journal.Row, error] {
	key, err := t.key(ctx, run)
	if err != nil {
		return func(yield func(journal.Row, error) bool) { yield(journal.Row{}, err) }
	}
	return t.server.cfg.Journal.Follow(ctx, key, after)
}

func (t tenantJournal) CountQuestions(context.Context, journal.QuestionQuery) (int, error) {
	return 0, errors.ErrUnsupported // pages count none
}

func (t tenantJournal) EachQuestion(ctx context.Context, q journal.QuestionQuery) iter.Seq2[journal.Question, error] {
	return func(yield func(journal.Question, error) bool) {
		if q.Labels = t.who.labels(); q.Run != "" {
			key, err := t.key(ctx, q.Run)
			if err != nil {
				yield(journal.Question{}, err)
				return
			}
			q.Run = key
		}
		for one, err := range journal.EachQuestion(ctx, t.server.cfg.Journal, q) {
			one.Run = nameOf(t.who, one.Run)
			if !yield(one, err) {
				return
			}
		}
	}
}
