package model

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// shown is the media of an input, in the order of its fields.
type shown []*llm.Media

// take returns the input with a line of text in place of each media that its schema marks. The
// media of a judge's input is that of the call which it judges.
func (list *shown) take(req *call.Request) (call.JSON, error) {
	s := req.InSchema
	if s == nil || !bytes.Contains(s.JSON(), []byte(`"contentEncoding"`)) {
		return req.Input, nil
	}
	dec := json.NewDecoder(bytes.NewReader(req.Input))
	dec.UseNumber()
	var input any
	if err := dec.Decode(&input); err != nil {
		return nil, err
	}
	var err error
	if material, ok := input.(map[string]any); ok && (req.Intent == call.EvalGrade || req.Intent == call.EvalCheck) {
		field := "input"
		if material["of"] == "input" { // a judge at the door
			field = "out"
		}
		material[field], err = list.walk(material[field], s, "input."+field)
	} else {
		input, err = list.walk(input, s, "input")
	}
	if err != nil || len(*list) == 0 {
		return req.Input, err
	}
	return json.Marshal(input)
}

// walk replaces the media within a value.
func (list *shown) walk(v any, s *schema.Schema, where string) (any, error) {
	if s == nil {
		return v, nil
	}
	var err error
	switch v := v.(type) {
	case string:
		if encoding, mediaType := s.Encoding(); encoding == "base64" && mediaType != "" && v != "" {
			return list.decode(v, mediaType, where)
		}
	case map[string]any:
		if m := mediaOf(v, s); m != nil {
			return list.add(m, where)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			within, _ := s.At(name)
			if v[name], err = list.walk(v[name], within, where+"."+name); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			within, _ := s.At(strconv.Itoa(i))
			if v[i], err = list.walk(v[i], within, fmt.Sprintf("%s[%d]", where, i)); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// mediaOf returns the llm.Media that an object is, or nil: its schema has base64 in data, beside a
// type.
func mediaOf(fields map[string]any, s *schema.Schema) *llm.Media {
	data, _ := s.At("data")
	if encoding, mediaType := data.Encoding(); encoding != "base64" || mediaType != "" || !slices.Contains(s.Properties(), "type") {
		return nil
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	m := &llm.Media{}
	if dec.Decode(m) != nil || m.Type == "" {
		return nil
	}
	return m
}

// decode makes media of a text in base64. A media type such as image/* leaves the rest to the data.
func (list *shown) decode(text, mediaType, where string) (any, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, invalid(where, fmt.Errorf("want base64: %w", err))
	}
	m := &llm.Media{Type: mediaType, Data: data}
	if prefix, any := strings.CutSuffix(mediaType, "*"); any {
		if m, err = llm.NewMedia("", data); err != nil || !strings.HasPrefix(m.Type, prefix) {
			return nil, invalid(where, fmt.Errorf("want media of type %s", mediaType))
		}
	}
	return list.add(m, where)
}

func (list *shown) add(m *llm.Media, where string) (any, error) {
	if err := m.Check(); err != nil {
		return nil, invalid(where, err)
	}
	*list = append(*list, m)
	return list.line(len(*list) - 1), nil
}

// line is the text in place of media.
func (list shown) line(i int) string { return fmt.Sprintf("[media %d: %s]", i+1, list[i]) }

// rest returns an input without the field of its only media. Of several, the fields tell the model
// which is which.
func (list shown) rest(input call.JSON) call.JSON {
	var fields map[string]any
	if len(list) != 1 || json.Unmarshal(input, &fields) != nil || len(fields) != 2 {
		return input
	}
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == list.line(0) })
	if rest, err := json.Marshal(fields); err == nil && plain(rest) != string(rest) {
		return rest
	}
	return input
}

func invalid(where string, err error) error {
	return &call.Error{Type: call.InputInvalid, Where: where, Message: where + ": " + err.Error(), Cause: err}
}

// message returns the message of the user with the media, each with its number if there are several.
func (list shown) message(text string) llm.Message {
	if len(list) <= 1 {
		return llm.User(text, list...)
	}
	m := llm.Message{Role: llm.RoleUser}
	for i, media := range list {
		m.Content = append(m.Content, llm.Part{Text: fmt.Sprintf("Media %d:", i+1)}, llm.Part{Media: media})
	}
	m.Content = append(m.Content, llm.Part{Text: text})
	return m
}
