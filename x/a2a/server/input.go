package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/a2a/internal/parts"
)

const (
	textMode = "text/plain"
	jsonMode = "application/json"
)

// A skill is a published pipeline as clients see it.
type skill struct {
	api.Pipeline
	inside.Shape
	files  parts.Place
	output *schema.Schema // nil if unknown
}

func skillOf(p api.Pipeline) (skill, error) {
	shape, err := inside.ShapeOf(p.Input)
	if err != nil {
		return skill{}, fmt.Errorf("a2a: pipeline %q: %w", p.Name, err)
	}
	s := skill{Pipeline: p, Shape: shape}
	input, err := schema.Parse(p.Input)
	if err == nil && len(p.Output) > 0 {
		s.output, err = schema.Parse(p.Output)
	}
	if err != nil {
		return skill{}, fmt.Errorf("a2a: pipeline %q: %w", p.Name, err)
	}
	s.files = parts.PlaceOf(input)
	return s, nil
}

func (s skill) about() string { return cmp.Or(s.Description, "Run the pipeline "+s.Name+".") }

func (s skill) modes() []string {
	modes := []string{jsonMode}
	switch {
	case s.Kind == "string":
		modes = []string{textMode}
	case s.Text != "":
		modes = []string{textMode, jsonMode}
	}
	if s.Media != "" { // the pipeline's models may accept fewer types than its schema
		return append(modes, s.Files...)
	}
	return append(modes, s.files.Types...)
}

// outputModes returns the modes of the card and the media types of files in results. It returns nil if there are only the card's
// modes.
func (s skill) outputModes() []string {
	if files := parts.TypesOf(s.output); files != nil {
		return append([]string{textMode, jsonMode}, files...)
	}
	return nil
}

// skillFor returns the skill to which a message is addressed.
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

// named returns the string with the given name in metadata, or "" if there is none.
func named(meta map[string]any, key string) string {
	text, _ := meta[key].(string)
	return text
}

// said returns the text, the data and the files of a message. Each is empty or nil if the message does not contain any.
func said(m *sdk.Message) (text string, data json.RawMessage, files sdk.ContentParts, err error) {
	var texts []string
	for i, part := range m.Parts {
		switch content := part.Content.(type) {
		case sdk.Text:
			texts = append(texts, string(content))
		case sdk.Data:
			if data != nil {
				return "", nil, nil, invalid(fmt.Sprintf("part %d of the message is a second data part: want one", i+1))
			}
			if data, err = json.Marshal(content.Value); err != nil {
				return "", nil, nil, invalid(fmt.Sprintf("part %d of the message: %v", i+1, err))
			}
		case sdk.Raw, sdk.URL:
			files = append(files, part)
		default:
			return "", nil, nil, invalid(fmt.Sprintf("part %d of the message is empty: want text, data, raw or url", i+1))
		}
	}
	return strings.Join(texts, "\n"), data, files, nil
}

// input returns the input of a run from a message. The API refuses an input that does not match the schema.
func (s skill) input(m *sdk.Message) (json.RawMessage, error) {
	text, data, files, err := said(m)
	if err != nil {
		return nil, err
	}
	var input json.RawMessage
	if len(files) == 0 || text != "" || data != nil || s.Media != "" {
		input, err = s.Read(text, data)
	}
	if err == nil && len(files) > 0 {
		if input, err = s.files.Put(input, files); err != nil {
			return nil, sdk.NewError(sdk.ErrUnsupportedContentType, fmt.Sprintf("the files of the message: the skill %q: %v", s.Name, err))
		}
	}
	if err != nil {
		return nil, invalid(fmt.Sprintf("the skill %q: %v", s.Name, err))
	}
	return input, nil
}

// digest returns a digest of the caller and the content of a message.
func digest(c caller, m *sdk.Message, skill string) string {
	parts, _ := json.Marshal(m.Parts) // cannot fail: the parts were read from JSON
	h := sha256.New()
	for _, text := range []string{c.who.Name, m.ID, m.ContextID, skill, string(bytes.TrimSpace(parts))} {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}
