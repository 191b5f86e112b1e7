package page

import (
	"encoding/json"
	"html/template"
	"regexp"
	"strings"
)

// jsonToken matches the tokens of JSON that have a color: a text, perhaps a key, and a word or number.
var jsonToken = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(\s*:)?|-?\b(?:true|false|null|[0-9][0-9.eE+-]*)\b`)

// colored shows a content: JSON with its keys, texts and numbers told apart, anything else as it stands.
func colored(content string) template.HTML {
	if !strings.ContainsAny(content[:min(len(content), 1)], "{[") || !json.Valid([]byte(content)) {
		return template.HTML(template.HTMLEscapeString(content))
	}
	var out strings.Builder
	last := 0
	for _, at := range jsonToken.FindAllStringSubmatchIndex(content, -1) {
		out.WriteString(content[last:at[0]]) // punctuation and blanks
		tag, token := "i", content[at[0]:at[1]]
		switch {
		case at[2] >= 0:
			tag = "b"
		case token[0] == '"':
			tag = "q"
		}
		out.WriteString("<" + tag + ">" + template.HTMLEscapeString(token) + "</" + tag + ">")
		last = at[1]
	}
	out.WriteString(template.HTMLEscapeString(content[last:]))
	return template.HTML("<span class=\"json\">" + out.String() + "</span>")
}
