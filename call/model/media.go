package model

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
)

// taken returns the media that the schema of a request's input marks, and the input with each media item replaced by a one-line
// placeholder. For a judge, that input is the input of the judged call.
func taken(req *call.Request) (call.JSON, []*llm.Media, error) {
	if req.Intent != terms.Grade && req.Intent != terms.Check {
		input, media, err := structured.Media(req.Input, req.InSchema)
		return input, media, invalid(err)
	}
	var material map[string]json.RawMessage
	if req.InSchema == nil || json.Unmarshal(req.Input, &material) != nil {
		return req.Input, nil, nil
	}
	field := "input"
	if string(material["of"]) == `"input"` { // the judge of an input
		field = "out"
	}
	judged, media, err := structured.Media(material[field], req.InSchema)
	if err != nil || media == nil {
		return req.Input, nil, invalid(err)
	}
	material[field] = judged
	input, err := canon.Append(nil, material)
	return input, media, err
}

func invalid(err error) error {
	if err == nil {
		return nil
	}
	return &call.Error{Type: reasons.InputInvalid, Where: "input", Message: "the media of the input: " + err.Error(), Cause: err}
}

// withoutOnly returns an input without the field of its media item if it has only one. If it has several, withoutOnly returns the
// input unchanged, because the fields tell the model which item is which.
func withoutOnly(input call.JSON, media []*llm.Media) call.JSON {
	var fields map[string]any
	if len(media) != 1 || json.Unmarshal(input, &fields) != nil || len(fields) != 2 {
		return input
	}
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == structured.MediaLine(1, media[0]) })
	if rest, err := canon.Append(nil, fields); err == nil && plain(rest) != string(rest) {
		return rest
	}
	return input
}

// message returns the user's message with the text and the media. If there are several media items, they are numbered.
func message(text string, media []*llm.Media) llm.Message {
	if len(media) <= 1 {
		return llm.User(text, media...)
	}
	m := llm.Message{Role: llm.RoleUser}
	for i, one := range media {
		m.Content = append(m.Content, llm.Part{Text: fmt.Sprintf("Media %d:", i+1)}, llm.Part{Media: one})
	}
	m.Content = append(m.Content, llm.Part{Text: text})
	return m
}
