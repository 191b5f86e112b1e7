package openai

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// conversation returns the messages of an earlier response, its answer included. The system
// text of an llm.Request is not part of them, as the instructions of OpenAI's own service
// are not; a pipeline that reads messages was given it as one.
func conversation(ctx context.Context, b Backend, id string) ([]llm.Message, error) {
	_, m, run, err := stored(ctx, b, id)
	if err != nil {
		return nil, err
	}
	if run.State != journal.Done {
		return nil, wrong("previous_response_id", "invalid_value", "the response %s has no answer: its run is %s", quote(id), run.State)
	}
	read := func(name string, to any) {
		var content json.RawMessage
		if err == nil {
			content, err = b.Content(ctx, id, name)
		}
		if err == nil {
			err = json.Unmarshal(content, to)
		}
	}
	var said []llm.Message
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
		return result.Conversation, err // with the answer
	case names[asMessages] != "":
		read(names[asMessages], &said)
		if names[asText] != "" {
			var text string
			read(names[asText], &text)
			said = append(said, llm.User(text))
		}
	default:
		return nil, wrong("previous_response_id", "unsupported_parameter", "the model of the response %s is given no conversation: send what it needs as input", quote(id))
	}
	if err != nil {
		return nil, err
	}
	answer, err := m.answer(run)
	if err != nil {
		return nil, err
	}
	return append(said, answer.Message()), nil
}
