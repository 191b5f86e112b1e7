// Package runvalue keeps values for as long as a run lives, for packages that count
// something in a run whose context they do not make.
package runvalue

import (
	"context"
	"sync"
)

// Values are those of one run. The zero value is empty.
type Values struct{ values sync.Map }

// Key is how the context of a body is asked for the *Values of its run.
type Key struct{}

// Of returns the value of a key in the run of ctx, which is made when it is first asked
// for. Outside of a run each call makes one.
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
