package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/x/gateway/internal/openai"
)

// Parameters lists how each request parameter is handled; see openai.Use. Any other parameter is refused.
var Parameters = map[string]openai.Use{
	"model": openai.Used, "messages": openai.Used, "system": openai.Used, "stream": openai.Used, "thinking": openai.Used,
	"max_tokens": openai.Passed, "temperature": openai.Passed, "top_p": openai.Passed, "stop_sequences": openai.Passed, "tool_choice": openai.Passed,
	"tools": openai.Tooled, "output_config": openai.Tooled,
	"metadata": openai.Ignored, "top_k": openai.Ignored, "cache_control": openai.Ignored, "service_tier": openai.Ignored, "inference_geo": openai.Ignored,
	"speed": openai.Ignored, "context_management": openai.Ignored, "diagnostics": openai.Ignored,
	"container": openai.Refused, "mcp_servers": openai.Refused, "thread": openai.Refused, "fallbacks": openai.Refused, "compaction": openai.Refused,
	"user_profile_id": openai.Ignored, "workspace_id": openai.Ignored, "billing_policy": openai.Ignored, "fallback_credit_token": openai.Ignored,
}

// asked is a parsed request for a message.
type asked struct {
	llm.Request
	model    string
	stream   bool
	thinking struct{ Type, Display string }
	recalled map[int]string // runs that produced the thinking which the client sends back, by message
}

// read reads a request.
func read(r *http.Request, b openai.Backend) (a asked, err error) {
	body, err := openai.Body(r)
	if err != nil {
		return a, err
	}
	for name, value := range body {
		if use := Parameters[name]; use == "" || use == openai.Refused && !openai.Unset(value) {
			return a, openai.Wrong(name, "", "%s: the parameter is not supported: leave it out", name)
		}
	}
	var system json.RawMessage
	var messages list[message]
	var tools list[tool]
	var choice toolChoice
	var output struct {
		Effort string
		Format *struct {
			Type string
			openai.JSONSchema
		}
	}
	err = openai.Fields(body, map[string]any{
		"model": &a.model, "stream": &a.stream, "system": &system, "messages": &messages, "max_tokens": &a.MaxTokens, "thinking": &a.thinking,
		"temperature": &a.Params.Temperature, "top_p": &a.Params.TopP, "stop_sequences": &a.Params.Stop, "tools": &tools, "tool_choice": &choice,
		"output_config": &output,
	})
	if err == nil {
		err = a.offer(tools, choice, b.IgnoresTool)
	}
	if f := output.Format; err == nil && f != nil {
		a.ResponseFormat, err = openai.Format("output_config", f.Type, f.JSONSchema)
	}
	if output.Effort != "high" { // this is the default
		a.Params.Effort = output.Effort
	}
	if err == nil {
		err = a.say(system, messages)
	}
	return a, err
}

// A tool is a client's tool or, if its type is not custom, one of Anthropic's own tools.
type tool struct {
	Type, Name, Description string
	InputSchema             json.RawMessage `json:"input_schema"`
}

type toolChoice struct {
	Type, Name string
	Alone      bool `json:"disable_parallel_tool_use"`
}

// offer parses the tools and the tool choice of a request, and sets the tools that the model may call.
func (a *asked) offer(tools []tool, choice toolChoice, ignores func(kind string) bool) error {
	for i, t := range tools {
		switch {
		case t.Type == "" || t.Type == "custom":
			a.Tools = append(a.Tools, llm.Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema})
		case !ignores(t.Type):
			return openai.Wrong("tools", "", "tools.%d: tools of the type %q are not supported; :serve {:ignore-tools #{…}} of the server's configuration leaves types out", i, t.Type)
		}
	}
	switch choice.Type {
	case "", "auto", "none":
		a.Params.ToolChoice = choice.Type
	case "any":
		a.Params.ToolChoice = "required"
	case "tool":
		a.Params.ToolChoice = choice.Name
	default:
		return openai.Wrong("tool_choice", "", "tool_choice: the type is %q: want auto, any, tool or none", choice.Type)
	}
	if choice.Alone {
		a.Params.ParallelTools = new(false)
	}
	return nil
}

// maxList is the maximum length of each list in a request. It equals the number of messages that Anthropic's API accepts.
const maxList = 100_000

// A list is a list of limited length. The limit is needed because a short element occupies a hundred times its size in memory.
type list[T any] []T

