package record

import "context"

type childKey struct{}

type child struct{ goesOn bool }

// WithChild returns the context of a step that waits for a run elsewhere. GoesOn says that an earlier process has
// lost its attempt, which continues in this one and is not counted again. The cost of such a step counts
// for its run, and not for sums over several runs, to which the run elsewhere belongs itself.
func WithChild(ctx context.Context, goesOn bool) context.Context {
	return context.WithValue(ctx, childKey{}, child{goesOn})
}

// Child reports whether ctx is the context of such a step, and whether its attempt continues.
func Child(ctx context.Context) (is, goesOn bool) {
	c, is := ctx.Value(childKey{}).(child)
	return is, c.goesOn
}
