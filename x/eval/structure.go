package eval

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// parsed returns the JSON value in a text. It accepts the forms in which models usually write JSON.
func parsed(v json.RawMessage) json.RawMessage {
	if s := textOf(v); len(s) > 0 && (s[0] == '{' || s[0] == '[') && json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return v
}

// sameJSON returns the score 1 for equal JSON values, otherwise 0.
func sameJSON(got, want json.RawMessage) (Score, error) {
	same, err := equal(parsed(got), parsed(want))
	return passed(same, got, want), err
}

// subset returns the score 1 if the answer contains every expected field with the expected value, otherwise 0.
func subset(got, want json.RawMessage) (Score, error) {
	have, need, err := leaves(got, want)
	if err != nil {
		return Score{}, err
	}
	for _, l := range need.order {
		if have.values[l] != need.values[l] {
			return Score{Reason: fmt.Sprintf("%s: got %s, want %s", l, shown([]byte(have.values[l])), shown([]byte(need.values[l])))}, nil
		}
	}
	return Score{Value: 1}, nil
}

// fields returns the F1 of the fields as the score: the harmonic mean of precision (the share of the answer's fields that are
// expected) and recall (the share of the expected fields that the answer contains).
func fields(got, want json.RawMessage) (Score, error) {
	have, need, err := leaves(got, want)
	if err != nil {
		return Score{}, err
	}
	hits, wrong := 0, ""
	for _, l := range need.order {
		if have.values[l] == need.values[l] {
			hits++
		} else if wrong == "" {
			wrong = fmt.Sprintf("%s: got %s, want %s", l, shown([]byte(have.values[l])), shown([]byte(need.values[l])))
		}
	}
	all := len(have.order) + len(need.order)
	if wrong == "" && len(have.order) > len(need.order) {
		wrong = fmt.Sprintf("%d fields that are not expected", len(have.order)-len(need.order))
	}
	return Score{Value: 2 * float64(hits) / float64(max(all, 1)), Reason: wrong}, nil
}

// flat contains the leaves of a JSON value by path.
type flat struct {
	order  []string
	values map[string]string
}

func leaves(got, want json.RawMessage) (have, need flat, err error) {
	if have, err = flatten(parsed(got)); err != nil {
		return
	}
	need, err = flatten(parsed(want))
	return
}

func flatten(v json.RawMessage) (flat, error) {
	f := flat{values: map[string]string{}}
	var any any
	if err := unmarshal(v, &any); err != nil {
		return f, err
	}
	return f, f.add("", any)
}

func (f *flat) add(path string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			if err := f.add(join(path, name), v[name]); err != nil {
				return err
			}
		}
		if len(v) > 0 {
			return nil
		}
	case []any:
		for i, item := range v {
			if err := f.add(path+"["+strconv.Itoa(i)+"]", item); err != nil {
				return err
			}
		}
		if len(v) > 0 {
			return nil
		}
	}
	data, err := canonical(v)
	f.order, f.values[path] = append(f.order, path), string(data)
	return err
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
