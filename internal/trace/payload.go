package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/lines"
)

const (
	systemPreview  = 400 // maximum characters shown per system prompt
	messagePreview = 100 // maximum characters shown per message
)

// String describes the options in messages.
func (o PayloadOptions) String() string {
	var b strings.Builder
	if o.Ashlar != "" {
		fmt.Fprintf(&b, " for ashlar %q", o.Ashlar)
	}
	if o.Turn != nil {
		fmt.Fprintf(&b, " in turn %d", *o.Turn)
	}
	return b.String()
}

// printPayload writes a request in readable form.
func printPayload(w *bufio.Writer, e event.Event, r event.ModelRequest) {
	turn := ""
	if r.Turn > 0 {
		turn = strconv.Itoa(r.Turn)
	}
	fmt.Fprintf(w, "ashlar    %s\n", orDash(e.Name))
	fmt.Fprintf(w, "turn      %s\n", orDash(turn))
	fmt.Fprintf(w, "model     %s\n", orDash(r.Model))
	if tools := toolNames(list(r.Tools)); len(tools) > 0 {
		fmt.Fprintf(w, "tools     %s\n", strings.Join(tools, ", "))
	}

	system := lines.Cut(r.System, systemPreview)
	if system == "" {
		system = "-"
	}
	system = strings.NewReplacer("\r\n", "\n", "\t", "    ").Replace(system)
	label := "system"
	for line := range strings.SplitSeq(strings.TrimRight(system, "\n"), "\n") {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-8s  %s", label, lines.Printable(line)), " "))
		label = ""
	}

	messages := list(r.Messages)
	fmt.Fprintf(w, "messages  %d\n", len(messages))
	digits := len(strconv.Itoa(len(messages)))
	for i, m := range messages {
		fmt.Fprintf(w, "  %*d  %s\n", digits, i+1, messageLine(m))
	}
}

// list returns the elements of a JSON array.
func list(v any) (all []any) {
	raw, _ := v.(json.RawMessage)
	_ = json.Unmarshal(raw, &all) // anything else is an empty list
	return all
}

// messageLine formats a message of a conversation: its role, the beginning of its content, and the number of tool calls.
func messageLine(v any) string {
	m, _ := v.(map[string]any)
	role, _ := m["role"].(string)
	line := fmt.Sprintf("%-9s  %s", orDash(role), lines.Preview(contentText(m["content"]), messagePreview))
	switch n := toolCalls(m); n {
	case 0:
	case 1:
		line = strings.TrimRight(line, " ") + "  [1 tool call]"
	default:
		line = strings.TrimRight(line, " ") + fmt.Sprintf("  [%d tool calls]", n)
	}
	return strings.TrimRight(line, " ")
}

// toolCalls counts the tool calls in a message. Depending on the provider, they are in a separate list or are blocks of the
// content.
func toolCalls(m map[string]any) int {
	for _, key := range []string{"tool_calls", "tool-calls"} {
		if calls, ok := m[key].([]any); ok && len(calls) > 0 {
			return len(calls)
		}
	}
	blocks, _ := m["content"].([]any)
	n := 0
	for _, b := range blocks {
		if block, _ := b.(map[string]any); block["type"] == "tool_use" {
			n++
		}
	}
	return n
}

// contentText returns the text of a message's content, which is a string or a list of blocks. For a block that is not text, it
// returns the type in brackets and any text inside the block. It ignores tool calls, which are counted by toolCalls.
func contentText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var parts []string
		for _, b := range v {
			if s := contentText(b); s != "" {
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, "\n")
	case map[string]any:
		if text, ok := v["text"].(string); ok {
			return text
		}
		typ, _ := v["type"].(string)
		if typ == "" || typ == "tool_use" {
			return ""
		}
		return strings.TrimRight("["+typ+"] "+contentText(v["content"]), " ")
	case nil:
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// toolNames returns the names in a list of names or of tool descriptions.
func toolNames(tools []any) []string {
	var names []string
	for _, t := range tools {
		name, _ := t.(string)
		if tool, ok := t.(map[string]any); ok {
			if function, ok := tool["function"].(map[string]any); ok {
				tool = function
			}
			name, _ = tool["name"].(string)
		}
		names = append(names, orDash(name))
	}
	return names
}
