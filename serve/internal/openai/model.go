package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/serve/api"
)

// prefix begins the ids of models.
const prefix = "stone/"

// Model is the pipeline or intent behind a model name.
type Model struct {
	Name   string // without "stone/"
	Ashlar stone.Ashlar
	Live   bool        // streams what no gate has accepted yet
	format *llm.Format // of its answers, as the client wants them
}

// ID is the name by which clients ask for the model.
func (m Model) ID() string { return prefix + m.Name }

var (
	requestType = dag.NewType[llm.Request]("request")
	replyType   = dag.NewType[llm.Reply]("reply")
	textType    = dag.NewType[string]("text")
	inputType   = dag.NewType[call.JSON]("input")
	answerType  = dag.NewType[call.JSON]("answer")
)

// Intent returns a pipeline that answers as a call of the intent does: the Applicator
// chooses a capability, checks its answer, and continues with the next one if that is not good
// enough.
//
// Where the intent states no in-schema, its capabilities are asked for turns, see
// call.Model. Where that is "req/text", the input is the text of the conversation, and the
// JSON of one message where it is any other.
func Intent(app *call.Applicator, intent string) stone.Ashlar {
	switch app.Intents[intent].In {
	case "", terms.AnyRequest:
		model := call.Model(app, call.Spec{Intent: intent, Done: call.Done{Must: []string{"response-format"}}})
		return stone.Func("answer", requestType, replyType, func(ctx context.Context, req llm.Request) (llm.Reply, error) {
			reply, err := llm.Collect(ctx, heard{model, event.At(ctx).Speak("answer")}, &req)
			if err != nil {
				return llm.Reply{}, err
			}
			return *reply, nil
		}, stone.Detail{Value: onlySteps{}})
	case terms.TextRequest:
		return asking(app, intent, dag.Derive(textType, func(text string) any { return map[string]string{"text": text} }))
	}
	return asking(app, intent, call.From(inputType))
}

// onlySteps tells package stone that a leaf has no effects but those of the call in it.
type onlySteps struct{}

func (onlySteps) OnlySteps() bool { return true }

// heard is a model whose answers a voice repeats, so that watchers hear what is written.
type heard struct {
	llm.Model
	voice *event.Voice
}

