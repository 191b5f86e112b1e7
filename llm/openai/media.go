package openai

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// images are the types of pictures. Source: OpenAI, guide "Images and vision", section "Image input
// requirements".
var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// chatMedia returns an error for media that Chat Completions does not support. Source: OpenAI, API reference, "Create chat
// completion", content parts of a user message.
func chatMedia(role llm.Role, m *llm.Media) error {
	switch kind, _, _ := strings.Cut(m.Type, "/"); {
	case role == llm.RoleAssistant:
		return wire.Misplaced(role, m)
	case wire.OneOf(m.Type, images...) || m.Type == llm.AnyImage:
		return nil
	case kind == "image", kind == "audio" && audioFormats[m.Type] == "", kind == "video":
		return fmt.Errorf("media of type %q: Chat Completions takes images (PNG, JPEG, GIF, WebP), documents, and audio as WAV and MP3", m.Type)
	case m.URL != "":
		return fmt.Errorf("media of type %q by URL: Chat Completions takes only images by URL, set Data", m.Type)
	}
	return nil
}

var audioFormats = map[string]string{
	"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav",
	"audio/mpeg": "mp3", "audio/mp3": "mp3",
}

// responsesMedia returns an error for media that Responses does not support. Source: OpenAI, API reference, "Create a model
// response", input content and function tool call output.
func responsesMedia(role llm.Role, m *llm.Media) error {
	switch {
	case role == llm.RoleAssistant:
		return wire.Misplaced(role, m)
	case wire.OneOf(m.Type, images...) || m.Type == llm.AnyImage:
	case wire.OneOf(m.Type, "image/*"):
		return fmt.Errorf("media of type %q: Responses takes images as PNG, JPEG, GIF and WebP", m.Type)
	case wire.OneOf(m.Type, "audio/*", "video/*"):
		return fmt.Errorf("media of type %q: Responses takes images and documents; Chat Completions also takes audio", m.Type)
	}
	return nil
}

// content returns a string, or a list of parts if the message contains more than text. Text parts have the given type, and the
// function media makes all other parts.
func content(m llm.Message, text string, media func(*llm.Media) object) any {
	if m.Media() == nil {
		return m.Text()
	}
	parts := make([]object, 0, len(m.Content))
	for _, p := range m.Content {
		if p.Media != nil {
			parts = append(parts, media(p.Media))
		} else {
			parts = append(parts, object{"type": text, "text": p.Text + string(p.Value)})
		}
	}
	return parts
}

// mediaPart returns the media as part of a Chat Completions message.
func mediaPart(m *llm.Media) object {
	if format := audioFormats[m.Type]; format != "" {
		return object{"type": "input_audio", "input_audio": object{"data": m.Data, "format": format}}
	}
	if strings.HasPrefix(m.Type, "image/") {
		return object{"type": "image_url", "image_url": object{"url": address(m)}}
	}
	return object{"type": "file", "file": object{"filename": cmp.Or(m.Name, "file"), "file_data": address(m)}}
}

// inputMedia returns the media as part of a Responses message or tool result.
func inputMedia(m *llm.Media) object {
	switch {
	case strings.HasPrefix(m.Type, "image/"):
		return object{"type": "input_image", "image_url": address(m), "detail": "auto"}
	case m.URL != "":
		return object{"type": "input_file", "file_url": m.URL}
	}
	return object{"type": "input_file", "filename": cmp.Or(m.Name, "file"), "file_data": address(m)}
}

// address returns the URL of the media, or a data URL with their bytes.
func address(m *llm.Media) string {
	if m.URL != "" {
		return m.URL
	}
	return "data:" + m.Type + ";base64," + base64.StdEncoding.EncodeToString(m.Data)
}
