// Package runvalue lets packages that do not create a run's context keep values for the lifetime of the run.
package runvalue

import (
	"context"
	"sync"
)

// Values are the values of one run. The zero value is empty.
type Values struct{ values sync.Map }

// Key is the context key of the *Values of a run.
type Key struct{}

// Of returns the value for a key in the run to which ctx belongs. The first call creates the value with fresh. Outside a run, each
// call creates a new value. Of is safe for concurrent use.
func Of[T any](ctx context.Context, key any, fresh func() *T) *T {
	run, ok := ctx.Value(Key{}).(*Values)
	if !ok {
		return fresh()
	}
	if v, ok := run.values.Load(key); ok {
		return v.(*T)
	}
	v, _ := run.values.LoadOrStore(key, fresh())
	return v.(*T)
}
