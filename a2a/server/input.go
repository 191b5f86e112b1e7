package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/serve/api"
)

const (
	textMode = "text/plain"
	jsonMode = "application/json"
)

// A skill is a published pipeline.
type skill struct {
	api.Pipeline
	kind     string          // of its input, as in JSON Schema
	text     string          // the property that text is, if the input is an object
	optional map[string]bool // the other properties
}

func skillOf(p api.Pipeline) (skill, error) {
	s := skill{Pipeline: p, optional: map[string]bool{}}
	var head struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(p.Input, &head); err != nil {
		return s, fmt.Errorf("a2a: pipeline %q: its input schema: %w", p.Name, err)
	}
	s.kind, _ = head.Type.(string)
	var texts []string
	for name, property := range head.Properties {
		var of struct {
			Type string `json:"type"`
		}
		switch required := slices.Contains(head.Required, name); {
		case !required:
			s.optional[name] = true
		case json.Unmarshal(property, &of) == nil && of.Type == "string":
			texts = append(texts, name)
		}
	}
	if len(texts) == 1 {
		s.text = texts[0]
	}
	return s, nil
}

func (s skill) about() string { return cmp.Or(s.Description, "Run the pipeline "+s.Name+".") }

func (s skill) modes() []string {
	switch {
	case s.kind == "string":
		return []string{textMode}
	case s.text != "":
		return []string{textMode, jsonMode}
	}
	return []string{jsonMode}
}

// skillFor returns the skill that a message is for.
func (a *agent) skillFor(req *sdk.SendMessageRequest) (skill, error) {
	name := cmp.Or(named(req.Message.Metadata, "skill"), named(req.Metadata, "skill"))
	if name == "" && len(a.skills) == 1 {
		return a.skills[0], nil
	}
	for _, s := range a.skills {
		if s.Name == name {
			return s, nil
		}
	}
	if name == "" {
		return skill{}, invalid(fmt.Sprintf(`the message names no skill: put one into its metadata, as {"skill": %q}: %s`, strings.Join(a.names()[:min(1, len(a.skills))], ""), strings.Join(a.names(), ", ")))
	}
	hint := ""
	if like := suggest.Closest(name, slices.Values(a.names())); like != "" {
		hint = fmt.Sprintf(", did you mean %q", like)
	}
	return skill{}, invalid(fmt.Sprintf("the agent has no skill %q%s: it has %s", name, hint, strings.Join(a.names(), ", ")))
}

// named returns a text in metadata.
func named(meta map[string]any, key string) string {
	text, _ := meta[key].(string)
	return text
}

// said returns the text and the data of a message; nil for none.
func said(m *sdk.Message) (text string, data json.RawMessage, err error) {
	var texts []string
	for i, part := range m.Parts {
		switch content := part.Content.(type) {
		case sdk.Text:
			texts = append(texts, string(content))
		case sdk.Data:
			if data != nil {
				return "", nil, invalid(fmt.Sprintf("part %d of the message is a second data part: want one", i+1))
			}
			if data, err = json.Marshal(content.Value); err != nil {
				return "", nil, invalid(fmt.Sprintf("part %d of the message: %v", i+1, err))
			}
		default:
			return "", nil, sdk.NewError(sdk.ErrUnsupportedContentType, fmt.Sprintf("part %d of the message is neither text nor data: the agent reads no files", i+1))
		}
	}
	return strings.Join(texts, "\n"), data, nil
}

// input returns the input of a run from a message. What does not fit is refused by the API.
func (s skill) input(m *sdk.Message) (json.RawMessage, error) {
	text, data, err := said(m)
	switch {
	case err != nil:
		return nil, err
	case text == "" && data != nil:
		return data, nil
	case s.kind == "string" && data == nil:
		return json.Marshal(text)
	case s.text != "":
		var object map[string]json.RawMessage
		if data != nil && json.Unmarshal(data, &object) != nil {
			return nil, invalid("the data beside the text is no object")
		}
		if data == nil && json.Unmarshal([]byte(text), &object) == nil && object[s.text] != nil { // the whole input as text
			return json.RawMessage(text), nil
		}
		if object == nil {
			object = map[string]json.RawMessage{}
		}
		if object[s.text] != nil {
			return nil, invalid(fmt.Sprintf("the message has text, and %q in its data: want one of them", s.text))
		}
		if object[s.text], err = json.Marshal(text); err != nil {
			return nil, err
		}
		return json.Marshal(object)
	case data == nil && json.Valid([]byte(text)):
		return json.RawMessage(text), nil
	}
	return nil, invalid(fmt.Sprintf("the skill %q takes no text: want one data part of the schema %s", s.Name, s.Input))
}

// with adds what an earlier task of the context has left to an input, where the pipeline reads it.
func (s skill) with(input json.RawMessage, before *api.Node) json.RawMessage {
	var object map[string]json.RawMessage
	if before == nil || !s.optional[before.Type] || json.Unmarshal(input, &object) != nil || object[before.Type] != nil {
		return input
	}
	object = maps.Clone(object)
	object[before.Type] = before.Content
	out, err := json.Marshal(object)
	if err != nil {
		return input
	}
	return out
}

// digest identifies a message of a caller with what it says.
func digest(c caller, m *sdk.Message, skill string) string {
	parts, _ := json.Marshal(m.Parts) // they were read from JSON
	h := sha256.New()
	for _, text := range []string{c.who.Name, m.ID, m.ContextID, skill, string(bytes.TrimSpace(parts))} {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}
