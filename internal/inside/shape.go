package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/serve/api"
)

// A Shape says which parts of a message, such as text and media, a pipeline's input accepts.
type Shape struct {
	Kind   string // JSON Schema type of the input; empty if the schema has no single type
	Text   string // name of the property for text, if the input is an object with one required string
	Media  string // name of the property for a message's media; empty if there is none
	schema string
}

// ShapeOf returns the Shape for inputs that match a JSON Schema.
func ShapeOf(input json.RawMessage) (Shape, error) {
	s := Shape{schema: string(input)}
	var head struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(input, &head); err != nil {
		return s, fmt.Errorf("its input schema: %w", err)
	}
	s.Kind, _ = head.Type.(string)
	var texts []string
	for name, property := range head.Properties {
		var of struct {
			Type string `json:"type"`
		}
		if string(property) == string(mediaSchema.Below("properties", name)) {
			s.Media = name
		}
		if slices.Contains(head.Required, name) && json.Unmarshal(property, &of) == nil && of.Type == "string" {
			texts = append(texts, name)
		}
	}
	if len(texts) != 1 {
		s.Media = ""
		return s, nil
	}
	s.Text = texts[0]
	return s, nil
}

var mediaSchema = func() *schema.Schema {
	s, err := schema.For[[]*llm.Media]()
	if err != nil {
		panic(err) // cannot happen: the type is declared in this module
	}
	return s
}()

// Show returns the input for a message with text and media. The text may be empty.
func (s Shape) Show(text string, media []*llm.Media) (json.RawMessage, error) {
	switch {
	case len(media) == 0:
		return s.Read(text, nil)
	case s.Media == "":
		return nil, errors.New("it takes no pictures, sounds or other files: want text")
	}
	return json.Marshal(map[string]any{s.Text: text, s.Media: media})
}

// Read returns the input for a message with text, data or both. It does not check the input against the schema; the API does.
func (s Shape) Read(text string, data json.RawMessage) (json.RawMessage, error) {
	switch {
	case text == "" && data != nil:
		return data, nil
	case s.Kind == "string" && data == nil:
		return json.Marshal(text)
	case s.Text != "":
		var object map[string]json.RawMessage
		if data != nil && json.Unmarshal(data, &object) != nil {
			return nil, errors.New("the data beside the text is not an object")
		}
		if data == nil && json.Unmarshal([]byte(text), &object) == nil && object[s.Text] != nil { // the text is the JSON of the whole input
			return json.RawMessage(text), nil
		}
		if data == nil || object == nil {
			object = map[string]json.RawMessage{}
		}
		if object[s.Text] != nil {
			return nil, fmt.Errorf("the message has text, and its data also sets %q: set only one of them", s.Text)
		}
		said, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		object[s.Text] = said
		return json.Marshal(object)
	case data == nil && json.Valid([]byte(text)):
		return json.RawMessage(text), nil
	}
	return nil, fmt.Errorf("it takes no text: want data of the schema %s", s.schema)
}

// Plain returns the part of a node's content that is shown to people. If the content is a string, or an object whose only field
// is a string named "text", such as an agent's answer, Plain returns the string as text. It returns any other content as data.
func Plain(n *api.Node) (text string, data json.RawMessage) {
	content := n.Content
	var object map[string]json.RawMessage
	if json.Unmarshal(content, &object) == nil && object != nil {
		for name := range strings.SplitSeq(n.Meta[terms.Beside], ",") {
			delete(object, name)
		}
		content, _ = json.Marshal(object) // cannot fail: object was read from JSON
		if only, ok := object["text"]; ok && len(object) == 1 {
			content = only
		}
	}
	if json.Unmarshal(content, &text) == nil {
		return text, nil
	}
	return "", content
}
