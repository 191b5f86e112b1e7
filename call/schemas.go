package call

import "github.com/stonelayer/stone/schema"

// Names of built-in schemas.
const (
	AnyRequest  = "req/any"  // anything
	AnyAnswer   = "res/any"  // anything
	TextRequest = "req/text" // an object with text that is not blank in "prompt", "text" or "content"
	TextAnswer  = "res/text" // an object with text that is not blank in "text" or "content"
	EvalRequest = "req/eval" // the input of a judge: "rubric", "intent", "input", "out", "done"
	EvalAnswer  = "res/eval" // the answer of a judge: a "score" within 0..1, and "reasons"
)

var builtin = map[string]*schema.Schema{
	AnyRequest:  mustParse(`{}`),
	AnyAnswer:   mustParse(`{}`),
	TextRequest: mustParse(text("prompt", "text", "content")),
	TextAnswer:  mustParse(text("text", "content")),
	// A judge sees the request, the answer and the requirements on it.
	EvalRequest: mustParse(`{
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
	// The schema does not bound the score. A score out of bounds is no verdict, which the
	// policy may ignore; it is not a malformed reply.
	EvalAnswer: mustParse(`{
		"type": "object",
		"required": ["score"],
		"properties": {
			"score": {"type": "number", "description": "0 is useless, 1 is perfect"},
			"reasons": {"type": "array", "items": {"type": "string"}}
		}
	}`),
}

// text returns the schema of an object that has text in one of the properties.
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

var evalAnswerID = schemaID(builtin[EvalAnswer])

func mustParse(text string) *schema.Schema {
	s, err := schema.Parse([]byte(text))
	if err != nil {
		panic("call: built-in schema: " + err.Error())
	}
	return s
}

// Schema returns the built-in schema of a name, or else the one of the Applicator. For ""
// it returns nil, which accepts anything.
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
