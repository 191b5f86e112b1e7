package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// conversation returns the messages of an earlier response, its answer included.
func conversation(ctx context.Context, b Backend, id string) ([]llm.Message, error) {
	_, m, run, err := stored(ctx, b, id)
	if err != nil {
		return nil, err
	}
	if run.State != journal.Done {
		return nil, Wrong("previous_response_id", "invalid_value", "the response %s has no answer: its run is %s", quote(id), run.State)
	}
	said, ok, err := m.Conversation(ctx, b, run)
	if err == nil && !ok {
		err = Wrong("previous_response_id", "unsupported_parameter", "the model of the response %s is given no conversation: send what it needs as input", quote(id))
	}
	return said, err
}

// Conversation returns the messages of a run that is done, its answer included. It reports false if the
// model is given no conversation. The system text of an llm.Request is not part of them, as the instructions
// of OpenAI's own service are not; a pipeline that reads messages was given it as one.
func (m Model) Conversation(ctx context.Context, b Backend, run api.Run) (said []llm.Message, ok bool, err error) {
	read := func(name string, to any) {
		var content json.RawMessage
		if err == nil {
			content, err = b.Content(ctx, run.ID, name)
		}
		if err == nil {
			err = json.Unmarshal(content, to)
		}
	}
	names, _ := m.inputs()
	switch {
	case m.takesRequest():
		var req llm.Request
		read(names[asRequest], &req)
		said = req.Messages
	case names[asHistory] != "" && run.Result != nil && run.Result.Type == names[asHistory]:
		var result struct {
			Conversation []llm.Message `json:"conversation"`
		}
		err = json.Unmarshal(run.Result.Content, &result)
		return result.Conversation, true, err // with the answer
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

// Message returns the newest message of the user, of which the input of a run was made.
func (m Model) Message(input dag.DAG) []llm.Part {
	names, known := m.inputs()
	read := func(f form, to any) {
		if n, err := input.Nearest(names[f]); names[f] != "" && err == nil {
			_ = json.Unmarshal([]byte(n.JSON()), to) // it fits the schema
		}
	}
	var req llm.Request
	var text string
	read(asMessages, &req.Messages)
	read(asRequest, &req)
	read(asText, &text)
	switch last := len(req.Messages) - 1; {
	case !known: // the message was the JSON of it
		object, said := map[string]json.RawMessage{}, []byte{}
		for n := range input.Nodes() {
			said = []byte(n.JSON())
			object[n.Type()] = said
		}
		if len(object) > 1 {
			said, _ = json.Marshal(object) // it was read from JSON
		}
		return []llm.Part{{Text: string(said)}}
	case names[asText] == "" && last >= 0:
		return req.Messages[last].Content
	}
	return []llm.Part{{Text: text}}
}

// maxEarlier bounds the responses whose items a request names.
const maxEarlier = 1000

// earlier finds items of earlier responses, which clients name instead of sending them again.
type earlier struct {
	ctx     context.Context
	backend Backend
	outputs map[string][]item // by response
}

// item returns an item that an earlier response of the caller had in its output.
func (e *earlier) item(id string) (item, error) {
	_, suffix, _ := strings.Cut(id, "_")
	suffix, _, _ = strings.Cut(suffix, "_") // of calls, a number follows
	output, err := e.output("resp_" + suffix)
	if err != nil && !missing(err) {
		return item{}, err
	}
	for _, it := range output {
		if it.ID == id {
			return it, nil
		}
	}
	return item{}, &Error{Status: http.StatusNotFound, Message: "there is no item " + quote(id) + ": it was not stored, or is removed", Type: "invalid_request_error", Code: "not_found", Param: "input"}
}

// output returns the output of a response as a client would send it.
func (e *earlier) output(id string) (items []item, err error) {
	if items, known := e.outputs[id]; known {
		return items, nil
	}
	if len(e.outputs) == maxEarlier {
		return nil, Wrong("input", "invalid_value", "the input names items of more than %d responses: send the items", maxEarlier)
	}
	resp, m, run, err := stored(e.ctx, e.backend, id)
	if err == nil {
		err = resp.end(e.ctx, m, run)
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(resp.Output)
	}
	if err == nil {
		err = json.Unmarshal(text, &items)
	}
	if e.outputs == nil {
		e.outputs = map[string][]item{}
	}
	e.outputs[id] = items
	return items, err
}
