package record

import (
	"context"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/step"
)

// Origin identifies a recorded step in another run whose result a forked run may reuse.
type Origin struct {
	Run    string
	Digest dag.ID // digest of the step in the other run
	Placed bool   // the record at the same place may be used whatever its digest
}

type originKey struct{}

// WithOrigin returns the context for a step whose result may come from another run.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns the Origin of the step to which ctx belongs, or the zero Origin if it has none.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}

// As records the ID that a reused node has in its origin, unless the record already contains one.
func As(rec step.Record, node dag.ID) step.Record {
	if rec.Meta[terms.As] == "" && node != (dag.ID{}) {
		rec.Meta[terms.As] = node.String()
	}
	return rec
}
