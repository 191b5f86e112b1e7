package structured

import "strings"

const fence = "```"

// Unfence returns the content of the code block of an answer if the answer has exactly one, otherwise the answer itself, without
// the space around it. Many models put JSON in a code block regardless of instructions. An answer that starts with a bracket is
// data, whose strings may contain code blocks.
func Unfence(answer string) string {
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
