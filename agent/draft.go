package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/unfence"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// conversationField is the field of a node's content with the conversation.
const conversationField = "conversation"

// draft knows the produced type: generics end here.
type draft struct {
	goType reflect.Type
	free   bool           // any text
	schema *schema.Schema // of the response format
	own    *schema.Schema // of the type
	format *llm.Format
	parse  func([]byte) (any, error)
	node   func(dag.DAG, any) (*dag.Node, error)
}

func draftOf[T any](out dag.Type[T]) draft {
	d := draft{
		goType: reflect.TypeFor[T](),
		parse: func(data []byte) (any, error) {
			var v T
			err := json.Unmarshal(data, &v)
			return v, err
		},
		node: func(d dag.DAG, v any) (*dag.Node, error) { return out.Node(d, v.(T), time.Time{}) },
	}
	var zero T
	if _, d.free = any(zero).(Text); d.free || out.Schema() == nil {
		return d
	}
	// The strict form has null for an omitted property. Only decoding into the Go type
	// undoes that.
	d.schema, d.own = out.Schema(), out.Schema()
	derived, err := schema.For[T]()
	strict := err == nil && derived == d.own && strictable(d.schema.Strict())
	if strict {
		d.schema = d.schema.Strict()
	}
	d.format = &llm.Format{Name: formatName(out.Name()), Schema: d.schema.JSON(), Strict: strict}
	return d
}

// strictable reports whether strict output can have the schema: providers refuse objects
// with free names and values of any kind.
func strictable(s *schema.Schema) bool {
	var root any
	return json.Unmarshal(s.JSON(), &root) == nil && closed(root)
}

func closed(node any) bool {
	o, ok := node.(map[string]any)
	if !ok || o["allOf"] != nil || o["patternProperties"] != nil {
		return false
	}
	said := false
	for _, keyword := range []string{"type", "$ref", "anyOf", "enum", "const"} {
		said = said || o[keyword] != nil
	}
	if !said || hasType(o["type"], "object") && o["additionalProperties"] != false {
		return false
	}
	if hasType(o["type"], "array") && !closed(o["items"]) {
		return false
	}
	for _, keyword := range []string{"properties", "$defs", "definitions"} {
		named, _ := o[keyword].(map[string]any)
		for _, below := range named {
			if !closed(below) {
				return false
			}
		}
	}
	alternatives, _ := o["anyOf"].([]any)
	return !slices.ContainsFunc(alternatives, func(below any) bool { return !closed(below) })
}

// hasType reports whether the keyword type, a name or a list of names, names t.
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

// formatName makes a type's name acceptable to providers.
func formatName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 64)]
}

// A misfit is an answer that is no draft: the message to the model about it, and the
// failure if the next answer does not fit either.
type misfit struct {
	tell    string
	failure error
}

// read makes the draft from an answer.
func (d *draft) read(ctx context.Context, r *llm.Reply) (any, *misfit) {
	if !d.free {
		return d.readJSON(ctx, r)
	}
	if cutOff(r) {
		return nil, truncated(r)
	}
	return Text{r.Text}, nil
}

func (d *draft) readJSON(ctx context.Context, r *llm.Reply) (any, *misfit) {
	data := []byte(unfence.Text(r.Text))
	err := d.schema.Validate(ctx, data)
	if err != nil && d.own.Validate(ctx, data) == nil {
		err = nil // from a server that does not know the strict form
	}
	var v any
	if err == nil {
		v, err = d.parse(data)
	}
	if err == nil {
		return v, nil
	}
	if cutOff(r) {
		return nil, truncated(r)
	}
	tell, why := err.Error(), ""
	if invalid, ok := errors.AsType[*schema.ValidationError](err); ok {
		tell, why = invalid.Detail(), d.unquoted(invalid.Problems[0])
	}
	return nil, &misfit{
		tell: "Your answer does not fit the schema:\n" + tell + "\nAnswer again, with JSON that fits and nothing else.",
		// The error quotes the answer, which belongs to the debug events only.
		failure: failure(KindParseFailed, err, "the answer does not fit the schema of the response, nor did the one after it was sent back%s", why),
	}
}

var (
	wanted  = regexp.MustCompile(`^want .*?, got (?:malformed text at line \d+, column \d+|(?:an? )?[a-z]+)`)
	missing = regexp.MustCompile(`^property ".*" is required, but missing$`)
)

// unquoted describes the problem without the words of the answer.
func (d *draft) unquoted(p schema.Problem) string {
	if p.Path != "" {
		return ", first at " + p.Path
	}
	if what := wanted.FindString(p.Message); what != "" {
		return ": " + what
	}
	if missing.MatchString(p.Message) {
		return ": " + p.Message
	}
	return ""
}

func truncated(r *llm.Reply) *misfit {
	return &misfit{
		tell:    "Your answer was cut off at the limit of its length. Answer again, in fewer words.",
		failure: failure(KindTruncated, nil, "the answer was cut off by the token limit (stop reason %q), and again after it was sent back: raise MaxTokens", r.StopReason),
	}
}

// cutOff reports whether the token limit ended the answer, with any provider.
func cutOff(r *llm.Reply) bool {
	switch r.StopReason {
	case "length", "max_tokens", "model_context_window_exceeded":
		return true
	}
	return false
}

// content is the content of the agent's node: the fields of the draft, and the
// conversation beside them.
func (r *run) content(v any, conversation []llm.Message) (any, error) {
	if text, ok := v.(Text); ok {
		return struct {
			Conversation []llm.Message `json:"conversation"`
			Text         string        `json:"text"`
		}{conversation, text.Text}, nil
	}
	draft, err := r.draft.node(r.dag, v)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(draft.JSON()), &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("the draft of a %q is no JSON object: the conversation has no place beside it", draft.Type())
	}
	if _, taken := fields[conversationField]; taken {
		return nil, fmt.Errorf("the content of a %q has a field %q, where the conversation belongs: rename it", draft.Type(), conversationField)
	}
	all := make(map[string]any, len(fields)+1)
	for name, value := range fields {
		all[name] = value
	}
	all[conversationField] = conversation
	return all, nil
}
