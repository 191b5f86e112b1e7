package structured

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// An Offer is a tool in the form that a provider accepts.
type Offer struct {
	Description string
	Schema      json.RawMessage
	// Strict means that the provider can enforce the schema without changing its meaning.
	Strict bool
}

// toolDialect is the part of JSON Schema that a provider accepts in the schemas of tools.
type toolDialect struct {
	loose  schema.Subset
	strict *schema.Subset // nil: the provider enforces nothing
	// The limits of all strict tools of a request. Zero means unlimited.
	maxStrict, maxOptional, maxUnions int

	mu    sync.Mutex
	known map[string]projected // by the text of the schema
}

// projected is a schema in the dialect.
type projected struct {
	loose, strict    json.RawMessage // strict is nil if the schema cannot be enforced
	told             string
	optional, unions int // of strict
}

// maxKnown is the maximum number of projected schemas kept.
const maxKnown = 4096

// exactly is the subset for schemas that keep their meaning.
func exactly(s schema.Subset) *schema.Subset {
	s.Exact, s.Encode = true, false
	return &s
}

// looseKeywords are the constraints and annotations that OpenAI and Anthropic accept in tools that are not strict. Patterns that
// are not simple may be refused as invalid regular expressions.
func looseKeywords(keyword string, value any) bool {
	return keyword != "pattern" || simple(value)
}

var openAITools = &toolDialect{
	// Source: the API's error "schema must have type 'object' and not have
	// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", and "array schema missing items".
	loose:  schema.Subset{Cycles: "all", Accepts: looseKeywords},
	strict: exactly(OpenAI.subset),
}

var anthropicTools = &toolDialect{
	// Source: the API's errors "input_schema does not support oneOf, allOf, or anyOf at the top level"
	// and "property keys should match pattern"; the schema must be one of draft 2020-12.
	loose:  schema.Subset{Cycles: "all", Name: anthropicName.MatchString, Accepts: looseKeywords},
	strict: exactly(Anthropic.subset),
	// Source: guide "Structured outputs", section "Schema complexity limits".
	maxStrict: 20, maxOptional: 24, maxUnions: 16,
}

var anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

var geminiTools = &toolDialect{
	// Source: Gemini API reference, "GenerationConfig", field responseJsonSchema, whose keywords
	// also apply to parametersJsonSchema of a FunctionDeclaration.
	loose: schema.Subset{Cycles: "optional", Accepts: func(keyword string, value any) bool {
		return keyword == "title" || keyword == "prefixItems" || Gemini.subset.Accepts(keyword, value) && (keyword != "enum" || value != nil)
	}},
}

var toolDialects = map[*Dialect]*toolDialect{OpenAI: openAITools, Anthropic: anthropicTools, Gemini: geminiTools}

// Tools returns tools in the form that the provider accepts. Alternatives at the top of a schema are folded into properties, and
// keywords that the provider lacks are left out and described in the description instead. The caller checks the arguments against
// the schema of the tool. If enforce is true, the tools are strict where the provider can enforce exactly their schema.
func (d *Dialect) Tools(list []llm.Tool, enforce bool) []Offer {
	out := make([]Offer, len(list))
	strict, optional, unions := 0, 0, 0
	t := toolDialects[d]
	for i := range list {
		p := t.project(list[i].Schema)
		o := Offer{Description: strings.TrimSpace(list[i].Description + " " + p.told), Schema: p.loose}
		fits := (t.maxStrict == 0 || strict < t.maxStrict) && (t.maxOptional == 0 || optional+p.optional <= t.maxOptional) &&
			(t.maxUnions == 0 || unions+p.unions <= t.maxUnions)
		if enforce && p.strict != nil && fits {
			o.Schema, o.Strict = p.strict, true
			strict, optional, unions = strict+1, optional+p.optional, unions+p.unions
		}
		out[i] = o
	}
	return out
}

// project projects the schema of a tool, once.
func (t *toolDialect) project(text json.RawMessage) projected {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.known[string(text)]
	if ok {
		return p
	}
	if len(text) == 0 { // a tool without arguments
		text = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var err error
	if p.loose, p.told, err = t.loose.Loose(text); err != nil {
		p.loose = json.RawMessage(`{"type":"object","properties":{}}`) // whoever runs the tool checks its arguments
	}
	if t.strict != nil {
		if enforced, err := t.strict.Project(text); err == nil {
			size := schema.SizeOf(enforced)
			p.strict, p.optional, p.unions = enforced, size.Optional, size.Unions
		}
	}
	if t.known == nil || len(t.known) >= maxKnown {
		t.known = map[string]projected{}
	}
	t.known[string(text)] = p
	return p
}
