package anthropic

import (
	"fmt"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// media are the media of Messages, in messages of the user and in results of tools. Source:
// Anthropic, API reference, "Create a Message", image and document blocks.
func media(role llm.Role, m *llm.Media) error {
	switch {
	case role == llm.RoleAssistant:
		return wire.Misplaced(role, m)
	case wire.OneOf(m.Type, "image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf") || m.Type == llm.AnyImage:
		return nil
	case strings.HasPrefix(m.Type, "text/") && m.URL == "":
		return nil
	case strings.HasPrefix(m.Type, "text/"):
		return fmt.Errorf("media of type %q by URL: Messages takes only images and PDF by URL, set Data", m.Type)
	}
	return fmt.Errorf("media of type %q: Messages takes images (JPEG, PNG, GIF, WebP), PDF and text", m.Type)
}

func mediaBlock(m *llm.Media) object {
	if strings.HasPrefix(m.Type, "image/") {
		return object{"type": "image", "source": source(m)}
	}
	block := object{"type": "document", "source": source(m)}
	if m.Name != "" {
		block["title"] = m.Name
	}
	return block
}

func source(m *llm.Media) object {
	switch {
	case m.URL != "":
		return object{"type": "url", "url": m.URL}
	case strings.HasPrefix(m.Type, "text/"):
		return object{"type": "text", "media_type": "text/plain", "data": string(m.Data)}
	}
	return object{"type": "base64", "media_type": m.Type, "data": m.Data}
}
