// Package notice tells the user when commands are not confined by the strongest available method. It exists because package
// sandbox must not write to the terminal itself.
package notice

import (
	"context"
	"sync"
)

type key struct{}

// With returns a copy of ctx in which the first call of [Tell] with a line calls tell; later calls do nothing. The context can be
// used concurrently.
func With(ctx context.Context, tell func(line string)) context.Context {
	var once sync.Once
	return context.WithValue(ctx, key{}, func(line string) { once.Do(func() { tell(line) }) })
}

// Tell calls line and passes the result, unless it is empty, to the function given to [With]. If ctx was not made by With, Tell
// does nothing.
func Tell(ctx context.Context, line func() string) {
	if tell, ok := ctx.Value(key{}).(func(string)); ok {
		if text := line(); text != "" {
			tell(text)
		}
	}
}
