package stone

import "context"

// policy is the type of Config.Policy. Its methods may be called by several goroutines at once.
type policy = interface {
	// Enter checks p before it runs at the place of ctx, and returns the context of its run.
	Enter(ctx context.Context, p Ashlar, g Given) (context.Context, Findings)
	// Narrow returns the effects that the body of ctx may have of the granted ones; nil means all.
	Narrow(ctx context.Context, granted []string) []string
}

// Types returns the names of the types of the input nodes.
func (g Given) Types() []string {
	names := g.dag.Types()
	for _, t := range g.Input {
		if t != nil {
			names = append(names, t.Name())
		}
	}
	return names
}
