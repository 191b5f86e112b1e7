package structured

import "strings"

const fence = "```"

// Unfence returns the content of the code block in an answer with exactly one code block, and otherwise the answer itself. It
// removes surrounding white space. Many models put JSON in a code block even if they are told not to. An answer that begins with a
// brace or bracket is returned as is, because code blocks in it are parts of strings.
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
	if _, body, ok := strings.Cut(inside, "\n"); ok { // the rest of the first line is the language
		inside = body
	}
	return strings.TrimSpace(inside)
}
