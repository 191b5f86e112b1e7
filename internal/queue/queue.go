// Package queue lets a run tell its recorder which writes of a step may be delayed, and where another attempt may have recorded
// the result.
package queue

import (
	"context"

	"github.com/stonelayer/stone/step"
)

// Key is the context key for the Writes of a step that stone.Run passes through its recorder.
type Key struct{}

// Writes are the writes of a step that may become durable after its recorder answers, but before any later step whose repetition
// matters, and before the run ends.
type Writes uint8

const (
	Intent Writes = 1 << iota // the body of the step has no effects besides its inner steps' effects
	Result                    // until the next step, the result reaches no code that may have effects
)

// Contained is implemented by makers of a leaf that may have no effects besides those of its recorded steps.
type Contained interface{ OnlySteps() bool }

// Of returns the Writes of a step, or 0 if there are none.
func Of(ctx context.Context) Writes {
	w, _ := ctx.Value(Key{}).(Writes)
	return w
}

// Attempts is the key for the OfAttempts of such a context.
type Attempts struct{}

// OfAttempts returns the keys of a step in all attempts at the leaves around it, its own first, and none outside attempts. Made
// returns the paths of a leaf's later attempts that have a record, given the leaf's path without attempt numbers.
type OfAttempts = func(key step.Key, made func(place string) []string) []step.Key

// EveryAttempt returns the keys of a step in all recorded attempts around it, its own key first, or nil outside attempts.
func EveryAttempt(ctx context.Context, key step.Key, made func(place string) []string) []step.Key {
	of, _ := ctx.Value(Attempts{}).(OfAttempts)
	if of == nil {
		return nil
	}
	return of(key, made)
}
