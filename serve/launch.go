package serve

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/serve/api"
)

// active is a run that this process is executing.
type active struct {
	owner    string // same as source.Owner
	pipeline string
	cancel   context.CancelFunc
	started  chan struct{} // closed when the run is in the journal, or has ended
	ended    chan struct{}
	watchers []event.Watcher // watchers added by the extras
	noted    noted           // the run's last state in the journal
	err      error           // why the run did not start; valid after ended is closed
}

// A task is a run to be launched.
type task struct {
	*Pipeline
	run     stone.Config
	source  source
	keep    journal.Options
	who     Principal // the caller; for a resumed run, who and start are zero
	start   protocol.Run
	visit   func(ctx context.Context, t task) error // executes the run; nil means stone.Run
	cancel  bool                                    // cancel the run as soon as it has started
	adopted bool                                    // another program started the run
	quiet   bool                                    // do not log the failure, because it has already been logged
	before  journal.Outcome                         // the run's outcome at its last stop, which has already been counted
	most    *int                                    // the owner's maximum number of concurrent runs; nil means unlimited
}

// launch starts a task in the background. If this process is already executing the run, it returns that run, and fresh is false.
func (s *Server) launch(t task) (run *active, fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing() {
		return nil, false, closing()
	}
	if run := s.active[t.run.RunID]; run != nil {
		return run, false, nil
	}
	if err := s.mayRun(t.source.Owner, t.most); err != nil {
		return nil, false, err
	}
	ctx, void := context.WithCancelCause(context.WithoutCancel(s.cfg.Base()))
	cancel := func() { void(nil) }
	run = &active{owner: t.source.Owner, pipeline: t.Name, cancel: cancel, started: make(chan struct{}), ended: make(chan struct{}), noted: noted{id: t.run.RunID}}
	begin := sync.OnceFunc(func() {
		if close(run.started); t.cancel {
			cancel()
		}
	})
	s.active[t.run.RunID] = run
	t.keep.Pipeline, t.keep.Account, t.keep.Drain, t.keep.Grace, t.keep.Refuse = t.Name, t.source.Owner, s.drain, s.cfg.Grace, !t.adopted
	if t.keep.Source, err = json.Marshal(t.source); err != nil { // cannot fail: a source contains only text and numbers
		panic(err)
	} else if t.adopted {
		t.keep.Source = nil // nil keeps the source written by the program that started the run
	}
	t.run.Policy = s.cfg.Policy
	t.run.Recorder = journal.Keep(s.cfg.Journal.(timed).of(t.Name, &run.noted), t.keep)
	for _, e := range s.extras {
		if e.Watch == nil {
			continue
		}
		if w := e.Watch(ctx, &t); w != nil {
			run.watchers = append(run.watchers, w)
		}
	}
	if t.start.Watch != nil {
		run.watchers = append(run.watchers, t.start.Watch(void))
	}
	t.run.Watch = event.All(append(run.watchers, event.Func(slog.LevelInfo, func(event.Event) { begin() }))...)
	s.running.Go(func() {
		defer cancel()
		if s.cfg.Watch != nil {
			t.run.Watch = event.All(t.run.Watch, s.cfg.Watch(journal.RunInfo{ID: t.run.RunID, Pipeline: t.Name, Account: t.source.Owner, Labels: t.keep.Labels, Source: t.keep.Source}))
		}
		run.err = s.run(ctx, run, t)
		s.mu.Lock()
		delete(s.active, t.run.RunID)
		s.mu.Unlock()
		close(run.ended)
		begin()
		for _, w := range run.watchers {
			if w, ok := w.(ender); ok {
				w.End()
			}
		}
	})
	return run, true, nil
}

// mayRun returns an error if the owner already has the maximum number of concurrent runs. If most is nil, there is no maximum.
// The caller holds s.mu.
func (s *Server) mayRun(owner string, most *int) error {
	n := 0
	for _, run := range s.active {
		if run.owner == owner {
			n++
		}
	}
	if most != nil && n >= *most {
		return problem(problems.TooMuch, http.StatusTooManyRequests, "the caller has %d unfinished runs: wait for one of them", n)
	}
	return nil
}

// leaving is the number of attempts to resume a waiting run that another process has not released yet.
const leaving = 10

