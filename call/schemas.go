package call

import (
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/schema"
)

var builtin = map[string]*schema.Schema{
	terms.AnyRequest:  mustParse(`{}`),
	terms.AnyAnswer:   mustParse(`{}`),
	terms.TextRequest: mustParse(text("prompt", "text", "content")),
	terms.TextAnswer:  mustParse(text("text", "content")),
	// A judge sees the request, the answer and the requirements on it.
	terms.EvalRequest: mustParse(`{
		"type": "object",
		"required": ["intent", "input", "out"],
		"properties": {
			"rubric": {"type": "string", "description": "the criteria of the grade"},
			"intent": {"type": "string", "description": "the intent of the request"},
			"input": {"description": "the input of the request"},
			"out": {"description": "the answer to grade"},
			"done": {
				"type": "object",
				"description": "the requirements on the answer",
				"properties": {
					"must": {"type": "array", "items": {"type": "string"}},
					"should": {"type": "array", "items": {"type": "string"}},
					"score-min": {"type": "number"}
				}
			}
		}
	}`),
	// The schema does not limit the score. A score out of bounds is a missing verdict, which the policy may ignore, rather than a
	// malformed reply.
	terms.EvalAnswer: mustParse(`{
		"type": "object",
		"required": ["score"],
		"properties": {
			"score": {"type": "number", "description": "0 is useless, 1 is perfect"},
			"reasons": {"type": "array", "items": {"type": "string"}}
		}
	}`),
}

// text returns the schema of an object in which one of the given properties contains text.
func text(properties ...string) string {
	s := `{"type": "object", "anyOf": [`
	for i, p := range properties {
		if i > 0 {
			s += ","
		}
		s += `{"required": ["` + p + `"], "properties": {"` + p + `": {"type": "string", "pattern": "\\S"}}}`
	}
	return s + `]}`
}

var evalAnswerID = schemaID(builtin[terms.EvalAnswer])

func mustParse(text string) *schema.Schema {
	s, err := schema.Parse([]byte(text))
	if err != nil {
		panic("call: built-in schema: " + err.Error())
	}
	return s
}

// Schema returns the built-in schema with the given name or, if there is none, the Applicator's schema with that name. For "", it
// returns nil, which accepts any value.
func (app *Applicator) Schema(name string) (s *schema.Schema, ok bool) {
	if name == "" {
		return nil, true
	}
	if s, ok = builtin[name]; ok {
		return s, true
	}
	s, ok = app.Schemas[name]
	return s, ok
}
