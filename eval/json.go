package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/internal/canon"
)

// unmarshal keeps all digits of numbers.
func unmarshal(data json.RawMessage, to *any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(to)
}

func canonical(v any) ([]byte, error) { return canon.Append(nil, v) }

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// lookup returns the value at a path of names and indexes with dots, as items.0.price.
func lookup(v json.RawMessage, path string) (json.RawMessage, error) {
	if path == "" {
		return v, nil
	}
	v = parsed(v)
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		i, isIndex := strconv.Atoi(name)
		switch {
		case json.Unmarshal(v, &object) == nil && object[name] != nil:
			v = object[name]
		case isIndex == nil && json.Unmarshal(v, &list) == nil && i >= 0 && i < len(list):
			v = list[i]
		default:
			return nil, fmt.Errorf("no %s in %s", path, shown(v))
		}
	}
	return v, nil
}
