package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/stonelayer/stone/llm"
)

// A part is a part of a message, in either protocol.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Refusal  string          `json:"refusal"`
	ImageURL json.RawMessage `json:"image_url"` // a string or, in a chat, an object with url
	FileData string          `json:"file_data"`
	FileURL  string          `json:"file_url"`
	FileID   string          `json:"file_id"`
	Filename string          `json:"filename"`
	File     *part           `json:"file"` // file part of a chat
	Audio    *struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
}

// content parses the content of a message: a string, a list of parts or null.
func content(param string, raw json.RawMessage) ([]llm.Part, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return texts(text), nil
	}
	var parts []part
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, Wrong(param, "invalid_type", "the content is neither a text nor a list of parts: %v", err)
	}
	var out []llm.Part
	for _, p := range parts {
		if p.File != nil {
			p.FileData, p.FileURL, p.FileID, p.Filename = p.File.FileData, p.File.FileURL, p.File.FileID, p.File.Filename
		}
		if p.FileID != "" {
			return nil, Wrong(param, "unsupported_content", "unknown file %s, since uploads are not supported: send file_data or a URL", quote(p.FileID))
		}
		var media *llm.Media
		var err error
		switch p.Type {
		case "input_text", "output_text", "text":
			out = append(out, texts(p.Text)...)
		case "refusal":
			out = append(out, texts(p.Refusal)...)
		case "input_image", "image_url":
			url := struct{ URL string }{}
			if json.Unmarshal(p.ImageURL, &url.URL) != nil && json.Unmarshal(p.ImageURL, &url) != nil {
				return nil, Wrong(param, "invalid_value", "an image without image_url")
			}
			media, err = picture(param, url.URL, llm.AnyImage, "")
		case "input_audio":
			if p.Audio == nil {
				return nil, Wrong(param, "invalid_value", "a sound without input_audio")
			}
			media, err = picture(param, "data:"+audioTypes[p.Audio.Format]+";base64,"+p.Audio.Data, "", "")
		case "input_file", "file":
			media, err = picture(param, p.FileURL+p.FileData, "application/octet-stream", p.Filename)
		default:
			return nil, Wrong(param, "unsupported_content", "content of the type %s is not supported: send text, images, sounds and files", quote(p.Type))
		}
		if err != nil {
			return nil, err
		}
		if media != nil {
			out = append(out, llm.Part{Media: media})
		}
	}
	return out, nil
}

// audioTypes maps the formats of sounds to media types.
var audioTypes = map[string]string{"wav": "audio/wav", "mp3": "audio/mpeg"}

func texts(text string) []llm.Part {
	if text == "" {
		return nil
	}
	return []llm.Part{{Text: text}}
}

// picture returns the media at the URL of an image or file; see llm.MediaURL.
func picture(param, url, kind, name string) (*llm.Media, error) {
	m, err := llm.MediaURL(url, kind, name)
	if err != nil {
		return nil, Wrong(param, "invalid_value", "%v", err)
	}
	return m, nil
}

// A dialogue collects the messages of a request.
type dialogue struct {
	*llm.Request
	recalled map[int]string // see response
	earlier  *earlier       // finds items of earlier responses that the request refers to; nil in a chat
}

// add appends a message. If it is a system message at the beginning, its text is added to the system text instead. The text and
// the tool calls of the same turn are combined into one message.
func (t dialogue) add(m llm.Message) {
	n := len(t.Messages)
	switch {
	case m.Role == llm.RoleSystem && n == 0:
		t.System = strings.TrimPrefix(t.System+"\n\n"+m.Text(), "\n\n")
	case m.Role == llm.RoleAssistant && n > 0 && t.Messages[n-1].Role == llm.RoleAssistant:
		last := &t.Messages[n-1]
		last.Content, last.ToolCalls = append(last.Content, m.Content...), append(last.ToolCalls, m.ToolCalls...)
	default:
		t.Messages = append(t.Messages, m)
	}
}

