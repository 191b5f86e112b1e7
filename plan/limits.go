package plan

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/runvalue"
	"github.com/stonelayer/stone/kind"
)

// Limits are the maximum size of a plan and the maximum work that it may do in a run. Zero means the default in parentheses. A
// plan that a capability returned has stricter limits and also draws on the limits of the enclosing plan.
type Limits struct {
	Nodes      int // number of nodes in the plan, including all bodies (256)
	Depth      int // nesting depth of bodies and of returned plans (16)
	Attempts   int // number of retries, fallbacks and repairs of one node (100)
	Visits     int // number of visits of nodes in a run (100,000; for returned plans 10,000)
	Bytes      int // total size of all values that the plan computes from slots (256 MiB)
	NodeBytes  int // size of one value computed from slots (8 MiB)
	Roundtrips int // number of invocations of capabilities; only for returned plans (1,000)
}

// Failure kinds of a plan that exceeds a limit. Each is "limit/", followed by the name of the limit in the configuration.
const (
	visitsExceeded    kind.Kind = "limit/visits"
	bytesExceeded     kind.Kind = "limit/bytes"
	nodeBytesExceeded kind.Kind = "limit/node-bytes"
)

const (
	defaultNodes     = 256
	defaultDepth     = 16
	defaultAttempts  = 100
	defaultVisits    = 100_000
	returnedVisits   = 10_000
	defaultBytes     = 256 << 20
	defaultNodeBytes = 8 << 20
)

// DefaultRoundtrips is the default maximum number of invocations of capabilities by a returned plan, and by a request without a
// budget.
const DefaultRoundtrips = 1000

// or returns limit if it is positive, and otherwise the argument otherwise.
func or(limit, otherwise int) int {
	if limit > 0 {
		return limit
	}
	return otherwise
}

// An exceeded is the error of a plan that exceeds a limit on its work.
type exceeded struct {
	kind    kind.Kind
	message string
	part    bool // the limit applies only to a returned plan
}

func (e *exceeded) Error() string       { return e.message }
func (e *exceeded) FailureKind() string { return string(e.kind) }
func (e *exceeded) Retryable() bool     { return false }

// EndsRun reports whether the error also ends an enclosing fan-out, because its other lanes would reach the same limit.
func (e *exceeded) EndsRun() bool { return !e.part }

// A meter counts the work of a plan in a run, including the work of plans that the plan's calls return.
type meter struct {
	returned      bool
	above         *meter
	maxVisits     int64
	maxBytes      int64
	visits, bytes atomic.Int64
}

func newMeter(above *meter, l Limits, visits int) *meter {
	return &meter{above: above, maxVisits: int64(or(l.Visits, visits)), maxBytes: int64(or(l.Bytes, defaultBytes))}
}

// visit counts n visits of nodes, and returns an error if a limit is exceeded.
func (m *meter) visit(n int) error {
	for ; m != nil; m = m.above {
		if m.visits.Add(int64(n)) > m.maxVisits {
			return &exceeded{visitsExceeded, fmt.Sprintf("the plan visits more than %d nodes: bound its loops and maps, or raise the limit visits", m.maxVisits), m.returned}
		}
	}
	return nil
}

// take counts bytes.
func (m *meter) take(n int) error {
	for ; m != nil; m = m.above {
		if m.bytes.Add(int64(n)) > m.maxBytes {
			return &exceeded{bytesExceeded, fmt.Sprintf("the values of the plan have more than %d bytes: pass on less, or raise the limit bytes", m.maxBytes), m.returned}
		}
	}
	return nil
}

type meterKey struct{}

// meter returns the meter for the plan in the run of ctx: the meter of the enclosing returned plan if there is one, otherwise the
// plan's own.
func (c *compiler) meter(ctx context.Context) *meter {
	if m, ok := ctx.Value(meterKey{}).(*meter); ok {
		return m
	}
	return runvalue.Of(ctx, c, func() *meter { return newMeter(nil, c.opts.Limits, defaultVisits) })
}

// visit counts n visits that are about to happen, and returns an error if a limit is exceeded.
func (c *compiler) visit(d dag.DAG, n int) error { return c.meter(d.Context()).visit(n) }

// Around returns a context in which the limits of a returned plan apply. All plans returned within this context share the limits.
func (pl planner) Around(ctx context.Context) context.Context {
	if _, ok := ctx.Value(meterKey{}).(*meter); ok {
		return ctx
	}
	var above *meter
	if pl.within != nil {
		above = pl.within.meter(ctx)
	}
	limits := pl.opts.Limits
	m := newMeter(above, limits, returnedVisits)
	m.returned = true
	ctx = context.WithValue(ctx, meterKey{}, m)
	return budget.With(ctx, budget.From(ctx).Sub(budget.Limits{Roundtrips: new(or(limits.Roundtrips, DefaultRoundtrips))}))
}

// weight returns the number of nodes visited when a sequence runs once, including bodies that run exactly once. Loops, maps and
// branches count the visits in their bodies themselves.
func weight(nodes []*node) int {
	n := 0
	for _, node := range nodes {
		n++
		switch node.op {
		case "seq", "parallel", "reduce":
			for _, b := range node.bodies {
				n += weight(b.nodes)
			}
		}
	}
	return n
}
