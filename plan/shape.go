package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/schema"
)

// This file writes schemas in a short form, and the EDN of messages as JSON.

// typed returns before, followed by the short form of s. It returns "" if s is nil or allows any value.
func typed(before string, s *schema.Schema) string {
	if s == nil || s.String() == "{}" || s.String() == "true" {
		return ""
	}
	var data map[string]any
	if json.Unmarshal(s.JSON(), &data) != nil {
		return ""
	}
	text := shape(data, 3)
	if len(text) > mostShape {
		text = shape(data, 1)
	}
	return before + text
}

// mostShape is the maximum length, in bytes, of a schema's short form with three levels.
const mostShape = 400

// shape returns a schema in a short form for people and models, such as {"text":string,"tags"?:[string]}.
func shape(s any, depth int) string {
	data, _ := s.(map[string]any)
	if values, ok := data["enum"].([]any); ok {
		text, _ := json.Marshal(values)
		return "one of " + string(text)
	}
	properties, _ := data["properties"].(map[string]any)
	items, isList := data["items"]
	switch {
	case depth == 0:
	case len(properties) > 0:
		required, _ := data["required"].([]any)
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			key, _ := json.Marshal(name)
			if !slices.Contains(required, any(name)) {
				key = append(key, '?')
			}
			part := string(key) + ":" + shape(properties[name], depth-1)
			if of, ok := properties[name].(map[string]any); ok {
				if about, ok := of["description"].(string); ok && depth > 1 && len(about) < 80 {
					part += " (" + about + ")"
				}
			}
			parts = append(parts, part)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case isList:
		return "[" + shape(items, depth-1) + "]"
	}
	switch typ := data["type"].(type) {
	case string:
		return typ
	case []any:
		return strings.Trim(fmt.Sprint(typ...), "[]")
	}
	if _, ok := data["anyOf"]; ok {
		return "any of several"
	}
	return "any"
}

// inJSON returns text with the EDN in it replaced by JSON: {:present? :x} by {"present?":"x"}, and :x by "x". It keeps ellipses.
func inJSON(text string) string {
	var b strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "{:[")
		if i < 0 {
			break
		}
		b.WriteString(text[:i])
		text = text[i:]
		n := 0
		switch word := keyword.FindString(text); {
		case strings.HasPrefix(text, "{:"), strings.HasPrefix(text, "[\""), strings.HasPrefix(text, "[:"):
			n = formEnd(text)
		case word != "" && (b.Len() == 0 || strings.HasSuffix(b.String(), " ")):
			n = len(word)
		}
		if n == 0 {
			n = 1
			b.WriteString(text[:n])
		} else {
			writeJSON(&b, text[:n])
		}
		text = text[n:]
	}
	return b.String() + text
}

var (
	keyword = regexp.MustCompile(`^:[a-z][\w?/-]*`)
	tokens  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|:[\w?/.-]+|[{}\[\]]|#\{|[^\s{}\[\],]+`)
)

// writeJSON writes form, which is EDN, as JSON.
func writeJSON(b *strings.Builder, form string) {
	type level struct {
		isMap bool
		n     int
	}
	var levels []level
	for _, token := range tokens.FindAllString(form, -1) {
		if closes := token == "}" || token == "]"; closes {
			if top := levels[len(levels)-1]; !top.isMap && token == "}" {
				token = "]" // the end of a set
			}
			levels = levels[:len(levels)-1]
			b.WriteString(token)
			continue
		}
		if len(levels) > 0 {
			top := &levels[len(levels)-1]
			switch {
			case top.isMap && top.n%2 == 1:
				b.WriteByte(':')
			case top.n > 0:
				b.WriteByte(',')
			}
			top.n++
		}
		switch {
		case token == "{" || token == "[" || token == "#{":
			levels = append(levels, level{isMap: token == "{"})
			b.WriteString(strings.Replace(token, "#{", "[", 1))
		case token[0] == ':' && len(token) > 1:
			b.WriteString(strconv.Quote(token[1:]))
		default:
			b.WriteString(token)
		}
	}
}

// formEnd returns the length of the bracketed form at the start of text, or 0 if the form is not complete.
func formEnd(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
