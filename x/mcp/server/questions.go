package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/answers"
	"github.com/stonelayer/stone/serve/api"
)

// answerField is the name of the form field for the answer to a question without a schema.
const answerField = "answer"

// reasonField is the name of the form field for the reason of an answer, such as why a tool call is refused.
const reasonField = "reason"

// inResults reports whether questions are returned to the client as the result of a call, which the client then repeats with the
// answers (since protocol version 2026-07-28).
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
	return can.Form != nil || can.URL == nil // if neither is set, forms are supported, as before URLs were added
}

// requests returns the forms of questions, by path.
func requests(open []api.Question, invalid map[string]string) sdk.InputRequestMap {
	out := sdk.InputRequestMap{}
	for _, q := range open {
		out[q.Path] = form(q, invalid[q.Path])
	}
	return out
}

// form returns the form with which the client asks its user a question.
func form(q api.Question, problem string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Mode: "form", Message: messageOf(q, problem), RequestedSchema: requested(q)}
}

type object = map[string]any

// requested returns the schema of a form: an object whose fields are strings, numbers, booleans or lists of choices.
func requested(q api.Question) json.RawMessage {
	fields := answers.Of(q.Schema).Fields
	if len(fields) == 0 {
		field := answers.Field{Name: answerField, Title: q.Name, Required: true, Type: "string", Choices: q.Choices}
		if len(q.Schema) > 0 {
			field.Description = "JSON of the schema " + string(q.Schema)
		}
		fields = []answers.Field{field}
		switch plain, blanks := choices(q.Choices); {
		case len(blanks) == 0:
		case slices.ContainsFunc(slices.Collect(maps.Keys(blanks)), func(c string) bool { return !slices.Contains(plain, c) }):
			fields[0].Choices, fields[0].Description = nil, "One of: "+strings.Join(q.Choices, ", ")
		default:
			fields[0].Choices = plain
			with := strings.Join(slices.Sorted(maps.Keys(blanks)), " or ")
			fields = append(fields, answers.Field{Name: reasonField, Title: "Reason", Description: "Why, if the answer is " + with + ". It may be empty.", Type: "string"})
		}
	}
	properties, required := []string{}, []string{}
	for _, f := range fields {
		name := cmp.Or(f.Name, answerField)
		if f.Required {
			required = append(required, name)
		}
		properties = append(properties, string(encode(name))+":"+string(encode(plainField(f)))) // in source order
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{%s},"required":%s}`, strings.Join(properties, ","), encode(required))
}

// choices returns the choices without a blank. It also returns a map that contains, for each choice with a blank, the text before
// the blank: for example, "no: " under the key "no".
func choices(all []string) (plain []string, blanks map[string]string) {
	blanks = map[string]string{}
	for _, c := range all {
		if before, blank := ask.Blank(c); blank {
			blanks[strings.TrimRight(before, ": ")] = before
		} else {
			plain = append(plain, c)
		}
	}
	return plain, blanks
}

// encode returns the argument as JSON.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// plainField returns a form field in MCP's format.
func plainField(f answers.Field) object {
	out := object{"type": cmp.Or(f.Type, "string")}
	for name, value := range f.Keywords {
		if name == "format" && !slices.Contains([]string{`"email"`, `"uri"`, `"date"`, `"date-time"`}, string(value)) {
			continue
		}
		out[name] = value
	}
	if f.Type == "" && f.Default != "" {
		out["default"] = f.Default
	}
	if f.Title != "" {
		out["title"] = f.Title
	}
	if f.Kind == "list" {
		f.Description = strings.TrimSpace(f.Description + " One per line.")
	}
	if f.Description != "" {
		out["description"] = f.Description
	}
	if len(f.Choices) > 0 {
		out["enum"] = f.Choices
	}
	return out
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

// response returns the answer in a completed form, or "" if the user cancels the question. If the user has not decided, decided
// is false.
func response(q api.Question, res *sdk.ElicitResult) (text string, decided bool, err error) {
	switch res.Action {
	case "decline":
		return "", true, nil
	case "accept":
		if f := answers.Of(q.Schema); len(f.Fields) > 0 {
			text = f.Response(func(name string) string { return filledIn(res.Content[cmp.Or(name, answerField)]) })
		} else {
			text = filledIn(res.Content[answerField])
			_, blanks := choices(q.Choices)
			if why := strings.TrimSpace(filledIn(res.Content[reasonField])); why != "" && blanks[text] != "" {
				text = blanks[text] + why
			}
		}
		if text == "" {
			return "", false, errors.New("the form is empty")
		}
		return text, true, nil
	}
	return "", false, nil
}

// filledIn returns the value of a field as text.
func filledIn(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any: // from a client that displays lists itself
		var lines []string
		for _, one := range v {
			lines = append(lines, filledIn(one))
		}
		return strings.Join(lines, "\n")
	}
	text, err := json.Marshal(value) // a number or a boolean
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// said holds a user's answers to a run's questions.
type said struct {
	left    bool              // the user left a question open
	refused map[string]string // reasons why answers were not accepted
}

// answerAll answers the open questions of a run whose paths are in the map of responses.
func answerAll(ctx context.Context, c client, run string, open []api.Question, given sdk.InputResponseMap) (s said, err error) {
	s.refused = map[string]string{}
	for _, q := range open {
		if res, ok := given[q.Path].(*sdk.ElicitResult); ok && err == nil {
			err = s.answer(ctx, c, run, q, res)
		}
	}
	return s, err
}

// elicit asks the user of a client that has a session, and records the answers.
func elicit(ctx context.Context, c client, session *sdk.ServerSession, run string, open []api.Question, before said) (s said, err error) {
	s.refused = map[string]string{}
	for _, q := range open {
		res, err := session.Elicit(ctx, form(q, before.refused[q.Path]))
		if err != nil && ctx.Err() == nil { // the client's answer does not match the form
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

// answer answers a question with a completed form.
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
	err = c.Answer(ctx, run, api.Answer{Question: q.Path, Response: text, Cancel: text == "", Version: q.Version})
	var p *api.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Status {
	case http.StatusUnprocessableEntity:
		s.refused[q.Path] = p.Detail
		return nil
	case http.StatusConflict: // someone else has already answered
		return nil
	}
	return err
}