// say adds a message with this role and content.
func (t dialogue) say(param, role string, raw json.RawMessage) error {
	if role == "developer" {
		role = string(llm.RoleSystem)
	}
	m := llm.Message{Role: llm.Role(role)}
	switch m.Role {
	case llm.RoleSystem, llm.RoleUser, llm.RoleAssistant:
	default:
		return Wrong(param, "invalid_value", "a message has the role %s: want system, developer, user, assistant or tool", quote(role))
	}
	var err error
	if m.Content, err = content(param, raw); err != nil {
		return err
	}
	if len(m.Content) > 0 || m.Role == llm.RoleUser {
		t.add(m)
	}
	return nil
}

// call adds a tool call.
func (t dialogue) call(param, id, name, arguments string) error {
	input := json.RawMessage(arguments)
	if arguments == "" {
		input = json.RawMessage("{}")
	}
	made := llm.ToolCall{ID: id, Name: name, Input: input}
	switch {
	case !json.Valid(input): // the arguments were cut off, and clients send back what they received
		made.Input, made.InputText = nil, arguments
	case !bytes.HasPrefix(bytes.TrimSpace(input), []byte("{")):
		return Wrong(param, "invalid_value", "the arguments of the call %s are not a JSON object", quote(id))
	}
	t.add(llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{made}})
	return nil
}

// callText adds a call of a custom tool, whose input is text.
func (t dialogue) callText(param, id, name, text string) error {
	input, err := json.Marshal(map[string]string{"input": text})
	if err != nil {
		return err
	}
	return t.call(param, id, name, string(input))
}

// result adds the result of a tool call.
func (t dialogue) result(param, id string, raw json.RawMessage) error {
	parts, err := content(param, raw)
	if err != nil {
		return err
	}
	t.add(llm.Message{Role: llm.RoleTool, CallID: id, Content: parts})
	return nil
}

// An item is an item in the input of a response.
type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"` // namespace of the tool
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"` // input of a custom tool's call
	Output    json.RawMessage `json:"output"`
	ID        string          `json:"id"`
	Encrypted string          `json:"encrypted_content"`
}

// items adds the messages in the input of a response, which is a string or a list of items.
func (t dialogue) items(raw json.RawMessage) error {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		t.add(llm.User(text))
		return nil
	}
	var items []item
	if err := json.Unmarshal(raw, &items); err != nil {
		return Wrong("input", "invalid_type", "the input is neither a text nor a list of items: %v", err)
	}
	for _, it := range items {
		if it.Type == "item_reference" {
			var err error
			if it, err = t.earlier.item(it.ID); err != nil {
				return err
			}
		}
		var err error
		switch it.Type {
		case "message", "":
			err = t.say("input", it.Role, it.Content)
		case "function_call":
			err = t.call("input", it.CallID, within(it.Namespace, it.Name), it.Arguments)
		case "custom_tool_call":
			err = t.callText("input", it.CallID, within(it.Namespace, it.Name), it.Input)
		case "function_call_output", "custom_tool_call_output":
			err = t.result("input", it.CallID, it.Output)
		case "reasoning":
			t.thought(it)
		default:
			err = Wrong("input", "unsupported_content", "items of the type %s are not supported", quote(it.Type))
		}
		if err != nil {
			return err
		}
	}
	return t.checked("input")
}

// chatMessage is a message of a chat.
type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"tool_call_id"`
	ToolCalls []chatCall      `json:"tool_calls"`
}

// messages adds the messages of a chat.
func (t dialogue) messages(raw json.RawMessage) error {
	var all []chatMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return Wrong("messages", "invalid_type", "messages is not a list of messages: %v", err)
	}
	for _, m := range all {
		var err error
		if m.Role == "tool" {
			err = t.result("messages", m.CallID, m.Content)
		} else {
			err = t.say("messages", m.Role, m.Content)
		}
		for _, c := range m.ToolCalls {
			switch {
			case err != nil:
			case c.Custom != nil:
				err = t.callText("messages", c.ID, c.Custom.Name, c.Custom.Input)
			case c.Function != nil:
				err = t.call("messages", c.ID, c.Function.Name, c.Function.Arguments)
			default:
				err = Wrong("messages", "invalid_value", "the call %s has neither function nor custom", quote(c.ID))
			}
		}
		if err != nil {
			return err
		}
	}
	return t.checked("messages")
}

func (t dialogue) checked(param string) error {
	if len(t.Messages) == 0 {
		return Wrong(param, "missing_required_parameter", "the conversation has no message of the user")
	}
	return nil
}
