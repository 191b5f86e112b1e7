package openai

import (
	"encoding/json"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/llm"
)

// str returns the value of a JSON string.
func str(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	s, err := jsonv2.AppendUnquote(nil, raw)
	return string(s), err == nil
}

// whole returns a number of tokens as an int, because some servers write it as a fraction.
func whole(f *float64) *int {
	if f == nil {
		return nil
	}
	n := int(*f)
	return &n
}

// failure converts a provider's error to a Go error. The provider's error is an object or a string in "error", the object itself,
// or plain text.
func failure(data []byte, requestID string) *llm.ProviderError {
	e := &llm.ProviderError{Message: string(data), RequestID: requestID}
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	inner := json.RawMessage(data)
	if json.Unmarshal(data, &outer) == nil && len(outer.Error) > 0 && string(outer.Error) != "null" {
		inner = outer.Error
	}
	if s, ok := str(inner); ok {
		e.Message = s
		return e
	}
	var v struct {
		Message, Detail, Type, Code json.RawMessage
	}
	if json.Unmarshal(inner, &v) != nil {
		return e
	}
	if len(v.Message) == 0 {
		v.Message = v.Detail
	}
	if len(v.Message) > 0 {
		e.Message = display(v.Message)
	}
	e.Type, e.Code = display(v.Type), display(v.Code)
	return e
}

// display returns the value of a string, or "" for null, and any other value as JSON.
func display(raw json.RawMessage) string {
	if s, ok := str(raw); ok {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}
