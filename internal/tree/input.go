package tree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/prompts"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/schema"
)

// An Input is a node type that a pipeline reads before any of its steps has written it.
type Input struct {
	Type     dag.AnyType
	Optional bool // optional for every reader
	Many     bool // every reader reads all nodes of the type
	Inner    bool // clients must not supply it; see dag.Query.Inner
}

// Inputs returns the types that a run of p needs in its input DAG, sorted by name. It omits reserved types, and ignores readers of
// the latest node or of the whole DAG, which do not need a particular type.
func Inputs(p stone.Ashlar) []Input {
	return slices.DeleteFunc(reads(p), Input.reserved)
}

// open returns the inputs that a client may supply.
func open(p stone.Ashlar) []Input {
	return slices.DeleteFunc(Inputs(p), func(in Input) bool { return in.Inner })
}

// bare reports whether the JSON of the input is the content of the only type, without an object around it. If the pipeline also
// reads reserved types, as in a plan, inputs are given by name.
func bare(p stone.Ashlar) bool {
	all := slices.DeleteFunc(reads(p), func(in Input) bool { return in.Inner })
	return len(all) == 1 && !all[0].reserved()
}

func (in Input) reserved() bool { return dag.Reserved(in.Type.Name()) }

// reads is like Inputs, but includes reserved types, except for replaced prompts, which are not an input.
func reads(p stone.Ashlar) []Input {
	index := map[string]int{}
	var out []Input
	for _, q := range p.QueriesAll() {
		t := q.Type()
		if t == nil || t.Name() == dag.Failure.Name() || t.Name() == prompts.Type.Name() {
			continue
		}
		i, known := index[t.Name()]
		if !known {
			i = len(out)
			index[t.Name()] = i
			out = append(out, Input{t, true, true, false})
		}
		out[i].Inner = out[i].Inner || q.IsInner()
		out[i].Optional = out[i].Optional && q.IsOptional()
		out[i].Many = out[i].Many && q.IsAll()
	}
	slices.SortFunc(out, func(a, b Input) int { return strings.Compare(a.Type.Name(), b.Type.Name()) })
	return out
}

// InputSchema returns the schema of the JSON that [ReadInput] reads. For a pipeline with one input, this is the schema of its
// type. For any other pipeline it is a closed object with a property for each type, named after the type. An input that is Many is
// an array. Inputs that are Inner are omitted.
func InputSchema(p stone.Ashlar) (*schema.Schema, error) {
	inputs := open(p)
	if bare(p) {
		return inputs[0].schema()
	}
	object := struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required,omitempty"`
		Closed     bool                       `json:"additionalProperties"`
	}{Type: "object", Properties: map[string]json.RawMessage{}}
	for _, in := range inputs {
		s, err := in.schema()
		if err != nil {
			return nil, err
		}
		object.Properties[in.Type.Name()] = s.Below("properties", in.Type.Name())
		if !in.Optional {
			object.Required = append(object.Required, in.Type.Name())
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return schema.Parse(text)
}

// schema returns the schema for the JSON of the input.
func (in Input) schema() (*schema.Schema, error) {
	if err := in.Type.Err(); err != nil {
		return nil, fmt.Errorf("input %q: %w", in.Type.Name(), err)
	}
	if !in.Many {
		return in.Type.Schema(), nil
	}
	return schema.Parse(slices.Concat([]byte(`{"type":"array","items":`), in.Type.Schema().Below("items"), []byte(`}`)))
}

// ReadInput converts JSON to the input DAG for a run of p. If p has exactly one input, the JSON is its content; otherwise it is an
// object with the contents of the inputs, by type name. Such an object is also accepted for a single input. If only one string is
// required, the JSON can be just a string. ReadInput checks every content against the schema of its type. The errors say which
// input is missing, unknown, Inner or invalid, and where.
func ReadInput(ctx context.Context, p stone.Ashlar, data json.RawMessage) (dag.DAG, error) {
	inputs := open(p)
	given := map[string]json.RawMessage{}
	data = json.RawMessage(strings.TrimSpace(string(data)))
	if in, content := said(ctx, inputs, data); in != "" {
		given[in] = content
	} else if bare(p) && !named(ctx, p, data) {
		if len(data) > 0 {
			given[inputs[0].Type.Name()] = data
		}
	} else if len(data) > 0 {
		if err := json.Unmarshal(data, &given); err != nil {
			return dag.DAG{}, fmt.Errorf("the input: want an object with %s%w", wanted(inputs), got(data, err))
		}
	}
	var d dag.DAG
	for _, in := range inputs {
		name := in.Type.Name()
		raw, ok := given[name]
		delete(given, name)
		if !ok {
			if !in.Optional {
				return d, missing(name, given, inputs)
			}
			continue
		}
		var err error
		if d, err = in.read(ctx, d, raw); err != nil {
			return d, err
		}
	}
	if names := slices.Sorted(maps.Keys(given)); len(names) > 0 {
		name := names[0]
		if slices.ContainsFunc(Inputs(p), func(in Input) bool { return in.Type.Name() == name }) {
			return d, fmt.Errorf("%q is not an input: the run or its server sets it: leave it out", name)
		}
		return d, unknown(name, inputs)
	}
	return d, nil
}

// named reports whether data is an object whose members are inputs, and not the content of a single input.
func named(ctx context.Context, p stone.Ashlar, data json.RawMessage) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil || len(object) == 0 || open(p)[0].Type.Schema().Validate(ctx, data) == nil {
		return false
	}
	for name := range object {
		if !slices.ContainsFunc(Inputs(p), func(in Input) bool { return in.Type.Name() == name }) {
			return false
		}
	}
	return true
}

