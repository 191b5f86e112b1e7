package call

import "github.com/stonelayer/stone/schema"

// Names of schemas that are always there.
const (
	AnyRequest  = "req/any"  // anything
	AnyAnswer   = "res/any"  // anything
	TextRequest = "req/text" // text that is not blank in "prompt", "text" or "content"
	TextAnswer  = "res/text" // text that is not blank in "text" or "content"
	EvalRequest = "req/eval" // what a judge is asked: "rubric", "intent", "input", "out", "done"
	EvalAnswer  = "res/eval" // what a judge says: a "score" within 0..1, and why
)

var builtin = map[string]*schema.Schema{
	AnyRequest:  mustParse(`{}`),
	AnyAnswer:   mustParse(`{}`),
	TextRequest: mustParse(text("prompt", "text", "content")),
	TextAnswer:  mustParse(text("text", "content")),
	// A judge sees what was asked and answered, and what the answer had to be.
	EvalRequest: mustParse(`{
		"type": "object",
		"required": ["intent", "input", "out"],
		"properties": {
			"rubric": {"type": "string", "description": "what it is graded by"},
			"intent": {"type": "string", "description": "what was wanted"},
			"input": {"description": "what it was wanted for"},
			"out": {"description": "what was answered, which is to be graded"},
			"done": {
				"type": "object",
				"description": "what the answer has to be",
				"properties": {
					"must": {"type": "array", "items": {"type": "string"}},
					"should": {"type": "array", "items": {"type": "string"}},
					"score-min": {"type": "number"}
				}
			}
		}
	}`),
	// The bounds of the score are not in the schema: one beyond them is a judge
	// without a verdict, which the policy may ignore, and no malformed reply.
	EvalAnswer: mustParse(`{
		"type": "object",
		"required": ["score"],
		"properties": {
			"score": {"type": "number", "description": "0 is useless, 1 is perfect"},
			"reasons": {"type": "array", "items": {"type": "string"}}
		}
	}`),
}

// text is the schema of an object that has text in one of the properties.
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

func mustParse(text string) *schema.Schema {
	s, err := schema.Parse([]byte(text))
	if err != nil {
		panic("call: built-in schema: " + err.Error())
	}
	return s
}

// Schema returns the schema of a name: one of the Applicator, or a built-in one.
// "" is any.
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
