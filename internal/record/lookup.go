package record

import "context"

type lookupKey struct{}

// WithLookup returns the context for a Do that only returns a record that is there, or a zero one, and does no work.
func WithLookup(ctx context.Context) context.Context {
	return context.WithValue(ctx, lookupKey{}, true)
}

// Lookup reports whether ctx is such a context.
func Lookup(ctx context.Context) bool { return ctx.Value(lookupKey{}) != nil }
