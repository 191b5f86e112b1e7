// Package queue says what of a step a recorder may write later than it answers. A run passes it to its recorder.
package queue

import "context"

// Key is the key under which the context of a step that stone.Run passes through its recorder has its Writes.
type Key struct{}

// Writes are what of a step may become durable later than its recorder answers, but before the work of any later step
// whose repetition matters, and before the run ends.
type Writes uint8

const (
	Intent Writes = 1 << iota // the body of the step has no effects but those of the steps within it
	Result                    // until the next step, the result reaches no code that may have effects
)

// Contained is implemented by what makes a leaf whose effects may all be those of the recorded steps within it.
type Contained interface{ OnlySteps() bool }

// Of returns the Writes of a step, 0 if there are none.
func Of(ctx context.Context) Writes {
	w, _ := ctx.Value(Key{}).(Writes)
	return w
}
