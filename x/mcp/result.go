package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/schema"
)

// The keys in the Meta of a result.
const (
	metaContent    = "content"
	metaStructured = "structured"
	metaSandbox    = "sandbox" // the sandbox.Method of the server's command
)

// A reader converts a server's results into text for the model.
type reader struct {
	maxData int
	output  *schema.Schema // the tool's output schema; nil accepts anything
	secrets *redact.Set
	method  sandbox.Method // the method that confines the server's command, or empty
}

func (r reader) result(ctx context.Context, res *sdk.CallToolResult) (agent.Result, error) {
	if res.NeedsInput() {
		return agent.Result{}, errors.New("the tool asks a person for input, which is not supported here; continue without it")
	}
	var (
		lines []string
		media []*llm.Media
		kept  []json.RawMessage
		left  = r.maxData
	)
	for _, part := range res.Content {
		if text, ok := part.(*sdk.TextContent); ok {
			lines = append(lines, text.Text)
			continue
		}
		line, shown := describe(part), mediaOf(part)
		if shown != nil && len(shown.Data) <= left {
			left -= len(shown.Data)
			media = append(media, shown)
		} else if data, err := part.MarshalJSON(); err != nil || len(data) > left {
			line += " (not kept: too much data)"
		} else {
			left -= len(data)
			kept = append(kept, data)
		}
		lines = append(lines, line)
	}
	meta := map[string]any{}
	if r.method != "" {
		meta[metaSandbox] = string(r.method)
	}
	if len(kept) > 0 {
		meta[metaContent] = kept
	}
	if res.StructuredContent != nil {
		data, err := encode(res.StructuredContent)
		if err != nil {
			return agent.Result{}, fmt.Errorf("the structured content of the result: %w", err)
		}
		if len(data) <= left {
			meta[metaStructured] = json.RawMessage(data)
		}
		lines = append(lines, r.structured(ctx, res, data)...)
	}
	out := agent.Result{Text: redact.From(ctx).Clean(r.secrets.Clean(strings.Join(lines, "\n"))), Media: media}
	if len(meta) > 0 {
		out.Meta = meta
	}
	if res.IsError {
		text := strings.TrimSpace(out.Text)
		if text == "" {
			text = "the tool failed without a reason"
		}
		return agent.Result{Meta: out.Meta}, errors.New(text)
	}
	if out.Text == "" {
		out.Text = "(the tool returned nothing)"
	}
	return out, nil
}

// structured returns lines that contain the structured content, or no lines if the text already contains it.
func (r reader) structured(ctx context.Context, res *sdk.CallToolResult, data []byte) (lines []string) {
	if !said(res) {
		lines = append(lines, string(data))
		if inexact(res.StructuredContent) {
			lines = append(lines, "[numbers of 2^53 and more are rounded in this JSON]")
		}
	}
	if res.IsError {
		return lines // the schema applies to successful results only
	}
	if err := r.output.Validate(ctx, data); err != nil {
		lines = append(lines, fmt.Sprintf("[the structured content %v]", err))
	}
	return lines
}

// said reports whether the text parts contain the structured content. The protocol asks servers to send both. Server libraries
// wrap values other than objects as {"result": …}, and send each element of a list as a part.
func said(res *sdk.CallToolResult) bool {
	whole, inner := res.StructuredContent, res.StructuredContent
	if m, ok := whole.(map[string]any); ok && len(m) == 1 {
		if v, ok := m["result"]; ok {
			inner = v
		}
	}
	list, isList := inner.([]any)
	var texts int
	same := true // each part so far is an element of the list
	for _, part := range res.Content {
		text, ok := part.(*sdk.TextContent)
		if !ok {
			continue
		}
		if tells(text.Text, whole) || tells(text.Text, inner) {
			return true
		}
		same = same && texts < len(list) && tells(text.Text, list[texts])
		texts++
	}
	return isList && same && texts > 0 && texts == len(list)
}

// tells reports whether a text is the value itself or the JSON of the value.
func tells(text string, v any) bool {
	if v == text {
		return true
	}
	var read any
	return json.Unmarshal([]byte(text), &read) == nil && reflect.DeepEqual(read, v)
}

// inexact reports whether a number may differ from the server's, because the protocol library reads numbers as float64.
func inexact(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.Abs(v) >= 1<<53
	case []any:
		for _, e := range v {
			if inexact(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if inexact(e) {
				return true
			}
		}
	}
	return false
}

// mediaOf returns the media in a part, or nil if models cannot be shown media of that type. A server may return any file, such as
// an archive, and a provider would then reject the whole request.
func mediaOf(part sdk.Content) *llm.Media {
	var m llm.Media
	switch part := part.(type) {
	case *sdk.ImageContent:
		m = llm.Media{Type: part.MIMEType, Data: part.Data}
	case *sdk.AudioContent:
		m = llm.Media{Type: part.MIMEType, Data: part.Data}
	case *sdk.EmbeddedResource:
		if r := part.Resource; r != nil {
			m = llm.Media{Type: r.MIMEType, Data: r.Blob, Name: path.Base(r.URI)}
		}
	}
	kind, _, _ := strings.Cut(m.Type, "/")
	if m.Check() != nil || kind != "image" && kind != "audio" && kind != "video" && m.Type != "application/pdf" {
		return nil
	}
	return &m
}

// describe returns a line that describes a part, followed by the text of the part.
func describe(part sdk.Content) string {
	switch part := part.(type) {
	case *sdk.ImageContent:
		return fmt.Sprintf("[image, %s, %d bytes]", part.MIMEType, len(part.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes]", part.MIMEType, len(part.Data))
	case *sdk.ResourceLink:
		line := []string{part.URI, part.Name, part.MIMEType, part.Description}
		return "[resource " + strings.Join(nonEmpty(line), ", ") + "]"
	case *sdk.EmbeddedResource:
		r := part.Resource
		if r == nil {
			return "[empty resource]"
		}
		line := nonEmpty([]string{r.URI, r.MIMEType})
		if r.Blob == nil {
			return "[resource " + strings.Join(line, ", ") + "]\n" + r.Text
		}
		return fmt.Sprintf("[resource %s, %d bytes]", strings.Join(line, ", "), len(r.Blob))
	}
	return fmt.Sprintf("[%T]", part)
}

func nonEmpty(list []string) (out []string) {
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// encode returns a value as JSON in which <, > and & are not escaped.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
