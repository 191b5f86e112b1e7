package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/kind"
)

// AnyRun is a value for Options.Reuse that means all runs.
const AnyRun = "*"

// Options configure how a run is recorded and resumed. The zero value suits most programs.
type Options struct {
	// Pipeline is the name of the pipeline in lists of runs. If it is empty, the name of the ashlar is used.
	Pipeline string
	// Source is JSON from which the caller can rebuild the pipeline. It must not contain secrets.
	Source json.RawMessage
	// Labels are recorded with the run; see Query.Labels. If there are none, a resumed run keeps its labels.
	Labels map[string]string
	// Session contains names of labels. Runs with equal values for all of these labels, such as the turns of a tenant's chat, form
	// a session, which shares standing answers: see ask.Question.Standing. A run without a value for the first label does not
	// belong to a session.
	Session []string
	// Revision is the program's revision. If it is empty, the revision in the build information is used.
	Revision string
	// Resume prevents the start of a new run: if the journal has no run with the ID in the Config, the error is ErrNoRun.
	Resume bool
	// Force means that a run is resumed even if its pipeline or input has changed. Records stay valid: the change affects only
	// steps without a result.
	Force bool
	// Refuse means that no change to the pipeline is accepted, not even in steps that the run has not reached. It is meant for a
	// server that runs at the same time as older versions of itself. Unless the run is Done, Failed or Canceled, its State becomes
	// Refused, and its Failure lists the changes. The run continues when it is resumed by a program with the old pipeline, or with
	// Force.
	Refuse bool
	// Again lists paths of recorded steps that a resumed run repeats, with all steps below them and all steps whose input then
	// differs. Their cost is charged again. A recorder repeats them only once for each run: if the run then waits and the same
	// recorder resumes it, the steps are not repeated again.
	Again []string
	// Fork makes a new run a fork of another run. It is ignored for a resumed run, which keeps the Fork it started with. If a fork
	// has no input, it uses the input of the other run.
	Fork *Fork
	// Reuse is the ID (or a unique prefix of it) of the run from which Reusable leaves may take results, or AnyRun. If it is
	// empty, these leaves reuse no results. A resumed run keeps the Reuse it started with.
	Reuse string
	// Account is the name of the account that pays for the run: see Journal.Balance. If it is empty, a resumed run keeps its
	// account.
	Account string
	// Budgets are the shared budgets of the run, and of its inner runs that have none. If one of these budgets cannot pay for a
	// step, the step waits as long as other steps may still return reservations, for up to a minute without a change. After that,
	// the run ends with a *budget.ExhaustedError; it can be resumed later. If Budgets is nil, a resumed run keeps its budgets, and
	// a child uses its parent's budgets if the parent is in the same journal.
	Budgets []budget.Shared
	// Notify names a server's webhooks. The server notifies them each time the run ends, whichever process records the end. If Notify
	// is nil, a resumed run keeps its webhooks.
	Notify []string
	// Secrets are values that must not be recorded, each at least 8 bytes long. The secrets that Stone's models, capabilities and
	// tools use in the run are added automatically.
	Secrets []string
	// Drain stops the run when the channel is closed. If Drain is nil, the run is never drained.
	Drain <-chan struct{}
	// Grace is the time that running steps have to finish after Drain has been closed. Zero means 30 seconds.
	Grace time.Duration
}

// Keep returns a recorder for durable runs. With this recorder, stone.Run starts the run Config.RunID, or resumes it if j already
// has a run with that ID. If RunID is empty, an ID of ten letters and digits is generated. Any number of concurrent runs may use
// the same recorder; Drain stops all of them.
//
// In addition to its usual errors, stone.Run returns a *HeldError, a *ChangedError or, with Options.Resume, ErrNoRun, before any
// step runs. When stone.Run returns, the journal contains the outcome of the run; if writing the outcome fails, the returned error
// contains that error, too.
func Keep(j Journal, opts Options) stone.RunRecorder { return &keeper{Journal: j, opts: opts} }

// keeper is the recorder that Keep returns.
type keeper struct {
	Journal
	opts   Options
	repeat sync.Map // IDs of runs for which Options.Again has already been applied
}

