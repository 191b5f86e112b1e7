package record

import (
	"context"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/step"
)

// Origin identifies the recorded step of another run whose result a forked run may reuse.
type Origin struct {
	Run    string
	Digest dag.ID // of the step there
	Placed bool   // any record at its place will do, whatever its digest
}

type originKey struct{}

// WithOrigin returns the context of a step whose result may come from another run.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns the Origin of a step, or zero if it has none.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}

// As notes the id of a reused node in its origin, unless the record has one already.
func As(rec step.Record, node dag.ID) step.Record {
	if rec.Meta[terms.As] == "" && node != (dag.ID{}) {
		rec.Meta[terms.As] = node.String()
	}
	return rec
}
