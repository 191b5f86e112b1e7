package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// conversation returns the messages of the request for an earlier response, followed by its answer.
func conversation(ctx context.Context, b Backend, id string) ([]llm.Message, error) {
	_, m, run, err := stored(ctx, b, id)
	if err != nil {
		return nil, err
	}
	if run.State != journal.Done {
		return nil, Wrong("previous_response_id", "invalid_value", "the response %s has no answer: its run is %s", quote(id), run.State)
	}
	said, ok, err := m.Conversation(ctx, b.Journal(), run)
	if err == nil && !ok {
		err = Wrong("previous_response_id", "unsupported_parameter", "the model of the response %s is given no conversation: send what it needs as input", quote(id))
	}
	return said, err
}

// maxEarlier is the maximum number of earlier responses to whose items a request may refer.
const maxEarlier = 1000

// earlier finds items of earlier responses. Clients refer to such items instead of sending them again.
type earlier struct {
	ctx     context.Context
	backend Backend
	outputs map[string][]item // output items by response
}

// item returns an item from the output of the caller's earlier response.
func (e *earlier) item(id string) (item, error) {
	_, suffix, _ := strings.Cut(id, "_")
	suffix, _, _ = strings.Cut(suffix, "_") // in ids of calls, a number follows
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

// output returns the output of a response in the form in which a client would send it back.
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
