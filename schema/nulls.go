package schema

import (
	"context"
	"slices"
)

// OmitNulls returns a JSON value without the members of its objects that are null although the
// schema rejects null there: a service that enforces a [Subset] with AllRequired writes null for an
// absent property. Malformed text is returned as it is.
func (s *Schema) OmitNulls(ctx context.Context, data []byte) []byte {
	value, err := decode(data)
	if err != nil {
		return data
	}
	s.omitNulls(ctx, value, nil)
	return appendJSON(nil, value, true)
}

func (s *Schema) omitNulls(ctx context.Context, value any, path []string) {
	below := func(name string) []string { return append(path[:len(path):len(path)], name) }
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			s.omitNulls(ctx, e, below("0")) // no Subset has elements of different schemas
		}
	case *object:
		for _, name := range slices.Clone(v.names) {
			if v.values[name] != nil {
				s.omitNulls(ctx, v.values[name], below(name))
			} else if at, ok := s.At(below(name)...); ok && at.Validate(ctx, []byte("null")) != nil {
				v.remove(name)
			}
		}
	}
}
