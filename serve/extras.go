package serve

import (
	"context"
	"log/slog"
	"maps"
	"net/http"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/journal"
)

// An extra is a set of functions that are called when runs start, are resumed or stop, so that the code that starts runs need not
// know about them. Each function may be nil.
type extra struct {
	// Before checks a run that is about to start or, if its journal.Options say so, to be resumed. It may add data to the run's
	// record. An error prevents the start.
	Before func(ctx context.Context, t *task) error
	// Watch returns a watcher for the run in this process, or nil. If the watcher has a method End, it is called after the run
	// has stopped in this process. See watcherOf.
	Watch func(ctx context.Context, t *task) event.Watcher
	// After is called when the run has stopped, if it has made progress.
	After func(t *task, info journal.RunInfo)
}

// An ender is a watcher that is notified when its run has stopped in this process.
type ender interface{ End() }

// surrounding returns the extras of a server, in the order in which their Before functions are called. Each of these sees the
// changes that earlier Before functions made to the task.
func (s *Server) surrounding() []extra {
	return []extra{
		{Before: atStart(s.shows)},
		{Before: atStart(s.give)},
		{Before: atStart(limited)},
		{Before: atStart(labeled)},
		{Before: atStart(prioritized)},
		{Before: atStart(granted)},
		{Before: s.batched},
		{Before: atStart(s.asksFew)},
		{Before: s.draws},
		{Before: atStart(s.owes), After: func(*task, journal.RunInfo) { s.outbox.hurry() }},
		{Before: inSession},
		{Watch: func(context.Context, *task) event.Watcher { return newSpeech() }},
		{Before: atStart(told), Watch: s.tells},
		{Watch: s.notices},
		{After: s.meters.ran},
	}
}

// atStart returns a Before function that applies a check to new runs only. A resumed run has already passed the check.
func atStart(check func(context.Context, *task) error) func(context.Context, *task) error {
	return func(ctx context.Context, t *task) error {
		if t.keep.Resume {
			return nil
		}
		return check(ctx, t)
	}
}

// before calls the Before function of each extra.
func (s *Server) before(ctx context.Context, t *task) error {
	for _, e := range s.extras {
		if e.Before == nil {
			continue
		}
		if err := e.Before(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// watcherOf returns the watcher that has the type T and watches a run of this process, or the zero value if there is none.
func watcherOf[T event.Watcher](s *Server, key string) (w T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run := s.active[key]; run != nil {
		for _, one := range run.watchers {
			if is, ok := one.(T); ok {
				return is
			}
		}
	}
	return w
}

// labeled adds the labels of its request and its tenant to a run.
func labeled(_ context.Context, t *task) error {
	if err := bounds.CheckLabels(t.start.Labels); err != nil {
		return unreadable("%v", err)
	}
	t.keep.Labels = map[string]string{}
	maps.Copy(t.keep.Labels, t.start.Labels)
	delete(t.keep.Labels, tenantLabel)
	maps.Copy(t.keep.Labels, t.who.labels())
	return nil
}

// granted narrows the effects of a run to those allowed by its pipeline, its caller and its request.
func granted(_ context.Context, t *task) error {
	if t.start.Grant != nil && !t.who.may(Grant) {
		return problem(problems.Forbidden, http.StatusForbidden, "a grant needs the role %q, which the caller does not have", Grant)
	}
	t.source.Grant = grants.Narrow(grants.Narrow(t.Grant, t.who.Grant), t.start.Grant)
	t.run.Grant = t.source.Grant
	return nil
}

// notices logs the notices of a run.
func (s *Server) notices(_ context.Context, t *task) event.Watcher {
	id := t.run.RunID
	return event.Func(slog.LevelWarn, func(e event.Event) {
		if n, ok := e.Data.(event.Notice); ok {
			s.cfg.Log.Warn("notice of a run", "run", id, "code", n.Code, "path", n.Path, "text", n.Text)
		}
	})
}
