package serve

import (
	"context"
	"errors"
	"iter"
	"maps"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// tenantJournal is a caller's view of a journal. It shows the runs of the caller's tenant, or all runs to a caller without a
// tenant. Runs have the caller's ids, and secrets are removed.
type tenantJournal struct {
	journal.Journal // nil, so that other methods cannot be used
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
	if from := info.Fork; from != nil {
		info.Fork = &journal.Fork{Run: nameOf(t.who, from.Run), At: from.At}
	}
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
	steps, err := t.server.cfg.Journal.Steps(ctx, key)
	for i := range steps {
		steps[i].From = nameOf(t.who, steps[i].From)
	}
	return steps, err
}

func (t tenantJournal) EachStep(ctx context.Context, run string) iter.Seq2[journal.Step, error] {
	key, err := t.key(ctx, run)
	if err != nil {
		return func(yield func(journal.Step, error) bool) { yield(journal.Step{}, err) }
	}
	return changed(t.server.cfg.Journal.EachStep(ctx, key), func(s *journal.Step) { s.From = nameOf(t.who, s.From) })
}

func (t tenantJournal) EachNode(ctx context.Context, run string) iter.Seq2[journal.NodeInfo, error] {
	key, err := t.key(ctx, run)
	if err != nil {
		return func(yield func(journal.NodeInfo, error) bool) { yield(journal.NodeInfo{}, err) }
	}
	return changed(t.server.cfg.Journal.EachNode(ctx, key), func(n *journal.NodeInfo) { n.Meta = originIn(t.who, n.Meta) })
}

func (t tenantJournal) Record(ctx context.Context, run, path, kind string) (step.Record, error) {
	key, err := t.key(ctx, run)
	if err != nil {
		return step.Record{}, err
	}
	rec, err := t.server.cfg.Journal.Record(ctx, key, path, kind)
	rec.Meta = originIn(t.who, rec.Meta)
	return rec, err
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
	o, err := t.server.cfg.Journal.Outline(ctx, key)
	if err != nil {
		return nil, err
	}
	return tenantOutline{o, t.who}, nil
}

// tenantOutline is a caller's view of an outline.
type tenantOutline struct {
	journal.Outline
	who Principal
}

func (t tenantOutline) Level(ctx context.Context, path string, p journal.Page) (journal.Level, error) {
	l, err := t.Outline.Level(ctx, path, p)
	for i, b := range l.Branches {
		if b.Step != nil && b.Step.From != "" {
			s := *b.Step
			s.From, l.Branches[i].Step = nameOf(t.who, s.From), &s
		}
	}
	return l, err
}

func (t tenantJournal) Node(ctx context.Context, run, prefix string) (journal.NodeInfo, error) {
	key, err := t.key(ctx, run)
	if err != nil {
		return journal.NodeInfo{}, err
	}
	n, err := t.server.cfg.Journal.Node(ctx, key, prefix)
	n.Meta = originIn(t.who, n.Meta)
	return n, err
}

func (t tenantJournal) Follow(ctx context.Context, run string, after int64) iter.Seq2[journal.Row, error] {
	key, err := t.key(ctx, run)
	if err != nil {
		return func(yield func(journal.Row, error) bool) { yield(journal.Row{}, err) }
	}
	return t.server.rows(ctx, t.who, key, after)
}

func (t tenantJournal) Last(ctx context.Context, run string) (int64, error) {
	key, err := t.key(ctx, run)
	if err != nil {
		return 0, err
	}
	return t.server.cfg.Journal.Last(ctx, key)
}

// rows yields the rows of the run with a key, as the caller may see them.
func (s *Server) rows(ctx context.Context, who Principal, key string, after int64) iter.Seq2[journal.Row, error] {
	return changed(s.cfg.Journal.Follow(ctx, key, after), func(r *journal.Row) { r.From = nameOf(who, r.From) })
}

// originIn returns meta with the caller's name for the run from which a result was taken.
func originIn(who Principal, meta map[string]string) map[string]string {
	if from := meta[terms.From]; from != nameOf(who, from) {
		meta = maps.Clone(meta)
		meta[terms.From] = nameOf(who, from)
	}
	return meta
}

// changed returns an iterator that applies change to each element of all.
func changed[T any](all iter.Seq2[T, error], change func(*T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for one, err := range all {
			if change(&one); !yield(one, err) {
				return
			}
		}
	}
}

func (t tenantJournal) CountQuestions(context.Context, journal.QuestionQuery) (int, error) {
	return 0, errors.ErrUnsupported // pages do not count questions
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
		for one, err := range t.server.cfg.Journal.EachQuestion(ctx, q) {
			one.Run = nameOf(t.who, one.Run)
			if !yield(one, err) {
				return
			}
		}
	}
}
