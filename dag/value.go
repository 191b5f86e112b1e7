package dag

import (
	"errors"
	"time"

	"github.com/stonelayer/stone/kind"
)

// A Value is a node's content together with its node type; see [Type.With].
type Value struct {
	append func(DAG) (DAG, error)
}

// With returns v as a Value, for [Of].
func (t Type[T]) With(v T) Value {
	return Value{func(d DAG) (DAG, error) { return t.Append(d, v) }}
}

// Of returns a DAG with one node for each value, in order. Use it to write the input of a run in one expression. A value that
// cannot be encoded as JSON puts a failure of kind "bad-content" in flight: a run with this input fails before its first step.
func Of(values ...Value) DAG {
	var d DAG
	for _, v := range values {
		err := errors.New("zero dag.Value: make values with Type.With")
		if v.append != nil {
			d, err = v.append(d)
		}
		if err != nil {
			return d.WithFailure(NewFailure(d, FailureContent{Kind: kind.BadContent, Reason: err.Error()}, nil, time.Time{}), err)
		}
	}
	return d
}
