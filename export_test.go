package stone

import (
	"context"

	"github.com/stonelayer/stone/dag"
)

// RunUnchecked runs p without validating it first.
func RunUnchecked(ctx context.Context, p Ashlar, cfg Config) dag.DAG {
	return RunCrowded(ctx, p, cfg, 0)
}

// RunCrowded is RunUnchecked with at most so many goroutines for lanes; 0 is the limit of every run.
func RunCrowded(ctx context.Context, p Ashlar, cfg Config, most int) dag.DAG {
	r := newRun(ctx, cfg)
	if most > 0 {
		r.workers.Store(maxLanes - int64(most))
	}
	return r.visit(&frame{Context: ctx, run: r, spec: p.spec()}, cfg.Input)
}

// Parts are lanes and options as Parallel takes them.
func Parts(lanes []Ashlar, opts ...FanOption) (parts []FanPart) {
	for _, lane := range lanes {
		parts = append(parts, lane)
	}
	for _, o := range opts {
		parts = append(parts, o)
	}
	return parts
}
