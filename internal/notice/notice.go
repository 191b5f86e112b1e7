// Package notice passes on to the user that commands are not confined by the strongest
// method. It exists because package sandbox must not write to a terminal.
package notice

import (
	"context"
	"sync"
)

type key struct{}

// With returns a context under which [Tell] calls tell, for the first line only. It is
// safe for concurrent use.
func With(ctx context.Context, tell func(line string)) context.Context {
	var once sync.Once
	return context.WithValue(ctx, key{}, func(line string) { once.Do(func() { tell(line) }) })
}

// Tell passes the line on, unless it is empty. Without [With] it does not call line.
func Tell(ctx context.Context, line func() string) {
	if tell, ok := ctx.Value(key{}).(func(string)); ok {
		if text := line(); text != "" {
			tell(text)
		}
	}
}
