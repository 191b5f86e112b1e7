package call

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
)

// Func makes a capability out of a Go function: it is given the input, as
// encoding/json reads an A, and returns the out. Its kind is "go" if the metadata
// say none. An input that is no A is a failure of type InputInvalid; for the
// errors of fn see Capability.Invoke.
func Func[A, B any](m Metadata, fn func(context.Context, A) (B, error)) Capability {
	m.Kind = cmp.Or(m.Kind, "go")
	if fn == nil {
		return Capability{Metadata: m}
	}
	return Capability{Metadata: m, Invoke: func(ctx context.Context, req *Request) (*Reply, error) {
		var in A
		if err := json.Unmarshal(req.Input, &in); err != nil {
			return nil, &Error{Type: InputInvalid, Message: fmt.Sprintf("%s takes a %T: %v", m.ID, in, err), Where: "input"}
		}
		v, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		out, err := canon.Append(nil, v)
		if err != nil {
			return nil, fmt.Errorf("the out cannot be written: %w", err)
		}
		return &Reply{Type: Value, Out: out}, nil
	}}
}

// Pipeline makes a capability out of a pipeline: it begins with a node of type in
// that holds the input, and the nearest node of type out at its end is the answer.
// It runs within the run that calls it: watched, recorded and cancelled like the
// rest, on the same budget, and within the effects of the call. It needs the effects
// of the pipeline. Its kind is "pipeline" if the metadata say nothing else. Its nodes are not kept in the DAG of the run.
func Pipeline(m Metadata, p stone.Ashlar, in, out dag.AnyType) Capability {
	m.Kind = cmp.Or(m.Kind, "pipeline")
	if !p.IsZero() {
		m = m.Needing(p.Effects()...)
	}
	if p.IsZero() || in == nil || out == nil {
		return Capability{Metadata: m}
	}
	return Capability{Metadata: m, Invoke: func(ctx context.Context, req *Request) (*Reply, error) {
		if err := in.Schema().Validate(ctx, req.Input); err != nil {
			return nil, &Error{Type: InputInvalid, Message: fmt.Sprintf("%s takes a %s: %v", m.ID, in.Name(), err), Where: "input"}
		}
		n, err := dag.NewNode(dag.Spec{Type: in.Name(), Content: req.Input})
		if err != nil {
			return nil, err
		}
		d, err := dag.DAG{}.Append(n)
		if err != nil {
			return nil, err
		}
		d = stone.In(ctx).RunDynamic(p, d, append([]string{}, req.Effects...))
		if d.Failed() {
			return nil, d.Cause()
		}
		if n, err = d.Nearest(out.Name()); err != nil {
			return nil, fmt.Errorf("the pipeline made no %s: %w", out.Name(), err)
		}
		return &Reply{Type: Value, Out: n.Content()}, nil
	}}
}
