package text

import (
	"bytes"
	"encoding/json"
)

// JSON returns JSON as people read it: a string without its quotes, and anything else indented, with
// all its digits. What is no JSON stays as it is.
func JSON(content string) string {
	var words string
	if json.Unmarshal([]byte(content), &words) == nil {
		return words
	}
	var out bytes.Buffer
	if json.Indent(&out, []byte(content), "", "  ") != nil {
		return content
	}
	return out.String()
}

// Content shows the JSON of a content in one line of at most n columns. Of an object with one member it shows
// the value.
func Content(content []byte, n int) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(content, &members) == nil && len(members) == 1 {
		for _, only := range members {
			content = only
		}
	}
	return Cut(Line(JSON(string(content))), n)
}
