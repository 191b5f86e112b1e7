package gemini

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// media returns an error for media that the protocol does not support. It rejects pictures in other formats, and URLs in messages
// of the model, and leaves all other media to the model. Source: Google, Gemini API guide "Image understanding", section
// "Supported image formats".
func media(role llm.Role, m *llm.Media) error {
	switch {
	case role == llm.RoleAssistant && m.URL != "":
		return fmt.Errorf("media of type %q by URL in a message of the model: set Data", m.Type)
	case m.Type == llm.AnyImage:
	case wire.OneOf(m.Type, "image/*") && !wire.OneOf(m.Type, "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"):
		return fmt.Errorf("media of type %q: Gemini takes images as PNG, JPEG, WebP, HEIC and HEIF", m.Type)
	}
	return nil
}

// inResult returns a function that reports whether a tool result can contain the media. Other media follow the result in a user
// part. Source: Google, Gemini API guide "Function calling", section "Multimodal function responses"; API reference,
// "FunctionResponsePart", which has no URL.
func inResult(model string) func(*llm.Media) bool {
	return func(m *llm.Media) bool {
		return !before3(model) && m.URL == "" &&
			wire.OneOf(m.Type, "image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain")
	}
}

func mediaPart(m *llm.Media) object {
	if m.Type == llm.AnyImage { // the type is omitted, because mimeType is optional
		return object{"fileData": object{"fileUri": m.URL}}
	}
	if m.URL != "" {
		return object{"fileData": object{"mimeType": m.Type, "fileUri": m.URL}}
	}
	return object{"inlineData": object{"mimeType": m.Type, "data": m.Data}}
}

// inlineData holds the bytes of an answer part.
type inlineData struct {
	Type string `json:"mimeType"`
	Data string `json:"data"`
}

// standIn is the field that replaces the bytes in a kept part. The message contains the bytes as media.
const standIn = "stone/media"

// media handles a picture or a sound of the answer. The kept part does not contain the bytes.
func (d *decoder) media(k keptPart) error {
	data, err := base64.StdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(k.Inline.Data))
	m := &llm.Media{Type: k.Inline.Type, Data: data}
	if err == nil {
		err = m.Check()
	}
	if err != nil {
		return d.protocol("media in the answer: %v", err)
	}
	d.reply.Media = append(d.reply.Media, m)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(k.raw, &fields); err != nil {
		return d.protocol("a part that is none: %v", err)
	}
	delete(fields, "inlineData")
	fields[standIn] = json.RawMessage("true")
	if k.raw, err = json.Marshal(fields); err != nil {
		return d.protocol("a part that is not JSON: %v", err)
	}
	d.parts = append(d.parts, k)
	return nil
}

// verbatim returns the kept parts, with the bytes of the message's media added.
func verbatim(m llm.Message, kept []keptPart) []any {
	media := m.Media()
	parts := make([]any, len(kept))
	for i, k := range kept {
		parts[i] = k.raw
		if !k.StandIn {
			continue
		}
		fields := object{}
		if json.Unmarshal(k.raw, &fields) == nil { // cannot fail, because received has decoded it
			delete(fields, standIn)
			fields["inlineData"] = object{"mimeType": media[0].Type, "data": media[0].Data}
			parts[i], media = fields, media[1:]
		}
	}
	return parts
}
