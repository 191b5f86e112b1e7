package openai

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/stonelayer/stone/llm"
)

// echo determines in which messages a Chat Completions server expects its thinking to be sent back as reasoning_content. By
// default, these are the messages that arrived with reasoning_content: without it, DeepSeek, Moonshot, Qwen and others reject a
// conversation with tools. Older models reject the field, and some expect it in every message of the model, even from another
// server.
type echo struct{ mode atomic.Int32 }

const (
	echoOwn int32 = iota
	echoNone
	echoAll
)

// put adds the field to a message of the model, if the server expects it.
func (e *echo) put(wired object, m llm.Message) {
	reasoning := m.Metadata[reasoningKey]
	switch e.mode.Load() {
	case echoOwn:
		if reasoning != nil {
			wired["reasoning_content"] = reasoning
		}
	case echoAll:
		if wired["reasoning_content"] = reasoning; reasoning == nil {
			wired["reasoning_content"] = ""
		}
	}
}

// learn reports whether a server rejected a request because of the field, and changes what is sent. According to reports, a
// server that expects the field says that it is missing or required; any other rejection means that the field must be omitted.
func (e *echo) learn(err error) bool {
	refused, ok := errors.AsType[*llm.HTTPError](err)
	if !ok || refused.Status != http.StatusBadRequest && refused.Status != http.StatusUnprocessableEntity || !strings.Contains(refused.Body, "reasoning_content") {
		return false
	}
	mode := echoNone
	for _, word := range []string{"missing", "must be passed", "must be provided", "required", "absent", "must contain", "must include"} {
		if strings.Contains(strings.ToLower(refused.Body), word) {
			mode = echoAll
		}
	}
	return e.mode.CompareAndSwap(echoOwn, mode)
}
