package structured

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// An Offer is a tool in a form that a provider accepts.
type Offer struct {
	Description string
	Schema      json.RawMessage
	// Strict means that the provider can enforce the schema without changing its meaning.
	Strict bool
}

// toolDialect is the subset of JSON Schema that a provider accepts in tool schemas.
type toolDialect struct {
	loose  schema.Subset
	strict *schema.Subset // nil if the provider enforces nothing
	// Limits on all strict tools in a request together. Zero means unlimited.
	maxStrict, maxOptional, maxUnions int

	mu    sync.Mutex
	known map[string]projected // projected schemas, by text of the schema
}

// projected is a schema that was projected onto the dialect.
type projected struct {
	loose, strict    json.RawMessage // strict is nil if the schema cannot be enforced
	told             string
	optional, unions int // numbers of optional properties and unions in strict
}

// maxKnown is the maximum number of projected schemas to keep.
const maxKnown = 4096

// exactly returns the subset in which a projection does not change the meaning of a schema.
func exactly(s schema.Subset) *schema.Subset {
	s.Exact, s.Encode = true, false
	return &s
}

// looseKeywords reports whether OpenAI and Anthropic accept a constraint or annotation in tools that are not strict. A pattern
// that is not simple might be refused as an invalid regular expression.
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

// Tools returns tools in a form that the provider accepts. Alternatives at the top level of a schema are merged into properties.
// Keywords that the provider does not support are omitted, and the description mentions them instead. The caller must check the
// arguments against the original schema of the tool. If enforce is true, a tool is strict if the provider can enforce its exact
// schema.
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

// project projects the schema of a tool, or returns the cached result.
func (t *toolDialect) project(text json.RawMessage) projected {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.known[string(text)]
	if ok {
		return p
	}
	if len(text) == 0 { // the tool has no arguments
		text = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var err error
	if p.loose, p.told, err = t.loose.Loose(text); err != nil {
		p.loose = json.RawMessage(`{"type":"object","properties":{}}`) // the arguments are checked before the tool runs
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