// OpenRun implements [stone.RunRecorder].
func (k *keeper) OpenRun(ctx context.Context, p stone.Ashlar, cfg stone.Config) (stone.RunRecord, error) {
	if k.Journal == nil {
		return stone.RunRecord{Config: cfg}, errors.New("journal.Keep: the journal is nil: pass one, such as the result of sqlite.Open")
	}
	r := &runner{journal: k.Journal, opts: k.opts, cfg: cfg, now: cfg.Now}
	r.cfg.RunID = cmp.Or(cfg.RunID, freshID())
	if r.now == nil {
		r.now = time.Now
	}
	if _, does := k.repeat.Load(r.cfg.RunID); does {
		r.opts.Again = nil
	}
	if err := r.acquire(ctx, p); err != nil {
		cfg.RunID = r.cfg.RunID
		return stone.RunRecord{Config: cfg}, canceled(ctx, err)
	}
	return stone.RunRecord{
		Config: r.config(),
		Begin: func(ctx context.Context) (context.Context, error) {
			ctx, err := r.begin(ctx)
			if r.begun && len(r.opts.Again) > 0 {
				k.repeat.Store(r.cfg.RunID, true)
			}
			return ctx, err
		},
		End: func(result stone.Result, err error) error {
			return join(err, r.end(ctx, result, err), k.Release(r.cfg.RunID)) // Release does nothing if end has released the run
		},
	}, nil
}

// canceled returns err or, if ctx is done, a failure of kind "canceled" that wraps err.
func canceled(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	why := context.Cause(ctx)
	return &stone.Failure{Kind: kind.Canceled, Reason: why.Error(), Cause: errors.Join(why, err)}
}

// join returns an error that joins the messages on one line, without repetitions, or nil if all errors are nil.
func join(first error, more ...error) error {
	for _, err := range more {
		switch {
		case err == nil || first != nil && strings.Contains(first.Error(), err.Error()):
		case first == nil:
			first = err
		default:
			first = fmt.Errorf("%w; %w", first, err)
		}
	}
	return first
}

// freshID returns a new random ID with 50 bits.
func freshID() string {
	var random [7]byte
	rand.Read(random[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))[:10]
}

// runner is the state of a run in this process.
type runner struct {
	journal Journal
	opts    Options
	cfg     stone.Config
	secrets *redact.Set
	now     func() time.Time
	resumed bool
	before  Outcome           // outcome before the run was resumed
	session map[string]string // labels that identify the run's session; nil if it has no session
	info    RunInfo           // recorded by begin
	given   dag.DAG           // input passed to stone.Run; recorded by begin
	begun   bool
	leave   func(over bool) // ends the run's context and charges to the account; nil before begin
	tally   tally
	paid    sync.Map // costly steps that other processes have recorded; keys have type body
	again   []Again
	forked  *forked // nil unless the run is a fork
	left    left
	asked   asked
	open    struct { // unfinished steps of earlier processes; see runner.step
		mu    sync.Mutex
		steps map[body]Step
	}
	tried struct { // recorded attempts; see runner.attempts
		mu   sync.Mutex
		made map[string][]string
	}
	requests requests
	children sync.Map                     // Starters of the children that steps are waiting for, by ID
	life     context.Context              // context of the run in this process; set by begin
	news     atomic.Pointer[[]event.Data] // events to send with the first step
}

// acquire acquires the run and prepares it. If it returns an error, it has released the run.
func (r *runner) acquire(ctx context.Context, p stone.Ashlar) (err error) {
	if r.secrets, err = secretsOf(ctx, r.opts.Secrets); err != nil {
		return err
	}
	before, err := r.journal.Acquire(record.WithBegin(ctx), r.cfg.RunID)
	if err != nil {
		return err
	}
	if err = r.prepare(ctx, p, before); err != nil {
		return join(err, r.refused(ctx, before, err), r.journal.Release(r.cfg.RunID))
	}
	return nil
}

// refused records that the run was refused, if Options.Refuse is set and err is a *ChangedError. If the run had been refused
// before, it keeps the time of the first refusal, and is recorded again only if the reason has changed.
func (r *runner) refused(ctx context.Context, before RunInfo, err error) error {
	changed, ok := errors.AsType[*ChangedError](err)
	if !ok || !r.opts.Refuse {
		return nil
	}
	o := before.Outcome
	f := &Failure{Kind: string(kind.Replay), Reason: r.secrets.Clean(strings.Join(changed.Changes, "; "))}
	switch o.State {
	case Done, Failed, Canceled:
		return nil
	case Refused:
		if *o.Failure == *f {
			return nil
		}
	default:
		o.State, o.Ended = Refused, r.now()
		ctx = context.WithoutCancel(ctx)
		steps, err := r.journal.Steps(ctx, r.cfg.RunID)
		if err != nil {
			return err
		}
		o.Steps, o.Usage = Total(steps)
	}
	o.Failure = f
	return r.journal.End(ctx, r.cfg.RunID, o)
}