// run runs a pipeline to its end, within its budget.
func (s *Server) run(ctx context.Context, run *active, t task) error {
	if t.keep.Resume { // no other goroutine can change the run now
		if info, err := s.exactly(context.WithoutCancel(ctx), t.run.RunID); err == nil {
			t.before, t.quiet = info.Outcome, t.quiet || info.State == journal.Refused
		}
	}
	ctx = limit.Ranked(ctx, limit.Rank{Interactive: t.source.Person, Tenant: turnOf(t.source, t.keep.Labels[tenantLabel]), Priority: t.source.Priority})
	ctx, release := within(ctx, t.source.Budget)
	defer release()
	if ctx.Err() != nil { // the run must no longer start
		return context.Cause(ctx)
	}
	visit := t.visit
	if visit == nil {
		visit = func(ctx context.Context, t task) error {
			_, err := stone.Run(ctx, t.Ashlar, t.run)
			return err
		}
	}
	err := visit(s.meters.context(ctx), t)
	for range leaving { // another process has recorded that the run waits, and is about to release it
		if t.before.State != journal.Waiting || !errors.As(err, new(*journal.HeldError)) || waitFor(ctx, after(pollEvery)) != nil {
			break
		}
		err = visit(s.meters.context(ctx), t)
	}
	s.stopped(&t, run, err)
	if err != nil && !t.quiet && !errors.Is(err, kind.Waiting) && !errors.Is(err, journal.ErrDrained) && !errors.As(err, new(*stone.Invalid)) {
		s.cfg.Log.Info("a run ended without a result", "run", t.run.RunID, "error", err)
	}
	return err
}

// stopped calls the After functions of the extras for a run that has stopped, unless the run never started.
func (s *Server) stopped(t *task, run *active, err error) {
	if errors.As(err, new(*journal.HeldError)) {
		return
	}
	info, err := s.left(context.Background(), run)
	if err != nil || info.Ended.Equal(t.before.Ended) {
		return // never started, removed, or without progress
	}
	for _, e := range s.extras {
		if e.After != nil {
			e.After(t, info)
		}
	}
}

// left returns the last state of a run that has stopped in this process.
func (s *Server) left(ctx context.Context, run *active) (journal.RunInfo, error) {
	if info, _, known := run.noted.is(false); known {
		return info, nil
	}
	return s.exactly(ctx, run.noted.id)
}

// resumeDue resumes each of the given runs that is due and whose pipeline is published.
func (s *Server) resumeDue(ctx context.Context, runs ...journal.RunInfo) {
	for _, info := range fair(s.tries.due(runs, time.Now(), s.cfg.Scan)) {
		if s.busy() >= resumeAtOnce {
			break // the next search finds the rest
		}
		_, _ = s.resume(ctx, info.RunInfo, task{quiet: info.again}) // an error means that the pipeline is not published or the server is closing
	}
}

// An abandoner is a journal that can find runs whose process has died.
type abandoner interface {
	Abandoned(ctx context.Context) iter.Seq2[journal.RunInfo, error]
}

// abandoned returns a channel that delivers runs whose process has died, and is closed when ctx is done. If the journal cannot
// find such runs, it returns nil.
func (s *Server) abandoned(ctx context.Context) <-chan journal.RunInfo {
	if s.died == nil {
		return nil
	}
	found := make(chan journal.RunInfo)
	go func() {
		defer close(found)
		for info, err := range s.died.Abandoned(ctx) {
			if err != nil {
				continue // the search that follows reports it
			}
			select {
			case found <- info:
			case <-ctx.Done():
				return
			}
		}
	}()
	return found
}

// resumeAtOnce is the maximum number of concurrent runs that a server resumes by itself.
const resumeAtOnce = 256

// busy returns the number of runs that this process is executing.
func (s *Server) busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active)
}

func notPublished(info journal.RunInfo) *api.Problem {
	if dir := view.Dir(info); dir != "" {
		return conflict("the run was started by the command in %s, and this server does not continue it: stone resume %s, in that directory", dir, info.ID)
	}
	return conflict("this server does not publish the pipeline of the run")
}

