// Package notice tells the user when commands are not confined by the strongest available method. It exists because package
// sandbox must not write to the terminal itself.
package notice

import (
	"context"
	"sync"
)

type key struct{}

// With returns a context in which [Tell] calls tell with the first line only. The context can be used concurrently.
func With(ctx context.Context, tell func(line string)) context.Context {
	var once sync.Once
	return context.WithValue(ctx, key{}, func(line string) { once.Do(func() { tell(line) }) })
}

// Tell passes a line to the function given to [With], unless the line is empty. If ctx has no such function, Tell does not call
// line.
func Tell(ctx context.Context, line func() string) {
	if tell, ok := ctx.Value(key{}).(func(string)); ok {
		if text := line(); text != "" {
			tell(text)
		}
	}
}
