// Package unfence extracts the answer of a model from the code block that many models put
// around JSON, even if told not to.
package unfence

import "strings"

const fence = "```"

// Text returns the content of the only code block of an answer, or else the answer
// itself. Surrounding space is removed. An answer that begins with a bracket is data,
// whose strings may contain code blocks of their own.
func Text(answer string) string {
	answer = strings.TrimSpace(answer)
	if strings.HasPrefix(answer, "{") || strings.HasPrefix(answer, "[") {
		return answer
	}
	_, rest, opened := strings.Cut(answer, fence)
	inside, after, closed := strings.Cut(rest, fence)
	if !opened || !closed || strings.Contains(after, fence) {
		return answer
	}
	if _, body, ok := strings.Cut(inside, "\n"); ok { // the first line names the language
		inside = body
	}
	return strings.TrimSpace(inside)
}
