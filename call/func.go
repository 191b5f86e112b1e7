package call

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/reasons"
)

// Func returns a capability that calls the Go function fn. It decodes the input into an A with encoding/json, and fn returns the
// out. The kind defaults to "go". If the input cannot be decoded, the invocation fails with type InputInvalid; for errors that fn
// returns, see Capability.Invoke.
func Func[A, B any](m Metadata, fn func(context.Context, A) (B, error)) Capability {
	m.Kind = cmp.Or(m.Kind, "go")
	if fn == nil {
		return Capability{Metadata: m}
	}
	return Capability{Metadata: m, Invoke: func(ctx context.Context, req *Request) (*Reply, error) {
		var in A
		if err := json.Unmarshal(req.Input, &in); err != nil {
			return nil, &Error{Type: reasons.InputInvalid, Message: fmt.Sprintf("%s takes a %T: %v", m.ID, in, err), Where: "input"}
		}
		v, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		out, err := canon.Append(nil, v)
		if err != nil {
			return nil, fmt.Errorf("encode the out: %w", err)
		}
		return &Reply{Type: Value, Out: out}, nil
	}}
}

// Pipeline returns a capability that runs the pipeline p. The pipeline starts with one node of type in, which contains the input.
// The answer is the nearest node of type out when the pipeline ends. The pipeline is part of the calling run: it is watched,
// recorded and cancelled with the run, and uses the run's budget and the call's effects. Its nodes are not kept in the run's DAG.
// The capability needs the pipeline's effects. Its kind defaults to "pipeline".
func Pipeline(m Metadata, p stone.Ashlar, in, out dag.AnyType) Capability {
	m.Kind = cmp.Or(m.Kind, "pipeline")
	c := Capability{Metadata: m}
	if p.IsZero() || in == nil || out == nil {
		return c
	}
	c.Metadata, c.runs = m.Needing(p.Effects()...), p
	c.Invoke = func(ctx context.Context, req *Request) (*Reply, error) {
		if err := in.Schema().Validate(ctx, req.Input); err != nil {
			return nil, &Error{Type: reasons.InputInvalid, Message: fmt.Sprintf("%s takes a %s: %v", m.ID, in.Name(), err), Where: "input"}
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
		if d.InFlight() {
			return nil, d.Cause()
		}
		if n, err = d.Nearest(out.Name()); err != nil {
			return nil, fmt.Errorf("the pipeline produced no %s: %w", out.Name(), err)
		}
		return &Reply{Type: Value, Out: JSON(n.Own())}, nil
	}
	return c
}