// prepare sets r.info and the input of the run, or returns an error if the run cannot continue.
func (r *runner) prepare(ctx context.Context, p stone.Ashlar, before RunInfo) (err error) {
	if from := r.opts.Reuse; from != "" && from != AnyRun {
		found, err := r.journal.Find(ctx, from)
		if err != nil {
			return fmt.Errorf("reuse: %w", err)
		}
		r.opts.Reuse = found.ID
	}
	info := RunInfo{
		ID: r.cfg.RunID, Pipeline: cmp.Or(r.opts.Pipeline, p.Name()), Source: r.opts.Source, Reuse: r.opts.Reuse,
		Fingerprint: p.Fingerprint(), Shape: Shape(p), Revision: cmp.Or(r.opts.Revision, buildRevision()), Started: r.now(),
		Labels: r.opts.Labels, Account: r.opts.Account, Budgets: r.opts.Budgets, Notify: r.opts.Notify,
	}
	if r.cfg.Input.Len() > 0 {
		info.Input = dag.Everything.Queries()[0].Digest(r.cfg.Input, false)
	}
	if r.opts.Resume && before.Started.IsZero() {
		return fmt.Errorf("run %q: %w", r.cfg.RunID, ErrNoRun)
	}
	if err := budget.Check(r.opts.Budgets); err != nil {
		return fmt.Errorf("journal: Options.Budgets: %w", err)
	}
	if r.resumed, r.before = !before.Started.IsZero(), before.Outcome; r.resumed {
		if err := r.compare(ctx, before, &info); err != nil {
			return err
		}
	}
	if err := r.inherit(ctx, &info); err != nil {
		return err
	}
	for i, name := range r.opts.Session {
		if _, ok := info.Labels[name]; !ok && i == 0 {
			break
		} else if i == 0 {
			r.session = map[string]string{}
		}
		r.session[name] = info.Labels[name]
	}
	r.given = r.cfg.Input
	if err := r.fork(ctx, p, before, &info); err != nil {
		return err
	}
	r.info = info
	if info.Input != (dag.ID{}) && r.given.Len() == 0 {
		if r.cfg.Input, err = r.recordedInput(ctx, info); err != nil {
			return err
		}
	}
	return refuse(r.secrets, r.cfg.Input, info.Source)
}

// config returns the Config of the run, with this package's recorder, watcher and frontend.
func (r *runner) config() stone.Config {
	cfg := r.cfg
	cfg.Recorder = &recorder{runner: r}
	cfg.Watch = event.Clean(cfg.Watch, r.secrets)
	asking := &frontend{runner: r}
	if r.cfg.Frontend != nil {
		asking.next = discreet{r.cfg.Frontend, r.secrets}
	}
	cfg.Frontend = asking
	return cfg
}

// begin records that the run has started or was resumed. It returns the run's context, which is canceled when the run is drained.
func (r *runner) begin(ctx context.Context) (context.Context, error) {
	if !r.doneBefore() { // a run that is done is only replayed, and keeps its outcome
		if err := r.journal.Begin(record.WithBegin(ctx), r.info, r.given); err != nil {
			return ctx, canceled(ctx, err)
		}
	}
	r.begun = true
	select {
	case <-r.opts.Drain: // draining starts only now that another process can resume the run
		return ctx, stone.Fail(kind.Canceled, "%w", ErrDrained)
	default:
	}
	ctx, cancel := context.WithCancelCause(redact.With(ctx, r.secrets))
	r.life = ctx
	if r.opts.Drain != nil {
		go r.drain(ctx, cancel)
	}
	ctx, leave, err := r.spending(ctx)
	r.leave = func(over bool) {
		if leave != nil {
			leave(over)
		}
		cancel(nil)
	}
	return ctx, err
}

// drain waits until Options.Drain is closed, gives running steps a grace period of Options.Grace to finish, and then cancels the
// steps that are still running. It returns early if ctx is done.
func (r *runner) drain(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-r.opts.Drain:
	case <-ctx.Done():
		return
	}
	grace := cmp.Or(r.opts.Grace, 30*time.Second)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel(stone.Fail(kind.Canceled, "%w: running steps took longer than %v", ErrDrained, grace))
	case <-ctx.Done():
	}
}

