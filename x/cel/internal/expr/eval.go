package expr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/stonelayer/stone/internal/canon"
)

// ErrTooCostly is the cause of an *Error if an expression needs more work or memory than is allowed.
var ErrTooCostly = errors.New("too costly")

// Bool evaluates an expression that was compiled with the Result Bool, and returns its value. See Eval.
func (p *Program) Bool(ctx context.Context, variables map[string]json.RawMessage) (bool, error) {
	value, err := p.run(ctx, variables)
	if err != nil {
		return false, err
	}
	b, ok := value.(types.Bool)
	if !ok {
		return false, &Error{Reason: fmt.Sprintf("must be true or false, is %s", value.Type().TypeName())}
	}
	return bool(b), nil
}

// Eval evaluates the expression and returns its value as canonical JSON. The values of the variables are JSON, and each is
// decoded when it is first read. Any error is an *Error. If the evaluation was stopped, the error's Cause is ErrTooCostly or the
// cause of ctx.
func (p *Program) Eval(ctx context.Context, variables map[string]json.RawMessage) (json.RawMessage, error) {
	value, err := p.run(ctx, variables)
	if err != nil {
		return nil, err
	}
	if _, ok := value.(types.Bool); !ok && p.result == Bool {
		return nil, &Error{Reason: fmt.Sprintf("must be true or false, is %s", value.Type().TypeName())}
	}
	text, err := appendJSON(nil, value, 0)
	if err == nil {
		text, err = canon.AppendJSON(nil, text)
	}
	if err != nil {
		return nil, &Error{Reason: oneLine(err.Error())}
	}
	return text, nil
}

func (p *Program) run(ctx context.Context, variables map[string]json.RawMessage) (ref.Val, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Reason: "was stopped: " + context.Cause(ctx).Error(), Cause: context.Cause(ctx)}
	}
	value, _, err := p.program.ContextEval(ctx, &scope{p.variables, variables, map[string]ref.Val{}})
	if err != nil {
		return nil, p.failure(ctx, err)
	}
	return value, nil
}

func (p *Program) failure(ctx context.Context, err error) *Error {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause != interpreter.ContextCancelled {
		return &Error{Reason: "was stopped: it takes too much work or memory; simplify it, or make its variables smaller", Cause: ErrTooCostly}
	}
	if ctx.Err() != nil {
		return &Error{Reason: "was stopped: " + context.Cause(ctx).Error(), Cause: context.Cause(ctx)}
	}
	var place common.Location
	var fault *types.Err
	if errors.As(err, &fault) {
		place = p.locate(fault.NodeID())
	}
	failed := at(place, err.Error())
	if errors.Is(err, errTooLarge) || errors.Is(err, errTooLong) {
		failed.Cause = ErrTooCostly
	}
	return failed
}

// A scope decodes variables when they are first used.
type scope struct {
	names  []string
	texts  map[string]json.RawMessage
	values map[string]ref.Val
}

var _ cel.Activation = (*scope)(nil)

// ResolveName returns a variable. A missing value is an error only where the value is needed.
func (s *scope) ResolveName(name string) (any, bool) {
	if v, ok := s.values[name]; ok {
		return v, true
	}
	if !slices.Contains(s.names, name) {
		return nil, false
	}
	var value ref.Val
	if text, ok := s.texts[name]; !ok {
		value = types.NewErr("variable %s has no value", name)
	} else if v, err := decode(text); err != nil {
		value = types.NewErr("variable %s is not JSON: %v", name, err)
	} else {
		value = v
	}
	s.values[name] = value
	return value, true
}

// Parent returns nil, because the scope contains all variables.
func (s *scope) Parent() cel.Activation { return nil }

func decode(text []byte) (ref.Val, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return convert(v)
}

// convert converts a value and everything in it to values of the language. Values that are only wrapped would be measured again
// on every read.
func convert(v any) (_ ref.Val, err error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return types.Int(n), nil
		}
		f, err := v.Float64()
		return types.Double(f), err
	case []any:
		for i := range v {
			if v[i], err = convert(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = convert(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return types.DefaultTypeAdapter.NativeToValue(v), nil
}

// appendJSON appends a value as JSON that is not yet canonical.
func appendJSON(dst []byte, v ref.Val, depth int) ([]byte, error) {
	if len(dst) > maxText || depth > 10_000 {
		return nil, errTooLarge
	}
	switch v := v.(type) {
	case types.Null:
		return append(dst, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(dst, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("is %v, which JSON cannot hold", float64(v))
		}
		return canon.Append(dst, float64(v))
	case types.String:
		return canon.Append(dst, string(v))
	case traits.Mapper:
		return appendMap(dst, v, depth)
	case traits.Lister:
		dst = append(dst, '[')
		for it, first := v.Iterator(), true; it.HasNext() == types.True; first = false {
			if !first {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendJSON(dst, it.Next(), depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	default:
		return nil, fmt.Errorf("is %s, which JSON cannot hold; use string()", v.Type().TypeName())
	}
}

func appendMap(dst []byte, m traits.Mapper, depth int) ([]byte, error) {
	start := len(dst)
	dst = append(dst, '{')
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.ConvertToType(types.StringType).(types.String)
		if !ok || !slices.Contains([]ref.Type{types.StringType, types.IntType, types.UintType, types.BoolType}, key.Type()) {
			return nil, fmt.Errorf("has a key of type %s, which JSON cannot represent", key.Type().TypeName())
		}
		if len(dst) > start+1 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = canon.Append(dst, string(name)); err != nil {
			return nil, err
		}
		if dst, err = appendJSON(append(dst, ':'), m.Get(key), depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}
