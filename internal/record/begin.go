package record

import "context"

type beginsKey struct{}

// WithBegin returns the context for Acquire and Begin of a caller that begins the run at once, if it is new: both then are one
// write, which need not be durable before the first write after it.
func WithBegin(ctx context.Context) context.Context { return context.WithValue(ctx, beginsKey{}, true) }

// Begins reports whether ctx is such a context.
func Begins(ctx context.Context) bool { return ctx.Value(beginsKey{}) != nil }