// Stream implements llm.Model.
func (h heard) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range h.Model.Stream(ctx, req) {
			switch {
			case d.Kind == llm.Text && d.Text != "":
				h.voice.Say(event.Text, d.Text)
			case d.Kind == llm.Restart && d.Err != nil:
				h.voice.Again(d.Err.Error())
			case d.Kind == llm.Restart:
				h.voice.Again("the model is asked again")
			case d.Kind == llm.Done:
				h.voice.End()
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func asking(app *call.Applicator, intent string, input dag.Reader[any]) stone.Ashlar {
	return call.New("answer", answerType, call.Spec{Applicator: app, Intent: intent, Input: input})
}

// A form is what an input of a pipeline is to a conversation.
type form int

const (
	other form = iota
	asRequest
	asMessages
	asHistory // a result of an agent
	asText
	asMedia // of the newest message
	asTools // of the client, which executes their calls
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
		panic(err) // of a type of this module
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

// inputs returns the names of the inputs by their form, and whether the model takes
// nothing else.
func (m Model) inputs() (names map[form]string, known bool) {
	names = map[form]string{}
	for _, in := range tree.Inputs(m.Ashlar) {
		f := formOf(in)
		if f == other && in.Optional {
			continue // it does without
		}
		if _, twice := names[f]; f == other || twice {
			return nil, false
		}
		names[f] = in.Type.Name()
	}
	return names, true
}

// Talks reports whether the model is given what a client of a chat sends. Others read the JSON of one message.
func (m Model) Talks() bool {
	names, known := m.inputs()
	return known && names[asRequest]+names[asMessages]+names[asText] != ""
}

// Talking returns the models that a client of a chat can use.
func Talking(b Backend) []Model {
	return slices.DeleteFunc(b.Models(), func(m Model) bool { return !m.Talks() })
}

// takesRequest reports whether the model takes a request with its settings and tools.
func (m Model) takesRequest() bool {
	names, ok := m.inputs()
	return ok && len(names) == 1 && names[asRequest] != ""
}

// TakesTools reports whether the model takes tools of its clients.
func (m Model) TakesTools() bool {
	names, _ := m.inputs()
	return m.takesRequest() || names[asTools] != ""
}

// Input makes the input of a run from a request, and what it is given beside that.
func (m Model) Input(req *llm.Request) (input json.RawMessage, given Given, err error) {
	names, known := m.inputs()
	if m.takesRequest() {
		input, err = json.Marshal(req)
		return input, nil, err
	}
	tools, takesTools := names[asTools]
	delete(names, asTools)
	given = Given{}
	switch {
	case len(req.Tools) > 0 && !takesTools:
		return nil, nil, Wrong("tools", "unsupported_parameter", "the pipeline %s takes no tools of its clients: leave them out, or publish an agent with tool.ClientTools", m.Name)
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
		return nil, nil, Wrong("input", "invalid_input", "the model %s%s reads no conversation: send one message whose text is the JSON of its input, see GET /v1/pipelines/%[2]s", prefix, m.Name)
	}
	return json.RawMessage(whole), given, nil
}

// said returns an input with the text of messages and, if the pipeline takes it, the media of the newest one.
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

// MediaInput returns the name of the input of a pipeline that takes the media of a message, "" for none.
func MediaInput(p stone.Ashlar) string {
	names, _ := Model{Ashlar: p}.inputs()
	return names[asMedia]
}

// transcript returns the text of one message, or the texts of several below their roles.
func transcript(all []llm.Message) (string, error) {
	var texts []string
	for i := range all {
		m := &all[i]
		if len(m.Media()) > 0 {
			return "", Wrong("input", "unsupported_content", "the model reads text alone: leave pictures and files out, or publish an agent with agent.MediaOf")
		}
		if len(m.ToolCalls) > 0 || m.Role == llm.RoleTool {
			return "", Wrong("input", "unsupported_content", "the model calls no tools of the client: leave calls and their results out")
		}
		said := m.Text()
		if len(all) > 1 {
			said = string(m.Role) + ":\n" + said
		}
		texts = append(texts, said)
	}
	return strings.Join(texts, "\n\n"), nil
}

// Answer reads the result of a run. The text of an answer in the format that the client wants is that alone, without
// a code block around it.
func (m Model) Answer(ctx context.Context, run api.Run) (*llm.Reply, error) {
	reply, err := m.result(run)
	if err != nil || m.format == nil {
		return reply, err
	}
	if reply.Text, err = structured.Answered(ctx, m.format, reply); err != nil { // a pipeline has not checked it
		return nil, lost(reasons.SchemaInvalid, err.Error())
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
				reply.ToolCalls[i].Input = nil // it was cut off
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
		delete(object, "conversation") // of an agent
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

// Speaks reports whether values of a type are texts, so that an answer of that type can be shown while
// it is written.
func Speaks(t dag.AnyType) bool {
	if t == nil || t.Err() != nil {
		return false
	}
	s := t.Schema().Ordered()
	return bytes.Equal(s, textSchema) || bytes.Equal(s, historySchema) || bytes.Equal(s, replySchema)
}

// Find returns the model with the id.
func Find(b Backend, id string) (Model, error) {
	name, ours := strings.CutPrefix(id, prefix)
	for _, m := range b.Models() {
		if ours && m.Name == name {
			return m, nil
		}
	}
	return Model{}, &Error{Status: http.StatusNotFound, Message: "there is no model " + quote(id) + ": GET /v1/models lists them", Type: "invalid_request_error", Code: "model_not_found", Param: "model"}
}

func quote(s string) string {
	text, _ := json.Marshal(bounds.Cut(s, 100))
	return string(text)
}