// end records how the run ended, even if ctx is done. It records nothing if the run did not begin, was already done, or has another
// holder. It also records nothing if the run stopped because the journal could not be written: the run then counts as interrupted,
// and can be resumed as if its process had died.
func (r *runner) end(ctx context.Context, result stone.Result, err error) error {
	if r.leave != nil {
		r.leave(err == nil)
	}
	if !r.begun || r.doneBefore() || errors.As(err, new(*HeldError)) ||
		ctx.Err() == nil && errors.Is(err, kind.Recorder) && errors.Is(err, ErrUnavailable) {
		return nil // the run has already ended, or has another holder, or will get one
	}
	o := Outcome{State: stateOf(ctx, err), Ended: r.now(), DAG: result.DAG, Lanes: dag.CountLost(result.Lost), Notices: r.cleanNotices(result.Notices)}
	if n := result.DAG.Latest(); n != nil {
		o.Node = n.ID()
	}
	o.Steps, o.Usage = r.tally.sum()
	ctx = context.WithoutCancel(ctx)
	var f *stone.Failure
	if errors.As(err, &f) {
		o.Failure = &Failure{Kind: string(f.Kind), Reason: r.secrets.Clean(f.Reason), Path: f.Path}
	}
	if r.resumed || o.State == Failed {
		if wait := r.journal.Settled(r.cfg.RunID); wait != nil {
			if err := wait(true); err != nil {
				return err
			}
		}
		steps, err := r.journal.Steps(ctx, r.cfg.RunID)
		if err != nil {
			return err
		}
		if r.resumed { // the tally does not include steps within replayed steps
			o.Steps, o.Usage = Total(steps)
		}
		if o.State == Failed && f != nil {
			if o.Retry, err = retries(f, result.DAG, steps); err != nil {
				return err
			}
		}
	}
	if err := r.journal.End(ctx, r.cfg.RunID, o); err != nil || o.State != Canceled {
		return err
	}
	return r.cancelChildren(ctx)
}

// doneBefore reports whether the run was already done when it was resumed, so that it is only replayed.
func (r *runner) doneBefore() bool {
	return r.resumed && r.before.State == Done && !r.opts.Force && len(r.opts.Again) == 0
}

func stateOf(ctx context.Context, err error) State {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, kind.Waiting):
		return Waiting
	case errors.Is(err, ErrDrained):
		return Drained
	case errors.As(err, new(*budget.ExhaustedError)): // includes a budget whose time is used up, which ends ctx
		return Failed
	case ctx.Err() != nil:
		return Canceled
	}
	return Failed
}

// retries returns the paths of the steps whose recorded failures made a run fail, and which are retried when the run is resumed. It
// omits a failure if a later attempt at the same leaf has a result, because retrying would repeat the later attempt's work.
func retries(f *stone.Failure, d dag.DAG, steps []Step) ([]string, error) {
	targets := []*stone.Failure{f}
	if f.Kind == kind.LanesFailed {
		lost, err := dag.Lost(d)
		if err != nil {
			return nil, fmt.Errorf("list the lost lanes: %w", err)
		}
		for _, l := range lost {
			if path := l.Failure.Meta()["path"]; address.Within(path, f.Path) {
				targets = append(targets, &stone.Failure{Kind: kind.Kind(fmt.Sprint(l.Failure.Get("kind", ""))), Path: path})
			}
		}
		if len(targets) > 1 {
			targets = targets[1:]
		}
	}
	done := map[string][]int{} // numbers of the last attempt with a result, by place
	for _, s := range steps {
		if place, attempts := address.Attempts(s.Path); s.Recorded && s.Failure == "" && slices.Compare(attempts, done[s.Kind+" "+place]) > 0 {
			done[s.Kind+" "+place] = attempts
		}
	}
	var failed []string
	for _, s := range steps {
		if place, attempts := address.Attempts(s.Path); s.Failure != "" && slices.Compare(attempts, done[s.Kind+" "+place]) >= 0 {
			failed = append(failed, s.Path)
		}
	}
	var out []string
	for _, t := range targets {
		all := t.Kind == kind.LanesFailed // all failures within t are retried
		for _, path := range failed {
			if path == t.Path || address.Within(t.Path, path) {
				all = true
				out = append(out, path)
			}
		}
		for _, path := range failed {
			if all && address.Within(path, t.Path) {
				out = append(out, path)
			}
		}
	}
	return out, nil
}

// buildRevision returns the revision in the program's build information, followed by "+" if there were uncommitted changes. It
// returns "" if the revision is not known.
func buildRevision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	return revision + dirty
}