// said returns the input that plain text stands for, and the input's content. This is the required input if it is a string or an
// object with one required string.
func said(ctx context.Context, inputs []Input, data json.RawMessage) (name string, content json.RawMessage) {
	required := slices.DeleteFunc(slices.Clone(inputs), func(in Input) bool { return in.Optional })
	if len(data) == 0 || data[0] != '"' || len(required) != 1 || required[0].Many || required[0].Type.Err() != nil {
		return "", nil
	}
	t := required[0].Type
	if t.Schema().Validate(ctx, data) == nil {
		return t.Name(), data
	}
	for _, field := range t.Schema().Properties() {
		object, err := json.Marshal(map[string]json.RawMessage{field: data})
		if err != nil || t.Schema().Validate(ctx, object) != nil {
			continue
		}
		if content != nil {
			return "", nil // the text could stand for either input
		}
		name, content = t.Name(), object
	}
	return name, content
}

// WriteInput is the inverse of [ReadInput]: it returns the JSON of the values in d that p needs as input. It covers the [Inputs]
// that clients may supply. If an input is missing, it returns an error unless the input is Optional.
func WriteInput(p stone.Ashlar, d dag.DAG) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	inputs := open(p)
	for _, in := range inputs {
		var content any
		var err error
		empty := false
		if in.Many {
			var nodes []*dag.Node
			nodes, err = d.All(in.Type.Name())
			content, empty = contents(nodes), len(nodes) == 0
		} else {
			var n *dag.Node
			if n, err = d.Nearest(in.Type.Name()); err == nil {
				content = n.Content()
			}
		}
		switch {
		case in.Optional && (errors.Is(err, dag.ErrMissing) || empty):
			continue
		case err != nil:
			return nil, err
		}
		if all[in.Type.Name()], err = json.Marshal(content); err != nil {
			return nil, err
		}
	}
	if bare(p) {
		return all[inputs[0].Type.Name()], nil
	}
	return json.Marshal(all)
}

// contents returns the contents of nodes.
func contents(nodes []*dag.Node) []json.RawMessage {
	all := []json.RawMessage{}
	for _, n := range nodes {
		all = append(all, n.Content())
	}
	return all
}

// read adds the nodes of an input to d.
func (in Input) read(ctx context.Context, d dag.DAG, raw json.RawMessage) (dag.DAG, error) {
	name := in.Type.Name()
	contents := []json.RawMessage{raw}
	if in.Many {
		contents = nil
		if err := json.Unmarshal(raw, &contents); err != nil {
			return d, fmt.Errorf("the input %q: want an array%w", name, got(raw, err))
		}
	}
	for i, content := range contents {
		place := fmt.Sprintf("the input %q", name)
		if in.Many {
			place += fmt.Sprintf(", number %d", i+1)
		}
		if err := in.Type.Err(); err != nil {
			return d, fmt.Errorf("%s: %w", place, err)
		}
		if err := in.Type.Schema().Validate(ctx, content); err != nil {
			return d, fmt.Errorf("%s: %w", place, err)
		}
		n, err := dag.NewNode(dag.Spec{Type: name, Content: content, Parents: d.Next()})
		if err != nil {
			return d, fmt.Errorf("%s: %w", place, err)
		}
		if d, err = d.Append(n); err != nil {
			return d, fmt.Errorf("%s: %w", place, err)
		}
	}
	return d, nil
}

// missing returns the error for a missing input. If given contains an unknown name, which may be misspelt, the error mentions it.
func missing(name string, given map[string]json.RawMessage, inputs []Input) error {
	for _, other := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(inputs, func(in Input) bool { return in.Type.Name() == other }) {
			return fmt.Errorf("the input %q is missing, and %q is none: give %s", name, other, wanted(inputs))
		}
	}
	return fmt.Errorf("the input %q is missing: give %s", name, wanted(inputs))
}

// got returns an error that describes JSON of the wrong kind, or says why the text is not JSON.
func got(data json.RawMessage, err error) error {
	if !errors.As(err, new(*json.UnmarshalTypeError)) {
		return fmt.Errorf(": %w", err)
	}
	const most = 40
	text := strings.ToValidUTF8(string(data[:min(len(data), most)]), "")
	if len(data) > most {
		text += "…"
	}
	return fmt.Errorf(", got %s", text)
}

// wanted lists the names of the inputs for an error message.
func wanted(inputs []Input) string {
	if len(inputs) == 0 {
		return "no fields, since the pipeline has no input"
	}
	var names []string
	for _, in := range inputs {
		name := fmt.Sprintf("%q", in.Type.Name())
		if in.Optional {
			name += " (optional)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func unknown(name string, inputs []Input) error {
	near := suggest.Closest(name, func(yield func(string) bool) {
		for _, in := range inputs {
			if !yield(in.Type.Name()) {
				return
			}
		}
	})
	if near != "" {
		return fmt.Errorf("the pipeline has no input %q: did you mean %q?", name, near)
	}
	if len(inputs) == 0 {
		return errors.New("the pipeline has no input: leave it out")
	}
	return fmt.Errorf("the pipeline has no input %q: want %s", name, wanted(inputs))
}