func (l *list[T]) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start == nil {
		return err
	} else if start != json.Delim('[') {
		return errors.New("want a list")
	}
	for d.More() {
		if len(*l) == maxList {
			return fmt.Errorf("want a list of at most %d", maxList)
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}

type message struct {
	Role    string
	Content json.RawMessage
}

// blocks parses a content, which is a string or a list of blocks.
func blocks(at string, content json.RawMessage) (out list[block], err error) {
	if bytes.HasPrefix(content, []byte(`"`)) {
		out = list[block]{{Type: "text"}}
		err = json.Unmarshal(content, &out[0].Text)
	} else if len(content) > 0 {
		err = json.Unmarshal(content, &out)
	}
	if err != nil {
		return nil, openai.Wrong(at, "invalid_type", "%s cannot be read: %v", at, err)
	}
	return out, nil
}

// A block is a part of a message. The content inside it is decoded only where it is used: if each enclosing block decoded it
// again, the time would be quadratic in the depth.
type block struct {
	Type, Text, Title string
	Source            struct { // source of an image or document
		Type, Data, URL string
		MediaType       string `json:"media_type"`
		Content         json.RawMessage
	}
	ID, Name        string // id and name of a tool call
	Input           json.RawMessage
	CallID          string `json:"tool_use_id"` // id of the call to which a result belongs
	Content         json.RawMessage
	IsError         bool   `json:"is_error"`
	Signature, Data string // signature and data of thinking
	ToolName        string `json:"tool_name"` // name of the request's tool to which the block refers
}

// parts parses a content that must not contain tool calls, tool results or thinking. A document may consist of blocks, but its
// blocks must not contain another such document.
func parts(at string, content json.RawMessage, inner bool) (out []llm.Part, err error) {
	all, err := blocks(at, content)
	for i := range all {
		if out, err = all[i].part(fmt.Sprintf("%s.%d", at, i), out, inner); err != nil {
			return nil, err
		}
	}
	return out, err
}

// part adds the text, image or document in a block to a message. The block may be nested in another block.
func (b *block) part(at string, out []llm.Part, inner bool) ([]llm.Part, error) {
	s := &b.Source
	url, kind := s.URL, llm.AnyImage
	switch {
	case b.Type == "text" && b.Text == "":
		return out, nil
	case b.Type == "text":
		return append(out, llm.Part{Text: b.Text}), nil
	case b.Type == "tool_reference":
		return append(out, llm.Part{Text: "The tool " + b.ToolName + " can be called now."}), nil
	case b.Type == "document" && s.Type == "text":
		return append(out, llm.Part{Text: strings.TrimPrefix(b.Title+"\n\n"+s.Data, "\n\n")}), nil
	case b.Type == "document" && s.Type == "content" && !inner:
		of, err := parts(at+".source.content", s.Content, true)
		return append(out, of...), err
	case b.Type != "image" && b.Type != "document":
		return nil, openai.Wrong(at, "", "%s: blocks of the type %q are not supported", at, b.Type)
	case s.Type == "base64":
		url = "data:" + s.MediaType + ";base64," + s.Data
	case s.Type == "url" && b.Type == "document":
		kind = "application/pdf"
	case s.Type != "url":
		return nil, openai.Wrong(at, "", "%s: sources of the type %q are not supported: want base64, url or text", at, s.Type)
	}
	media, err := llm.MediaURL(url, kind, b.Title)
	if err != nil {
		return nil, openai.Wrong(at, "", "%s: %v", at, err)
	}
	return append(out, llm.Part{Media: media}), nil
}

// say reads the conversation.
func (a *asked) say(system json.RawMessage, messages []message) error {
	var texts []string
	all, err := blocks("system", system)
	if err != nil {
		return err
	}
	for _, b := range all {
		texts = append(texts, b.Text)
	}
	a.System, a.recalled = strings.Join(texts, "\n\n"), map[int]string{}
	for i, m := range messages {
		at, turn := fmt.Sprintf("messages.%d", i), llm.Message{Role: llm.Role(m.Role)}
		if turn.Role != llm.RoleUser && turn.Role != llm.RoleAssistant && turn.Role != llm.RoleSystem {
			return openai.Wrong(at, "", "%s: the role is %q: want user, assistant or system", at, m.Role)
		}
		all, err := blocks(at+".content", m.Content)
		if err != nil {
			return err
		}
		for j := range all {
			if err := a.add(&turn, fmt.Sprintf("%s.content.%d", at, j), &all[j]); err != nil {
				return err
			}
		}
		if len(turn.Content)+len(turn.ToolCalls) > 0 {
			a.Messages = append(a.Messages, turn)
		}
	}
	if len(a.Messages) == 0 {
		return openai.Wrong("messages", "", "messages: the conversation has no message of the user")
	}
	return nil
}

// add adds a block to a message. A tool result becomes a separate message, placed before the user's text.
func (a *asked) add(turn *llm.Message, at string, b *block) (err error) {
	model := turn.Role == llm.RoleAssistant
	switch {
	case b.Type == "tool_result" && turn.Role == llm.RoleUser:
		result := llm.Message{Role: llm.RoleTool, CallID: b.CallID, IsError: b.IsError}
		result.Content, err = parts(at+".content", b.Content, false)
		a.Messages = append(a.Messages, result)
	case b.Type == "tool_use" && model:
		if !bytes.HasPrefix(bytes.TrimSpace(b.Input), []byte("{")) {
			return openai.Wrong(at, "", "%s: the input of a call is not an object", at)
		}
		turn.ToolCalls = append(turn.ToolCalls, llm.ToolCall{ID: b.ID, Name: b.Name, Input: b.Input})
	case (b.Type == "thinking" || b.Type == "redacted_thinking") && model:
		if id, ours := strings.CutPrefix(b.Signature+b.Data, openai.Sealed); ours {
			a.recalled[len(a.Messages)] = id
		}
	default:
		turn.Content, err = b.part(at, turn.Content, false)
	}
	return err
}