// publishedOf returns the pipeline of a run and whether Config.Adopt has selected it. If this server does not publish the
// pipeline, ok is false.
func (s *Server) publishedOf(info journal.RunInfo) (p *Pipeline, adopted, ok bool) {
	src, started := sourceOf(info)
	if waits := info.State == journal.Waiting || info.State == journal.Answered; !started && waits && s.cfg.Adopt != nil {
		p = s.pipelines[s.cfg.Adopt(info)]
		return p, true, p != nil
	}
	p = s.pipeline(src.Published)
	return p, false, started && p != nil
}

// resume resumes a stopped run of a published pipeline, with the options of the task.
func (s *Server) resume(ctx context.Context, info journal.RunInfo, t task) (run *active, err error) {
	src, _ := sourceOf(info)
	p, adopted, ok := s.publishedOf(info)
	switch {
	case !ok && !t.cancel:
		return nil, notPublished(info)
	case !ok: // the run's records suffice to cancel it, unless it has batches
		p = &Pipeline{Name: info.Pipeline}
	}
	if adopted {
		src = source{Published: p.Name, Grant: p.Grant, Budget: least(p.Limits, budget.Limits{}, nil)}
	}
	t.Pipeline, t.source, t.adopted, t.keep.Resume = p, src, adopted, true
	t.keep.Labels = info.Labels
	t.run = stone.Config{RunID: info.ID, Grant: src.Grant}
	if err := s.before(ctx, &t); err != nil {
		return nil, err
	}
	for {
		run, fresh, err := s.launch(t)
		if err != nil || fresh {
			return run, err
		}
		// The run has stopped in the journal but not in this process, or it was resumed meanwhile.
		select {
		case <-run.ended:
			// A waiting run may meanwhile have continued with the answer and failed: then it is not resumed again.
			now, err := s.exactly(ctx, info.ID)
			waited := info.State == journal.Waiting || info.State == journal.Answered || info.State == journal.Running
			if err == nil && waited && !now.Ended.Equal(info.Ended) && now.State != journal.Answered && now.State != journal.Interrupted {
				return run, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-after(time.Millisecond):
			if now, err := s.exactly(ctx, info.ID); err == nil && now.State == journal.Running {
				return run, nil
			}
		}
	}
}

// stop cancels a run. If the server has just resumed the run to check its batches or answers, the run is canceled after that.
func (s *Server) stop(ctx context.Context, info journal.RunInfo) error {
	const most = 5
	for n := 1; ; n++ {
		over, err := s.cancel(ctx, info)
		if err != nil || over {
			return err
		}
		if info, err = s.exactly(ctx, info.ID); err != nil {
			return err
		}
		if n == most {
			return conflict("the run is %s", info.State)
		}
	}
}

// cancel tries once to cancel a run, and reports whether the run is canceled.
func (s *Server) cancel(ctx context.Context, info journal.RunInfo) (over bool, err error) {
	s.mu.Lock()
	run := s.active[info.ID]
	s.mu.Unlock()
	if run != nil {
		run.cancel()
		if err := waitFor(ctx, run.ended); err != nil {
			return false, err
		}
		if info, err = s.exactly(ctx, info.ID); err != nil {
			return false, err
		}
	}
	switch src, _ := sourceOf(info); {
	case run != nil && info.State == journal.Canceled && src.Batch: // its batches may still be running
	case run != nil && info.State == journal.Canceled:
		return true, nil
	case info.State == journal.Done, info.State == journal.Failed, info.State == journal.Canceled:
		return false, conflict("the run is already %s", info.State)
	}
	if run, err = s.resume(ctx, info, task{cancel: true, quiet: true}); err != nil {
		return false, err
	}
	if err := waitFor(ctx, run.ended); err != nil {
		return false, err
	}
	switch info, err = s.exactly(ctx, info.ID); {
	case err != nil || info.State == journal.Canceled:
		return err == nil, err
	case errors.As(run.err, new(*journal.HeldError)):
		return false, conflict("another process is running it: cancel it there")
	case info.State == journal.Done, info.State == journal.Failed, errors.As(run.err, new(*journal.StateError)):
		return false, conflict("the run is already %s", info.State)
	case errors.As(run.err, new(*journal.ChangedError)), errors.As(run.err, new(*api.Problem)):
		return false, run.err
	}
	return false, nil
}

func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
