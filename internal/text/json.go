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
