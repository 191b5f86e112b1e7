// Package queue lets a run tell its recorder which writes of a step may be delayed, and in which other attempts the result may
// have been recorded.
package queue

import (
	"context"

	"github.com/stonelayer/stone/step"
)

// Key is the context key for the Writes of a step, which stone.Run passes to its recorder.
type Key struct{}

// Writes are the writes of a step that need not be durable when the recorder returns, but must become durable before any later
// step whose repetition matters, and before the run ends.
type Writes uint8

const (
	Intent Writes = 1 << iota // the step's body has no effects except through its inner steps
	Result                    // the result reaches no code that may have effects before the next step
)

// Contained is implemented by makers of leaves. OnlySteps reports whether the leaf has no effects except through its recorded
// steps.
type Contained interface{ OnlySteps() bool }

// Of returns the Writes of a step, or 0 if there are none.
func Of(ctx context.Context) Writes {
	w, _ := ctx.Value(Key{}).(Writes)
	return w
}

// Attempts is the context key for the OfAttempts of a step.
type Attempts struct{}

// OfAttempts returns the keys that a step has in all attempts at the leaves around it, beginning with its own key. It returns none
// if the step is not within an attempt. Given the path of a leaf without attempt numbers, made returns the paths of the leaf's
// recorded attempts after the first.
type OfAttempts = func(key step.Key, made func(place string) []string) []step.Key

// EveryAttempt returns the keys that a step has in all recorded attempts around it, beginning with its own key. It returns nil if
// the step is not within an attempt.
func EveryAttempt(ctx context.Context, key step.Key, made func(place string) []string) []step.Key {
	of, _ := ctx.Value(Attempts{}).(OfAttempts)
	if of == nil {
		return nil
	}
	return of(key, made)
}
