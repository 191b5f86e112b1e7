package batch

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/batches"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// Config configures Run and Cancel. Journal is required.
type Config struct {
	// Journal stores the batches with the run. It must be the journal of the run's Recorder.
	Journal journal.Journal
	// NoWait makes Run return as soon as the batches have been sent, with a *WaitingError that describes their progress. A later
	// call of Run continues the run.
	NoWait bool
	// Most is the maximum number of requests in a batch. The provider's limits apply in any case; 0 means no other limit.
	Most int
	// Every is the pause before the first poll of a batch; 0 means 1 s. Later pauses are longer, up to 60 times Every or one
	// minute, whichever is longer.
	Every time.Duration
	// Drain may be nil. When it is closed, Run stops waiting for batches and returns after running steps have finished.
	Drain <-chan struct{}
	// Watch receives the progress of the batches after each poll; it may be nil.
	Watch func([]Status)
}

// A Status is the progress of a batch.
type Status struct {
	Provider string    // "openai", "anthropic" or "gemini"
	ID       string    // the provider's id of the batch
	Done     int       // the number of answered and failed requests
	Total    int       // the number of requests, or of texts in a Gemini batch of vectors
	Expires  time.Time // zero if unknown
	Why      string    // how the batch ended, if some requests were not answered and are sent again
}

// String returns the status on one line: "batch b_1 of openai: 312 of 1000 done, expires in 21h".
func (s Status) String() string {
	line := fmt.Sprintf("batch %s of %s: %d of %d done", s.ID, s.Provider, s.Done, s.Total)
	if left := time.Until(s.Expires); !s.Expires.IsZero() && left > 0 {
		line += ", expires in " + rounded(left)
	}
	if s.Why != "" {
		line += ": " + s.Why
	}
	return line
}

// rounded returns the duration, rounded for display.
func rounded(d time.Duration) string {
	if d >= time.Hour {
		return strings.TrimSuffix(d.Round(time.Hour).String(), "0m0s")
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// Run runs a pipeline, or resumes its run, and calls its models in batches; see the package comment. When the run has no more
// batches to wait for, Run returns the result of stone.Run. Run returns earlier if NoWait is set, if Drain is closed, or if a
// provider rejects a request. The error is then a *WaitingError or the provider's rejection. The providers continue to process
// the batches, and the run waits with the question [Question], whose text is the error. The next call of Run answers the
// question. If ctx is canceled while steps are running, the run and its batches are canceled.
//
// Run holds the run's lease while steps run and while it creates batches. It releases the lease while it waits for batches.
func Run(ctx context.Context, p stone.Ashlar, run stone.Config, cfg Config) (stone.Result, error) {
	s, err := open(ctx, &run, cfg)
	if err != nil {
		return stone.Result{RunID: run.RunID}, err
	}
	for sent := false; ; {
		result, err := stone.Run(s.context(ctx), p, run)
		s.release()
		if errors.Is(err, journal.ErrDrained) || errors.As(err, new(*journal.HeldError)) { // another process continues the run
			return result, err
		}
		if err != nil && (ctx.Err() != nil || errors.Is(err, kind.Canceled)) { // even if the run was waiting when it was cancelled
			return result, errors.Join(err, s.abandon(ctx))
		}
		if !errors.Is(err, kind.Waiting) || !s.waits() { // the run has ended, or is waiting only for a person
			if len(s.made) > 0 && !errors.Is(err, kind.Waiting) {
				noted := s.hold(context.WithoutCancel(ctx), func(ctx context.Context) error { return s.settle(ctx, err) })
				if noted != nil {
					err = errors.Join(err, noted)
				}
			}
			return result, err
		}
		again := sent
		why := s.hold(ctx, func(ctx context.Context) error {
			if err := s.settle(ctx, err); err != nil {
				return err
			}
			n, err := s.send(ctx)
			sent = sent || n > 0
			return err
		})
		if why == nil {
			why = s.await(ctx, again)
		}
		if why != nil {
			return result, errors.Join(why, s.park(why))
		}
		if err = s.wake(ctx); err != nil {
			return result, err
		}
		switch info, err := s.Journal.Find(ctx, s.id); {
		case err != nil:
			return result, err
		case info.State == journal.Canceled: // the run was cancelled meanwhile and does not continue by itself
			return result, stone.Fail(kind.Canceled, "the run was canceled while it waited for its batches")
		}
	}
}

// Question is the name of the question that a run asks while it waits for batches.
const Question = batches.Question

// A WaitingError reports that some batches of a run have not ended yet. It matches kind.Waiting in errors.Is.
type WaitingError struct {
	Batches []Status
}

// Error returns the progress of the batches.
func (e *WaitingError) Error() string {
	lines := make([]string, len(e.Batches))
	for i, s := range e.Batches {
		lines[i] = s.String()
	}
	return strings.Join(lines, "; ")
}

// Is reports whether target is kind.Waiting.
func (e *WaitingError) Is(target error) bool { return target == kind.Waiting }

// open reads the batches of a run.
func open(ctx context.Context, run *stone.Config, cfg Config) (*session, error) {
	if cfg.Journal == nil {
		return nil, errors.New("batch: Config.Journal is missing: set it, since it records the batches of a run")
	}
	notes, ok := cfg.Journal.(owed.Store)
	if !ok {
		return nil, errors.New("batch: Config.Journal cannot keep batches: want a journal of this module, not a wrapper around one")
	}
	run.RunID = cmp.Or(run.RunID, strings.ToLower(rand.Text()[:10]))
	cfg.Every = cmp.Or(cfg.Every, time.Second)
	s := &session{Config: cfg, notes: notes, id: run.RunID, answers: map[string]answer{}, batches: map[string]*made{}}
	if err := s.load(ctx); err != nil {
		return nil, fmt.Errorf("batch: %w", err)
	}
	return s, nil
}

// context returns a context for another visit of the pipeline, in which requests to models are held back.
func (s *session) context(ctx context.Context) context.Context {
	s.begin()
	return transport.With(transport.WithBatches(ctx), s.over)
}

// await polls the batches of the run until one has ended, or only once with NoWait. If again is set, it polls only once, so that
// batches which end at once without an answer are not sent over and over.
func (s *session) await(ctx context.Context, again bool) error {
	for n := 1; ; n++ {
		states, ended, err := s.look(ctx)
		if s.Watch != nil && len(states) > 0 {
			s.Watch(states)
		}
		switch refused := s.refused(); {
		case ended && !(s.NoWait && again) && (refused == 0 || s.rest(ctx, refused)):
			return nil // the errors of other batches will recur
		case err != nil && ctx.Err() == nil:
			return err
		case err != nil || ended || !s.rest(ctx, n): // even if ctx ended the poll
			return &WaitingError{states}
		}
	}
}

// rest waits after the n-th poll and returns true. It returns false if there must be no further poll.
func (s *session) rest(ctx context.Context, n int) bool {
	if s.NoWait {
		return false
	}
	select {
	case <-time.After(retryafter.Pause(n, s.Every, 60*s.Every, 0)):
		return true
	case <-s.Drain:
	case <-ctx.Done():
	}
	return false
}
