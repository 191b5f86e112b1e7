package page

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/llm"
)

// message is a message of a conversation, with the results of the tools it calls.
type message struct {
	Role  string
	Text  string
	Media int // pictures and sounds
	Calls []toolCall
}

// toolCall is a call of a tool.
type toolCall struct {
	Name   string
	Input  string
	Diff   []line // of an edit
	Result string
	Failed bool
	Done   bool // it has a result

	id string
}

// line is a line of a difference.
type line struct{ Sign, Text string }

// mostMessages bounds a conversation on a page; the latest are shown.
const mostMessages = 200

// talkOf reads the conversation in the result of an agent, or the reply in that of one
// of its turns. Contents without one have none.
func talkOf(content json.RawMessage, left *allowance) (out []message) {
	var found struct {
		Conversation []llm.Message `json:"conversation"`
		Reply        *struct {
			Text      string         `json:"text"`
			ToolCalls []llm.ToolCall `json:"tool_calls"`
		} `json:"reply"`
	}
	if !bytes.HasPrefix(content, []byte("{")) || json.Unmarshal(content, &found) != nil {
		return nil
	}
	if r := found.Reply; r != nil && (r.Text != "" || len(r.ToolCalls) > 0) {
		found.Conversation = append(found.Conversation, llm.Message{Role: llm.RoleAssistant, Content: []llm.Part{{Text: r.Text}}, ToolCalls: r.ToolCalls})
	}
	all := found.Conversation
	for _, m := range all[max(len(all)-mostMessages, 0):] {
		if m.Role == llm.RoleTool && answered(out, m, left) {
			continue
		}
		shown := message{Role: string(m.Role), Text: left.take(m.Text()), Media: len(m.Media())}
		for _, c := range m.ToolCalls {
			shown.Calls = append(shown.Calls, callOf(c, left))
		}
		out = append(out, shown)
	}
	return out
}

// answered puts a result beside the call that it answers.
func answered(talk []message, m llm.Message, left *allowance) bool {
	for i := len(talk) - 1; i >= 0; i-- {
		for j := range talk[i].Calls {
			if c := &talk[i].Calls[j]; c.id == m.CallID && !c.Done {
				c.Result, c.Failed, c.Done = left.take(text.JSON(m.Text())), m.IsError, true
				return true
			}
		}
	}
	return false
}

func callOf(c llm.ToolCall, left *allowance) toolCall {
	out := toolCall{id: c.ID, Name: c.Name}
	var edit struct {
		Path string  `json:"path"`
		Old  *string `json:"old_string"`
		New  *string `json:"new_string"`
	}
	if json.Unmarshal(c.Input, &edit) == nil && edit.Old != nil && edit.New != nil {
		out.Input = left.take(edit.Path)
		out.Diff = difference(left.take(*edit.Old), left.take(*edit.New))
		return out
	}
	out.Input = left.take(text.JSON(string(c.Input)) + c.InputText)
	return out
}

// contextLines is how many equal lines are shown around those that differ.
const contextLines = 3

// difference shows how a text becomes another. Long parts that are equal are left out.
func difference(before, after string) (out []line) {
	all := text.Diff(strings.Split(strings.TrimSuffix(before, "\n"), "\n"), strings.Split(strings.TrimSuffix(after, "\n"), "\n"))
	for i := 0; i < len(all); {
		end := i
		for end < len(all) && all[end].Sign == ' ' {
			end++
		}
		head, tail := contextLines, contextLines
		if i == 0 {
			head = 0
		}
		if end == len(all) {
			tail = 0
		}
		if n := end - i - head - tail; n > 1 {
			out = append(plain(out, all[i:i+head]), line{"…", plural(n, "equal line")})
			i = end - tail
		}
		out = plain(out, all[i:end])
		for i = end; i < len(all) && all[i].Sign != ' '; i++ {
			out = plain(out, all[i:i+1])
		}
	}
	return out
}

func plain(out []line, edits []text.Edit) []line {
	for _, e := range edits {
		out = append(out, line{string(e.Sign), e.Line})
	}
	return out
}
