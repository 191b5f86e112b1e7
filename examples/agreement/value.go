package agreement

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

var (
	field = regexp.MustCompile(`"answer"\s*:\s*`) // key of an object that may be cut off
	token = regexp.MustCompile(`(?s)'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\w.+-]+|\S`)
	plain = regexp.MustCompile(`^([-+.\d][\w.+-]*|True|False|None|set|true|false|null|[][(){},:])$`)
	quote = strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `\"`, `\"`, `"`, `\"`, "\n", `\n`) // converts Python's quotes to Go's
)

// value returns the last answer in a model's text, in a form that can be compared.
func value(text string) (string, error) {
	at := field.FindAllStringIndex(text, -1)
	if at == nil {
		return "", errors.New("the text has no object with an answer")
	}
	rest := text[at[len(at)-1][1]:]
	var found any
	switch err := json.NewDecoder(strings.NewReader(rest)).Decode(&found); said := found.(type) {
	case string:
		return literal(said), nil
	default:
		if data, failed := json.Marshal(said); err == nil && failed == nil {
			return literal(string(data)), nil
		}
		return literal(strings.Trim(rest, "}`\n \"")), nil
	}
}

// literal normalises the spaces and quotes of a Python literal. Any other text is treated as a string, because models often omit
// the quotes.
func literal(text string) string {
	parts := token.FindAllString(text, -1)
	for i, p := range parts {
		if len(p) > 1 && (p[0] == '\'' || p[0] == '"') {
			if s, err := strconv.Unquote(`"` + quote.Replace(p[1:len(p)-1]) + `"`); err == nil && len(parts) == 1 {
				return s
			} else if err == nil {
				parts[i] = strconv.Quote(s)
			}
		} else if !plain.MatchString(p) {
			return strings.TrimSpace(text)
		}
	}
	return strings.Join(parts, " ")
}
