package record

import "context"

// QueueKey is the key under which the context of a step that stone.Run passes through its recorder has a Queue.
type QueueKey struct{}

// A Queue says what of a step may become durable later than its recorder answers, but before the work of any later step
// whose repetition matters, and before the run ends.
type Queue uint8

const (
	QueueIntent Queue = 1 << iota // the body of the step has no effects but those of the steps within it
	QueueResult                   // until the next step, the result reaches no code that may have effects
)

// Contained is implemented by what makes a leaf whose effects may all be those of the recorded steps within it.
type Contained interface{ OnlySteps() bool }

// QueueIn returns the Queue of a step, 0 if there is none.
func QueueIn(ctx context.Context) Queue {
	q, _ := ctx.Value(QueueKey{}).(Queue)
	return q
}

type beginsKey struct{}

// WithBegin returns the context for Acquire and Begin of a caller that begins the run at once, if it is new: both then are one
// write, which need not be durable before the first write after it.
func WithBegin(ctx context.Context) context.Context { return context.WithValue(ctx, beginsKey{}, true) }

// Begins reports whether ctx is such a context.
func Begins(ctx context.Context) bool { return ctx.Value(beginsKey{}) != nil }
