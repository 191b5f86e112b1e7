package uistream

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/llm"
)

// A Message is a UIMessage.
type Message = map[string]any

// Messages returns the exchanges as the messages of a client. A reply is assembled from its chunks in the same way as clients do.
func Messages(all []turn.Exchange) []Message {
	out := []Message{}
	for _, e := range all {
		out = append(out, Message{"id": e.Message, "role": "user", "parts": said(e.Content)})
		if e.Reply == "" {
			continue
		}
		s := &Stream{Run: e.Run.ID, Message: e.Reply}
		r := &reply{metadata: map[string]any{"state": e.Run.State}, parts: []Chunk{}}
		for _, c := range slices.Concat(s.Start(), s.Next(e.Parts), s.End(e.Run, e.Parts)) {
			r.add(c)
		}
		out = append(out, Message{"id": e.Reply, "role": "assistant", "parts": r.parts, "metadata": r.metadata})
	}
	return out
}

// said returns the parts of a user's message.
func said(all []llm.Part) []Chunk {
	parts := []Chunk{}
	for _, p := range all {
		m := p.Media
		if m == nil {
			parts = append(parts, Chunk{"type": "text", "text": p.Text})
			continue
		}
		file := Chunk{"type": "file", "mediaType": m.Type, "url": m.URL}
		if m.URL == "" {
			file["url"] = "data:" + m.Type + ";base64," + base64.StdEncoding.EncodeToString(m.Data)
		}
		if m.Name != "" {
			file["filename"] = m.Name
		}
		parts = append(parts, file)
	}
	return parts
}

// A reply is a message that is being assembled from chunks.
type reply struct {
	metadata map[string]any
	parts    []Chunk
}

// add adds a chunk. As in the SDK, a reasoning part has an id and a text part has none.
func (r *reply) add(c Chunk) {
	if m, ok := c["messageMetadata"].(map[string]any); ok {
		maps.Copy(r.metadata, m)
	}
	switch kind, _ := c["type"].(string); kind {
	case "start-step":
		r.parts = append(r.parts, Chunk{"type": "step-start"})
	case "text-start":
		r.parts = append(r.parts, Chunk{"type": "text", "text": "", "state": "done", "providerMetadata": c["providerMetadata"]})
	case "reasoning-start":
		r.parts = append(r.parts, Chunk{"type": "reasoning", "id": c["id"], "text": "", "state": "done", "providerMetadata": c["providerMetadata"]})
	case "text-delta", "reasoning-delta":
		p := r.parts[len(r.parts)-1] // recorded texts are complete
		p["text"] = p["text"].(string) + c["delta"].(string)
	case "error":
		r.metadata["error"] = c["errorText"]
	default:
		r.update(kind, c)
	}
}

// states maps a chunk's type to the state of its call after the chunk.
var states = map[string]string{
	"tool-input-start": "input-streaming", "tool-input-available": "input-available", "tool-approval-request": "approval-requested",
	"tool-input-error": "output-error", "tool-output-error": "output-error", "tool-output-available": "output-available", "tool-output-denied": "output-denied",
}

// update adds a chunk of a call, or of data, to its part.
func (r *reply) update(kind string, c Chunk) {
	if strings.HasPrefix(kind, "data-") {
		r.part("id", c["id"], kind)["data"] = c["data"]
		return
	}
	if states[kind] == "" {
		return
	}
	name, _ := c["toolName"].(string)
	p := r.part("toolCallId", c["toolCallId"], "tool-"+name)
	p["state"] = states[kind]
	for _, field := range []string{"input", "output", "errorText", "providerExecuted"} {
		if v, ok := c[field]; ok {
			p[field] = v
		}
	}
	switch kind {
	case "tool-approval-request":
		p["approval"] = map[string]any{"id": c["approvalId"]}
	case "tool-output-denied":
		p["approval"] = map[string]any{"id": c["toolCallId"], "approved": false}
	}
}

// part returns the part whose field has this value. If there is none, it adds a part of the given type.
func (r *reply) part(field string, value any, kind string) Chunk {
	for _, p := range r.parts {
		if p[field] == value {
			return p
		}
	}
	p := Chunk{"type": kind, field: value}
	r.parts = append(r.parts, p)
	return p
}
