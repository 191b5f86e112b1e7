package view

import (
	"encoding/json"

	"github.com/stonelayer/stone/step"
)

// Sent is a request that was sent to a capability.
type Sent struct {
	System string          `json:"system,omitempty"`
	Input  string          `json:"input,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// answer is the record of an invocation; see package call.
type answer struct {
	Asked *Sent `json:"asked"`
	Reply *struct {
		Type string          `json:"type"`
		Out  json.RawMessage `json:"out"`
		Plan []byte          `json:"plan"`
	} `json:"reply"`
}

// SentIn returns the request in a recorded invocation, even if the invocation failed. It returns nil for records of other steps.
func SentIn(rec step.Record) *Sent {
	text := []byte(rec.Content)
	if noted := rec.Meta["answer"]; len(text) == 0 && noted != "" {
		text = []byte(noted)
	}
	var a answer
	if json.Unmarshal(text, &a) != nil {
		return nil
	}
	return a.Asked
}

// OutIn returns the output in the content of a recorded invocation, or nil if there is none.
func OutIn(content []byte) json.RawMessage {
	var a answer
	switch err := json.Unmarshal(content, &a); {
	case err != nil || a.Reply == nil || a.Reply.Type == "":
		return nil
	case len(a.Reply.Plan) > 0:
		text, _ := json.Marshal(string(a.Reply.Plan)) // cannot fail for a string
		return text
	}
	return a.Reply.Out
}
