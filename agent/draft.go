package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// conversationField is the field of a node's content that contains the conversation.
const conversationField = "conversation"

// draft describes the Go type of the drafts or the result, without type parameters.
type draft struct {
	typ    dag.AnyType
	goType reflect.Type
	free   bool // whether any text is accepted
	form   *structured.Form
	parse  func([]byte) (any, error)
	node   func(dag.DAG, any) (*dag.Node, error)
}

func draftOf[T any](out dag.Type[T]) draft {
	d := draft{
		typ:    out,
		goType: reflect.TypeFor[T](),
		parse: func(data []byte) (any, error) {
			var v T
			err := json.Unmarshal(data, &v)
			return v, err
		},
		node: func(d dag.DAG, v any) (*dag.Node, error) { return out.Node(d, v.(T), time.Time{}) },
	}
	var zero T
	if _, d.free = any(zero).(Text); d.free {
		d.form = structured.Of(out.Name(), nil)
		return d
	}
	d.form = structured.Of(out.Name(), out.Schema())
	return d
}

// hasType reports whether keyword, the value of a schema's keyword "type", is or contains the name t.
func hasType(keyword any, t string) bool {
	list, ok := keyword.([]any)
	return keyword == t || ok && slices.Contains(list, any(t))
}

// isObject reports whether values of the schema are JSON objects.
func isObject(s *schema.Schema) bool {
	var root struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(s.JSON(), &root); err != nil {
		return false // true and false are schemas too
	}
	return hasType(root.Type, "object") || len(s.Properties()) > 0
}

// A misfit describes an answer that is not a valid draft: the message to the model, and the failure if the next answer is not
// valid either.
type misfit struct {
	tell    string
	failure error
}

// read returns the draft in an answer, or a misfit if the answer is not a valid draft.
func (d *draft) read(ctx context.Context, r *llm.Reply) (any, *misfit) {
	data, wrong := d.form.Read(ctx, r)
	if wrong == nil && d.free {
		return Text{r.Text}, nil
	}
	if wrong == nil {
		if plain, err := canon.AppendJSON(nil, data); err == nil {
			data = plain // 3.0 becomes the integer 3, as in the arguments of tools
		}
		v, err := d.parse(data)
		if err == nil {
			return v, nil
		}
		wrong = d.form.Misfit(err)
	}
	if wrong.Cut {
		return nil, &misfit{wrong.Tell, failure(reasons.Truncated, nil, "%v, even after the model was told", wrong.Err)}
	}
	// The error quotes the answer, and answers belong only in debug events.
	return nil, &misfit{wrong.Tell, failure(reasons.ParseFailed, wrong.Err, "the answer does not fit the response schema, and neither did the second attempt%s", wrong.Where)}
}

// content returns the content of the agent's node: the fields of the result and the conversation.
func (r *run) content(v any, conversation []llm.Message) (any, error) {
	if text, ok := v.(Text); ok {
		return struct {
			Conversation []llm.Message `json:"conversation"`
			Text         string        `json:"text"`
		}{conversation, text.Text}, nil
	}
	bare, err := r.result.node(r.dag, v)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(bare.JSON()), &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("the content of a %q is not a JSON object, so the conversation cannot be added", bare.Type())
	}
	if _, taken := fields[conversationField]; taken {
		return nil, fmt.Errorf("field %q of type %q is reserved for the conversation: rename it", conversationField, bare.Type())
	}
	all := make(map[string]any, len(fields)+1)
	for name, value := range fields {
		all[name] = value
	}
	all[conversationField] = conversation
	return all, nil
}
