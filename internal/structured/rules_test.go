package structured_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// rules are what a provider publishes about the schemas that it takes. They are written down from
// the provider's page, not from the code that is tested.
type rules struct {
	source string
	// keywords by the type of the value; every schema may have the keywords under "".
	keywords map[string][]string
	formats  []string
	enums    []string // types of the values that an enum may list; nil is every scalar
	// The keywords of an object.
	allRequired, closed bool
	names               *regexp.Regexp
	// recursion is "yes", "no", or "optional": below a property that is not required.
	recursion                                                   string
	minItems                                                    int // largest, 0 is any
	noPattern                                                   *regexp.Regexp
	depth, properties, values, text, longEnum, optional, unions int
}

var published = map[string]rules{
	"openai": {
		source: "OpenAI, guide Structured model outputs (platform.openai.com/docs/guides/structured-outputs), Supported schemas: " +
			"the root is an object and no anyOf; all fields are required; additionalProperties is false; at most 5000 properties, 10 levels, " +
			"120,000 characters in names and enums, 1000 enum values, 15,000 characters in a string enum of more than 250 values; " +
			"no allOf, not, dependentRequired, dependentSchemas, if, then, else; definitions and recursion are supported; $ref has no siblings",
		keywords: map[string][]string{
			"":        {"type", "description", "enum", "anyOf", "$ref", "$defs"},
			"string":  {"pattern", "format"},
			"number":  {"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"},
			"integer": {"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"},
			"array":   {"items", "minItems", "maxItems"},
			"object":  {"properties", "required", "additionalProperties"},
		},
		formats:     []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
		allRequired: true, closed: true, recursion: "yes",
		depth: 10, properties: 5000, values: 1000, text: 120_000, longEnum: 15_000,
	},
	"anthropic": {
		source: "Anthropic, guide Structured outputs (platform.claude.com/docs/en/build-with-claude/structured-outputs), " +
			"JSON Schema limitations and Schema complexity limits: additionalProperties is false; no recursion; no complex types within enums; " +
			"no external $ref; no minimum, maximum, multipleOf, minLength, maxLength; minItems is 0 or 1; no backreferences, lookaround or \\b; " +
			"24 optional parameters, 16 parameters with anyOf or type arrays",
		keywords: map[string][]string{
			"":       {"type", "description", "title", "default", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "definitions"},
			"string": {"format", "pattern"},
			"array":  {"items", "minItems"},
			"object": {"properties", "required", "additionalProperties"},
		},
		formats: []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
		closed:  true, recursion: "no", minItems: 1,
		names:     regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`),
		noPattern: regexp.MustCompile(`\\[0-9bB]|\(\?|\{\d{3,}|,\d{3,}\}`),
		optional:  24, unions: 16,
	},
	"gemini": {
		source: "Google, Gemini API reference, GenerationConfig.responseJsonSchema (ai.google.dev/api/generate-content): " +
			"$id, $defs, $ref, $anchor, type, format, title, description, enum (for strings and numbers), items, prefixItems, minItems, maxItems, " +
			"minimum, maximum, anyOf, oneOf, properties, additionalProperties, required; cyclic references only within non-required properties; " +
			"beside $ref only names that start with $. Guide Structured outputs: the formats date-time, date and time",
		keywords: map[string][]string{
			"":        {"type", "description", "title", "enum", "anyOf", "oneOf", "$ref", "$defs", "$id", "$anchor"},
			"string":  {"format"},
			"number":  {"minimum", "maximum"},
			"integer": {"minimum", "maximum"},
			"array":   {"items", "prefixItems", "minItems", "maxItems"},
			"object":  {"properties", "required", "additionalProperties"},
		},
		formats: []string{"date-time", "date", "time"}, enums: []string{"string", "number", "integer"},
		recursion: "optional",
	},
}

// inspection is one use of the rules.
type inspection struct {
	rules
	root   map[string]any
	faults []string
	sizes  struct{ properties, values, text, optional, unions int }
}

// inspect returns why a provider refuses a schema.
func (r rules) inspect(schema json.RawMessage) []string {
	i := &inspection{rules: r}
	if err := json.Unmarshal(schema, &i.root); err != nil {
		return []string{err.Error()}
	}
	if i.root["type"] != "object" || i.root["anyOf"] != nil {
		i.fault("", "the root is no object")
	}
	i.schema(i.root, "", 1, []string{"#"}, false)
	for _, name := range slices.Sorted(maps.Keys(object(i.root["$defs"]))) {
		i.sizes.text += len(name)
		i.schema(object(i.root["$defs"])[name], "$defs."+name, 1, []string{"#/$defs/" + name}, false)
	}
	for _, size := range []struct {
		what      string
		have, max int
	}{{"properties", i.sizes.properties, r.properties}, {"enum values", i.sizes.values, r.values}, {"characters", i.sizes.text, r.text},
		{"optional parameters", i.sizes.optional, r.optional}, {"unions", i.sizes.unions, r.unions}} {
		if size.max > 0 && size.have > size.max {
			i.fault("", "%d %s", size.have, size.what)
		}
	}
	return i.faults
}

func object(v any) map[string]any { o, _ := v.(map[string]any); return o }

func (i *inspection) fault(where, format string, args ...any) {
	i.faults = append(i.faults, where+": "+fmt.Sprintf(format, args...))
}

// schema inspects one schema. Open are the references on the way to it, and free tells whether one
// of the properties on the way is optional.
func (i *inspection) schema(node any, where string, depth int, open []string, free bool) {
	o, ok := node.(map[string]any)
	if !ok {
		i.fault(where, "is no object but %v", node)
		return
	}
	if ref, ok := o["$ref"].(string); ok {
		i.reference(o, ref, where, open, free)
		return
	}
	if o["anyOf"] == nil && o["type"] == nil {
		i.fault(where, "has no type")
	}
	types := []string{}
	switch t := o["type"].(type) {
	case string:
		types = append(types, t)
	case []any:
		i.sizes.unions++
		for _, name := range t {
			types = append(types, name.(string))
		}
	}
	if o["anyOf"] != nil {
		i.sizes.unions++
	}
	for keyword := range o {
		known := slices.Contains(i.keywords[""], keyword)
		for _, t := range types {
			known = known || slices.Contains(i.keywords[t], keyword)
		}
		if !known || keyword == "$defs" && where != "" {
			i.fault(where, "%s is not permitted", keyword)
		}
	}
	i.constraints(o, where)
	alternatives, _ := o["anyOf"].([]any)
	for n, below := range alternatives {
		i.schema(below, fmt.Sprintf("%s|%d", where, n), depth, open, free)
	}
	if slices.Contains(types, "array") {
		i.schema(o["items"], where+"[*]", depth, open, free)
	}
	if slices.Contains(types, "object") {
		if i.depth > 0 && depth > i.depth {
			i.fault(where, "is nested %d deep", depth)
		}
		i.object(o, where, depth, open, free)
	}
}

func (i *inspection) constraints(o map[string]any, where string) {
	if f, ok := o["format"].(string); ok && !slices.Contains(i.formats, f) {
		i.fault(where, "%q is not a valid format", f)
	}
	if n, ok := o["minItems"].(float64); ok && i.minItems > 0 && int(n) > i.minItems {
		i.fault(where, "minItems %v", n)
	}
	if p, ok := o["pattern"].(string); ok && i.noPattern != nil && i.noPattern.MatchString(p) {
		i.fault(where, "pattern %s", p)
	}
	values, _ := o["enum"].([]any)
	i.sizes.values += len(values)
	text := 0
	for _, v := range values {
		kind := map[string]string{"string": "string", "float64": "number", "bool": "boolean", "<nil>": "null"}[fmt.Sprintf("%T", v)]
		if kind == "" || i.enums != nil && !slices.Contains(i.enums, kind) {
			i.fault(where, "an enum with %v", v)
		}
		s, _ := v.(string)
		text += len([]rune(s))
	}
	i.sizes.text += text
	if i.longEnum > 0 && len(values) > 250 && text > i.longEnum {
		i.fault(where, "an enum of %d characters", text)
	}
}

func (i *inspection) object(o map[string]any, where string, depth int, open []string, free bool) {
	properties := object(o["properties"])
	required := []string{}
	list, _ := o["required"].([]any)
	for _, name := range list {
		required = append(required, name.(string))
		if properties[name.(string)] == nil {
			i.fault(where, "requires %q, which is no property", name)
		}
	}
	switch rest := o["additionalProperties"].(type) {
	case map[string]any:
		if i.closed {
			i.fault(where, "additionalProperties must be false")
		}
		i.schema(rest, where+"{*}", depth, open, free)
	default:
		if i.closed && rest != false {
			i.fault(where, "additionalProperties must be false")
		}
	}
	i.sizes.properties += len(properties)
	i.sizes.optional += len(properties) - len(required)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		i.sizes.text += len([]rune(name))
		if i.names != nil && !i.names.MatchString(name) {
			i.fault(where, "the property key %q", name)
		}
		optional := !slices.Contains(required, name)
		if optional && i.allRequired {
			i.fault(where, "required must include %q", name)
		}
		i.schema(properties[name], strings.TrimPrefix(where+"."+name, "."), depth+1, open, free || optional)
	}
}

func (i *inspection) reference(o map[string]any, ref, where string, open []string, free bool) {
	if len(o) > 1 {
		i.fault(where, "$ref cannot have other keywords")
	}
	name, isDef := strings.CutPrefix(ref, "#/$defs/")
	target := object(object(i.root["$defs"])[name])
	if ref != "#" && (!isDef || target == nil) {
		i.fault(where, "unresolved reference %q", ref)
		return
	}
	cyclic := slices.Contains(open, ref)
	if cyclic && (i.recursion == "no" || i.recursion == "optional" && !free) {
		i.fault(where, "recursion through %s", ref)
	}
	if !cyclic && ref != "#" && len(open) < 20 {
		faults, sizes := i.faults, i.sizes
		i.schema(target, where, 1, append(open[:len(open):len(open)], ref), free)
		i.faults, i.sizes = append(faults, i.faults[len(faults):]...), sizes // sizes count once, at the definition
	}
}
