// Package remote cancels the tasks that a run has started at other services. This is needed if no process is executing the run,
// because such tasks continue by themselves. Code that starts a task records it in a step with the name Step, whose result is a
// Task.
package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// Step is the name of the step that starts a task.
const Step = "send"

// A Task is the result of a step that starts a task.
type Task struct {
	ID    string          `json:"task,omitempty"`
	Ended json.RawMessage `json:"ended,omitempty"` // set if the task had already ended when it was recorded
}

// patience is the maximum duration of a visit, because a service that does not respond must not prevent a run from being canceled.
const patience = 15 * time.Second

// Tasks returns the paths of the steps that started tasks for which a run is still waiting.
func Tasks(ctx context.Context, j journal.Journal, run string) (paths []string, err error) {
	unfinished := map[string]bool{}
	var sent []string
	for s, err := range j.EachStep(ctx, run) {
		if err != nil {
			return nil, err
		}
		if !s.Recorded {
			unfinished[s.Path] = true
		} else if s.Kind == "step" && s.Name == Step {
			sent = append(sent, s.Path)
		}
	}
	for _, path := range sent {
		if up := path[:strings.LastIndex(path, "/")+1]; !unfinished[strings.TrimSuffix(up, "/")] {
			continue
		}
		rec, err := j.Record(ctx, run, path, "step")
		if err != nil {
			return nil, err
		}
		var task Task
		if json.Unmarshal(rec.Content, &task) == nil && task.ID != "" && task.Ended == nil {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// Cancel cancels the tasks for which a run is still waiting. To reach them, it visits the pipeline: it runs the pipeline with a
// recorder that starts only the steps that the tasks are part of. Afterwards the run is waiting.
func Cancel(ctx context.Context, p stone.Ashlar, run stone.Config, keep journal.Options, j journal.Journal) error {
	paths, err := Tasks(ctx, j, run.RunID)
	if err != nil || len(paths) == 0 {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	v := &visit{left: len(paths), over: make(chan struct{})}
	run.Recorder = journal.Keep(only{Only{j, func(key step.Key) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(path, key.Path+"/") })
	}, func() <-chan struct{} { return v.over }}, v}, keep)
	_, err = stone.Run(context.WithValue(ctx, visitKey{}, v), p, run)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.left > 0 {
		return fmt.Errorf("%d of %d: %w", v.left, len(paths), cmp.Or(v.err, err))
	}
	return nil
}

// A visit counts the tasks that are left to cancel.
type visit struct {
	mu   sync.Mutex
	left int
	err  error // error of a step whose task was not reached
	over chan struct{}
}

type visitKey struct{}

// Canceling calls cancel if ctx belongs to a visit that cancels tasks. It then returns the error with which the caller must end,
// and otherwise nil.
func Canceling(ctx context.Context, cancel func(context.Context)) error {
	v, _ := ctx.Value(visitKey{}).(*visit)
	if v == nil {
		return nil
	}
	cancel(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.left--; v.left == 0 {
		close(v.over)
	}
	return notStarted{}
}

// only is like Only, but records nothing except values, so a visit leaves the run's steps unchanged.
type only struct {
	Only
	*visit
}

// Do implements journal.Journal.
func (j only) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	return j.Only.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
		rec, err := work(ctx)
		if rec.Failure != nil {
			err = errors.New(rec.Failure.Reason)
		}
		if err != nil && !errors.As(err, new(notStarted)) {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.err = err
		}
		if key.Kind == step.Value && err == nil {
			return rec, nil
		}
		return step.Record{}, notStarted{}
	})
}

// Only is a journal that starts only values and the allowed steps. All other steps wait until soon, so that other lanes can catch
// up, and then return an error that ends the visit.
type Only struct {
	journal.Journal
	May  func(key step.Key) bool
	Soon func() <-chan struct{}
}

// Do implements journal.Journal.
func (j Only) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if key.Kind != step.Value && !j.May(key) {
		work = func(ctx context.Context) (step.Record, error) {
			select {
			case <-ctx.Done():
			case <-j.Soon():
			}
			return step.Record{}, notStarted{}
		}
	}
	return j.Journal.Do(ctx, key, work)
}

// notStarted is the error of a step that was not allowed to start.
type notStarted struct{}

func (notStarted) Error() string        { return "the run is being canceled" }
func (notStarted) Is(target error) bool { return target == kind.Waiting }
