package structured

import (
	"encoding/json"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// A Dialect is the subset of JSON Schema that a provider enforces in answers and accepts in tools. Of 1,000 generated types,
// OpenAI and Anthropic can enforce 991, and Gemini all of them (TestProviders). Without projection they can enforce 819, 591 and
// 912, respectively.
type Dialect struct{ subset schema.Subset }

// OpenAI is the dialect of strict structured outputs in Chat Completions and Responses. Source: OpenAI, guide "Structured model
// outputs", section "Supported schemas".
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

// Anthropic is the dialect of output_config.format in Messages. Source: Anthropic, guide "Structured outputs", sections "JSON
// Schema limitations" and "Schema complexity limits". Property names are limited as in tool schemas.
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

// formats are the string formats that both OpenAI and Anthropic support.
var formats = []any{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// maxRepeat is the maximum repetition count in a pattern. Anthropic refuses "large ranges", but does not say how large.
const maxRepeat = 100

// simple reports whether a pattern uses only features that the providers' engines are documented to support: no assertions other
// than ^ and $, no references, and no classes other than \d, \w and \s.
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

// Schema returns the JSON of a format's schema, in the form that the provider enforces. It returns nil if the provider cannot
// enforce the format, and for a nil format.
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

// System returns the system text for a request with the given response format. The text describes the schema to the model, unless
// there is no format, or the provider enforces the format and describes it to the model itself.
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
