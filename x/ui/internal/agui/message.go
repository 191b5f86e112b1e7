package agui

import (
	"encoding/json"
	"strings"

	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/llm"
)

// Connect sends the messages of the exchanges to a client that has sent no messages. The events begin with a snapshot of the
// messages.
func (in *Input) Connect(all []turn.Exchange) error {
	out := []any{}
	for _, e := range all {
		out = append(out, map[string]any{"id": e.Message, "role": "user", "content": said(e.Content)})
		s := &Stream{Name: e.Run.ID}
		s.Next(e.Parts)
		out = append(out, s.snapshot(e.Parts)...)
	}
	for _, m := range out {
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		in.Messages = append(in.Messages, text)
	}
	_, err := in.see()
	return err
}

// said returns the content of a user's message.
func said(all []llm.Part) any {
	if len(all) == 1 && all[0].Media == nil {
		return all[0].Text
	}
	parts := []map[string]any{}
	for _, p := range all {
		m := p.Media
		if m == nil {
			parts = append(parts, map[string]any{"type": "text", "text": p.Text})
			continue
		}
		kind, _, _ := strings.Cut(m.Type, "/")
		if kind != "image" && kind != "audio" && kind != "video" {
			kind = "document"
		}
		source := map[string]any{"type": "url", "value": m.URL, "mimeType": m.Type}
		if m.URL == "" {
			source["type"], source["value"] = "data", m.Data
		}
		parts = append(parts, map[string]any{"type": kind, "source": source})
	}
	return parts
}
