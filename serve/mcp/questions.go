package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/serve/api"
)

// answerField is the field of a form with the answer to a question that is not a form.
const answerField = "answer"

// inResults reports whether a client is asked in the result of a call, which it sends again
// with the answers: since protocol version 2026-07-28.
func inResults(session *sdk.ServerSession) bool {
	params := session.InitializeParams()
	return params != nil && params.ProtocolVersion >= "2026-07-28"
}

// elicits reports whether the client can show a form to its user.
func elicits(session *sdk.ServerSession) bool {
	params := session.InitializeParams()
	if params == nil || params.Capabilities == nil || params.Capabilities.Elicitation == nil {
		return false
	}
	can := params.Capabilities.Elicitation
	return can.Form != nil || can.URL == nil // neither means forms, as before there were URLs
}

// requests are the forms of questions, by their paths.
func requests(open []api.Question, invalid map[string]string) sdk.InputRequestMap {
	out := sdk.InputRequestMap{}
	for _, q := range open {
		out[q.Path] = form(q, invalid[q.Path])
	}
	return out
}

// form is a question as a form.
func form(q api.Question, problem string) *sdk.ElicitParams {
	schema := q.Schema
	if !flat(schema) {
		field := map[string]any{"type": "string", "title": q.Name}
		if len(q.Choices) > 0 {
			field["enum"] = q.Choices
		}
		if len(q.Schema) > 0 {
			field["description"] = "JSON of the schema " + string(q.Schema)
		}
		schema, _ = json.Marshal(map[string]any{"type": "object", "properties": map[string]any{answerField: field}, "required": []string{answerField}}) // of text alone
	}
	return &sdk.ElicitParams{Mode: "form", Message: messageOf(q, problem), RequestedSchema: schema}
}

func messageOf(q api.Question, problem string) string {
	if problem == "" {
		problem = q.Problem
	}
	if problem == "" {
		return q.Text
	}
	return fmt.Sprintf("%s\n\nThe previous answer was not accepted: %s", q.Text, problem)
}

// flat reports whether a schema is an object of plain fields, which is all that a form
// may be.
func flat(schema json.RawMessage) bool {
	var s struct {
		Type       string `json:"type"`
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil || s.Type != "object" || len(s.Properties) == 0 || bytes.Contains(schema, []byte(`"$ref"`)) {
		return false
	}
	for _, p := range s.Properties {
		switch p.Type {
		case "string", "number", "integer", "boolean":
		default:
			return false
		}
	}
	return true
}

// response is the answer in a form that a user has filled in, or the empty one that
// cancels the question. Decided is false if the user has decided nothing.
func response(q api.Question, res *sdk.ElicitResult) (text string, decided bool, err error) {
	switch res.Action {
	case "decline":
		return "", true, nil
	case "accept":
		if flat(q.Schema) {
			data, err := json.Marshal(res.Content)
			return string(data), true, err
		}
		text, ok := res.Content[answerField].(string)
		if !ok {
			return "", false, fmt.Errorf("the form has no text %q", answerField)
		}
		return text, true, nil
	}
	return "", false, nil
}

// said is what a user has said to the questions of a run.
type said struct {
	left    bool              // nothing to one of them
	refused map[string]string // why what was said to a question was not accepted
}

// answers answers those open questions of a run that responses were given to, by paths.
func answers(ctx context.Context, c client, run string, open []api.Question, given sdk.InputResponseMap) (s said, err error) {
	s.refused = map[string]string{}
	for _, q := range open {
		if res, ok := given[q.Path].(*sdk.ElicitResult); ok && err == nil {
			err = s.answer(ctx, c, run, q, res)
		}
	}
	return s, err
}

// elicit asks the user of a client with a session.
func elicit(ctx context.Context, c client, session *sdk.ServerSession, run string, open []api.Question, before said) (s said, err error) {
	s.refused = map[string]string{}
	for _, q := range open {
		res, err := session.Elicit(ctx, form(q, before.refused[q.Path]))
		if err != nil && ctx.Err() == nil { // what the client has sent does not fit the form
			s.refused[q.Path] = err.Error()
			continue
		}
		if err == nil {
			err = s.answer(ctx, c, run, q, res)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// answer answers a question with what a user has filled in.
func (s *said) answer(ctx context.Context, c client, run string, q api.Question, res *sdk.ElicitResult) error {
	text, decided, err := response(q, res)
	switch {
	case err != nil:
		s.refused[q.Path] = err.Error()
		return nil
	case !decided:
		s.left = true
		return nil
	}
	err = c.answer(ctx, run, api.Answer{Question: q.Path, Response: text, Version: q.Version})
	var p *api.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Status {
	case http.StatusUnprocessableEntity:
		s.refused[q.Path] = p.Detail
		return nil
	case http.StatusConflict: // someone else has answered
		return nil
	}
	return err
}
