package structured

import (
	"encoding/json"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// A Dialect is the part of JSON Schema that a provider enforces on answers and accepts in tools. Of 1,000 generated types, OpenAI
// and Anthropic enforce 991 and Gemini all (TestProviders). Without projection they enforce 819, 591 and 912.
type Dialect struct{ subset schema.Subset }

// OpenAI is the dialect of strict structured outputs, in Chat Completions and Responses. Source:
// OpenAI, guide "Structured model outputs", section "Supported schemas".
var OpenAI = &Dialect{schema.Subset{
	AllRequired: true,
	Encode:      true,
	Cycles:      "all",
	Max:         schema.SubsetLimits{Depth: 10, Properties: 5000, Values: 1000, Text: 120_000, LongEnum: 15_000},
	Accepts: func(keyword string, value any) bool {
		switch keyword {
		case "pattern":
			return simple(value)
		case "format":
			return slices.Contains(formats, value)
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "enum":
			return true
		}
		return false
	},
}}

// Anthropic is the dialect of output_config.format in Messages. Source: Anthropic, guide
// "Structured outputs", sections "JSON Schema limitations" and "Schema complexity limits". The
// names of properties are limited as in the schemas of tools.
var Anthropic = &Dialect{schema.Subset{
	Encode: true,
	Name:   anthropicName.MatchString,
	Max:    schema.SubsetLimits{Optional: 24, Unions: 16},
	Accepts: func(keyword string, value any) bool {
		switch keyword {
		case "pattern":
			return simple(value)
		case "format":
			return value == "uri" || slices.Contains(formats, value)
		case "minItems":
			return value == json.Number("0") || value == json.Number("1")
		}
		return keyword == "enum"
	},
}}

// Gemini is the dialect of responseJsonSchema in generateContent. Source: Google, Gemini API
// reference, "GenerationConfig", field responseJsonSchema.
var Gemini = &Dialect{schema.Subset{
	Maps:   true,
	Encode: true,
	Cycles: "optional",
	Accepts: func(keyword string, value any) bool {
		switch keyword {
		case "format":
			return value == "date-time" || value == "date" || value == "time"
		case "enum":
			_, isBool := value.(bool)
			return !isBool && value != ""
		}
		return keyword == "minimum" || keyword == "maximum" || keyword == "minItems" || keyword == "maxItems"
	},
}}

// formats are the formats of strings that OpenAI and Anthropic both know.
var formats = []any{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// maxRepeat is the maximum count in a pattern: Anthropic refuses "large ranges" without a number.
const maxRepeat = 100

// simple reports whether a pattern uses only features that the providers' engines are documented to support: no assertions other
// than ^ and $, no references, and no classes but \d, \w and \s.
func simple(pattern any) bool {
	text, _ := pattern.(string)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil || strings.Contains(text, "(?") {
		return false
	}
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			if i++; i < len(text) && !strings.ContainsRune("dws", rune(text[i])) && isWord(text[i]) {
				return false
			}
		}
	}
	return repeats(parsed)
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}

func repeats(r *syntax.Regexp) bool {
	return r.Min <= maxRepeat && r.Max <= maxRepeat && !slices.ContainsFunc(r.Sub, func(below *syntax.Regexp) bool { return !repeats(below) })
}

// Schema returns the schema of a format as the provider enforces it, in JSON. It returns nil if the
// provider cannot enforce it, and for a nil format.
func (d *Dialect) Schema(f *llm.Format) json.RawMessage {
	if f == nil {
		return nil
	}
	projected, err := d.subset.Project(f.Schema)
	if err != nil {
		return nil
	}
	return projected
}

// System returns the system text of a request with this response format. It describes the schema to the model, unless there is no
// format, or the provider enforces the format and describes it itself.
func System(text string, f *llm.Format, enforced bool) string {
	if enforced || f == nil {
		return text
	}
	tell := "Your final answer is JSON that fits this schema, and nothing else:\n" + string(f.Schema)
	if text == "" {
		return tell
	}
	return text + "\n\n" + tell
}
