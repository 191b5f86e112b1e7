// Package talk converts between conversations and the inputs and answers of pipelines, for protocols with which clients talk to
// pipelines.
package talk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/serve/api"
)

// Prefix is the prefix of model IDs.
const Prefix = "stone/"

// Model is a pipeline or intent that clients use as a model.
type Model struct {
	Name   string // name without Prefix
	Ashlar stone.Ashlar
	Format *llm.Format // answer format that the client requests; may be nil
}

// ID returns the name with which clients request the model.
func (m Model) ID() string { return Prefix + m.Name }

// Given contains, by type, the data that a run receives in addition to its input: the conversation so far and the client's tools.
type Given map[string]json.RawMessage

// An Error explains why a model cannot handle a client's message, or why its answer is invalid.
type Error struct {
	Param, Code, Message string
	Paid                 bool // the run has ended, and may have cost money
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func wrong(param, code, format string, args ...any) error {
	return &Error{Param: param, Code: code, Message: fmt.Sprintf(format, args...)}
}

// A form is the role that an input of a pipeline has in a conversation.
type form int

const (
	other form = iota
	asRequest
	asMessages
	asHistory // an agent's result, which contains the conversation
	asText
	asMedia // media of the newest message
	asTools // tools of the client, which executes the calls
)

var (
	requestSchema  = ordered[llm.Request]()
	replySchema    = ordered[llm.Reply]()
	messagesSchema = ordered[[]llm.Message]()
	historySchema  = ordered[agent.Text]()
	textSchema     = ordered[string]()
	mediaSchema    = ordered[[]*llm.Media]()
	toolsSchema    = ordered[[]llm.Tool]()
)

func ordered[T any]() []byte {
	s, err := schema.For[T]()
	if err != nil {
		panic(err) // cannot happen: the type is declared in this module
	}
	return s.Ordered()
}

func formOf(in tree.Input) form {
	if in.Many || in.Type.Err() != nil {
		return other
	}
	switch s := in.Type.Schema().Ordered(); {
	case bytes.Equal(s, requestSchema):
		return asRequest
	case bytes.Equal(s, messagesSchema):
		return asMessages
	case bytes.Equal(s, historySchema) && in.Inner:
		return asHistory
	case bytes.Equal(s, textSchema):
		return asText
	case bytes.Equal(s, mediaSchema) && !in.Inner:
		return asMedia
	case bytes.Equal(s, toolsSchema) && in.Inner:
		return asTools
	}
	return other
}

// inputs returns the names of the model's inputs by form. The result known is true if every required input has a form and no two
// inputs have the same one.
func (m Model) inputs() (names map[form]string, known bool) {
	names = map[form]string{}
	for _, in := range tree.Inputs(m.Ashlar) {
		f := formOf(in)
		if f == other && in.Optional {
			continue // the input is optional
		}
		if _, twice := names[f]; f == other || twice {
			return nil, false
		}
		names[f] = in.Type.Name()
	}
	return names, true
}

// Talks reports whether the model accepts chat messages. All other models read a single message as JSON.
func (m Model) Talks() bool {
	names, known := m.inputs()
	return known && names[asRequest]+names[asMessages]+names[asText] != ""
}

// TakesRequest reports whether the model accepts a whole request, including its settings and tools.
func (m Model) TakesRequest() bool {
	names, ok := m.inputs()
	return ok && len(names) == 1 && names[asRequest] != ""
}

// TakesTools reports whether the model accepts tools of the client.
func (m Model) TakesTools() bool {
	names, _ := m.inputs()
	return m.TakesRequest() || names[asTools] != ""
}

// Remembers reports whether the model receives its earlier answers, including their tool calls.
func (m Model) Remembers() bool {
	names, _ := m.inputs()
	return names[asHistory] != ""
}

// Input converts a request to the input of a run and the data given in addition to it.
func (m Model) Input(req *llm.Request) (input json.RawMessage, given Given, err error) {
	names, known := m.inputs()
	if m.TakesRequest() {
		input, err = json.Marshal(req)
		return input, nil, err
	}
	tools, takesTools := names[asTools]
	delete(names, asTools)
	given = Given{}
	switch {
	case len(req.Tools) > 0 && !takesTools:
		return nil, nil, wrong("tools", "unsupported_parameter", "the pipeline %s does not accept client tools: leave them out, or publish an agent with tool.ClientTools", m.Name)
	case len(req.Tools) > 0:
		if given[tools], err = json.Marshal(req.Tools); err != nil {
			return nil, nil, err
		}
	}
	all := req.Messages
	if req.System != "" {
		all = append([]llm.Message{{Role: llm.RoleSystem, Content: []llm.Part{{Text: req.System}}}}, all...)
	}
	last := len(all) - 1
	history, hasHistory := names[asHistory]
	messages, hasMessages := names[asMessages]
	text, hasText := names[asText]
	media := names[asMedia]
	delete(names, asMedia)
	switch {
	case known && len(names) == 0:
		return nil, given, nil
	case known && len(names) == 1 && hasMessages:
		input, err = json.Marshal(all)
		return input, given, err
	case known && len(names) == 1 && hasText:
		input, err = said(all, text, media, map[string]any{})
		return input, given, err
	case known && len(names) == 2 && hasText && hasMessages:
		input, err = said(all[last:], text, media, map[string]any{messages: append([]llm.Message{}, all[:last]...)})
		return input, given, err
	case known && len(names) == 2 && hasText && hasHistory:
		if last > 0 {
			if given[history], err = json.Marshal(map[string]any{"text": "", "conversation": all[:last]}); err != nil {
				return nil, nil, err
			}
		}
		input, err = said(all[last:], text, media, map[string]any{})
		return input, given, err
	}
	whole, err := transcript(all)
	if err != nil {
		return nil, nil, err
	}
	if len(all) > 1 || !json.Valid([]byte(whole)) {
		return nil, nil, wrong("input", "invalid_input", "the model %s%s reads no conversation: send one message whose text is the JSON of its input, see GET /v1/pipelines/%[2]s", Prefix, m.Name)
	}
	return json.RawMessage(whole), given, nil
}

// said returns an input with the text of the messages and, if the pipeline accepts media, with the media of the newest message.
func said(all []llm.Message, text, media string, object map[string]any) (json.RawMessage, error) {
	newest := all[len(all)-1]
	if shown := newest.Media(); media != "" && len(shown) > 0 {
		object[media] = shown
		newest.Content = slices.DeleteFunc(slices.Clone(newest.Content), func(p llm.Part) bool { return p.Media != nil })
		all = append(slices.Clone(all[:len(all)-1]), newest)
	}
	whole, err := transcript(all)
	if err != nil {
		return nil, err
	}
	if len(object) == 0 {
		return json.Marshal(whole)
	}
	object[text] = whole
	return json.Marshal(object)
}

// MediaInput returns the name of the pipeline's input for the media of a message, or "" if there is none.
func MediaInput(p stone.Ashlar) string {
	names, _ := Model{Ashlar: p}.inputs()
	return names[asMedia]
}

// transcript returns the text of a single message, or the texts of several messages, each preceded by its role.
func transcript(all []llm.Message) (string, error) {
	var texts []string
	for i := range all {
		m := &all[i]
		if len(m.Media()) > 0 {
			return "", wrong("input", "unsupported_content", "the model accepts only text: leave pictures and files out, or publish an agent with agent.MediaOf")
		}
		if len(m.ToolCalls) > 0 || m.Role == llm.RoleTool {
			return "", wrong("input", "unsupported_content", "the model does not call client tools: leave calls and their results out")
		}
		said := m.Text()
		if len(all) > 1 {
			said = string(m.Role) + ":\n" + said
		}
		texts = append(texts, said)
	}
	return strings.Join(texts, "\n\n"), nil
}

// Answer converts the result of a run to a reply. If the client requests a format, a code block around the text is removed.
func (m Model) Answer(ctx context.Context, run api.Run) (*llm.Reply, error) {
	reply, err := m.result(run)
	if err != nil || m.Format == nil {
		return reply, err
	}
	if reply.Text, err = structured.Answered(ctx, m.Format, reply); err != nil { // the pipeline has not checked the format
		return nil, &Error{Code: reasons.SchemaInvalid, Message: err.Error(), Paid: true}
	}
	return reply, nil
}

func (m Model) result(run api.Run) (*llm.Reply, error) {
	if run.Result == nil {
		return &llm.Reply{}, nil
	}
	content := run.Result.Content
	if t := m.Ashlar.Result(); t != nil && t.Err() == nil && t.Name() == run.Result.Type && bytes.Equal(t.Schema().Ordered(), replySchema) {
		reply := &llm.Reply{}
		err := json.Unmarshal(content, reply)
		for i, call := range reply.ToolCalls {
			if string(call.Input) == "null" {
				reply.ToolCalls[i].Input = nil // the call was cut off
			}
		}
		return reply, err
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return &llm.Reply{Text: text}, nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(content, &object) == nil && object != nil {
		delete(object, "conversation") // in an agent's result
		if json.Unmarshal(object["text"], &text) == nil {
			return &llm.Reply{Text: text}, nil
		}
		var err error
		if content, err = json.Marshal(object); err != nil {
			return nil, err
		}
	}
	return &llm.Reply{Text: string(content)}, nil
}

// Speaks reports whether values of a type are texts, so that an answer of that type can be shown while it is being written.
func Speaks(t dag.AnyType) bool {
	if t == nil || t.Err() != nil {
		return false
	}
	s := t.Schema().Ordered()
	return bytes.Equal(s, textSchema) || bytes.Equal(s, historySchema) || bytes.Equal(s, replySchema)
}

// Conversation returns the messages of a run that is done, including its answer. It returns false if the model does not receive
// conversations. As in OpenAI's service, the messages do not include the system text of an llm.Request; a pipeline that reads
// messages received that text as a message.
func (m Model) Conversation(ctx context.Context, from journal.Journal, run api.Run) (said []llm.Message, ok bool, err error) {
	read := func(name string, to any) {
		var d dag.DAG
		var n *dag.Node
		if err == nil {
			d, err = from.DAG(ctx, run.ID)
		}
		if err == nil {
			n, err = d.Nearest(name)
		}
		if err == nil {
			err = json.Unmarshal([]byte(n.JSON()), to)
		}
	}
	names, _ := m.inputs()
	switch {
	case m.TakesRequest():
		var req llm.Request
		read(names[asRequest], &req)
		said = req.Messages
	case names[asHistory] != "" && run.Result != nil && run.Result.Type == names[asHistory]:
		var result struct {
			Conversation []llm.Message `json:"conversation"`
		}
		err = json.Unmarshal(run.Result.Content, &result)
		return result.Conversation, true, err // includes the answer
	case names[asMessages] != "":
		read(names[asMessages], &said)
		if names[asText] != "" {
			var text string
			read(names[asText], &text)
			said = append(said, llm.User(text))
		}
	default:
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	answer, err := m.Answer(ctx, run)
	if err != nil {
		return nil, true, err
	}
	return append(said, answer.Message()), true, nil
}

// Message returns the newest user message, from which the run's input was created.
func (m Model) Message(input dag.DAG) []llm.Part {
	names, known := m.inputs()
	read := func(f form, to any) {
		if n, err := input.Nearest(names[f]); names[f] != "" && err == nil {
			_ = json.Unmarshal([]byte(n.JSON()), to) // cannot fail: the node matches its schema
		}
	}
	var req llm.Request
	var text string
	var media []*llm.Media
	read(asMedia, &media)
	read(asMessages, &req.Messages)
	read(asRequest, &req)
	read(asText, &text)
	switch last := len(req.Messages) - 1; {
	case !known: // the message was the JSON of the input
		object, said := map[string]json.RawMessage{}, []byte{}
		for n := range input.Nodes() {
			said = []byte(n.JSON())
			object[n.Type()] = said
		}
		if len(object) > 1 {
			said, _ = json.Marshal(object) // cannot fail: object was read from JSON
		}
		return []llm.Part{{Text: string(said)}}
	case names[asText] == "" && last >= 0:
		return req.Messages[last].Content
	}
	said := llm.User(text, media...)
	return said.Content
}
