package structured

import "strings"

const fence = "```"

// Unfence returns the content of the code block in an answer that has exactly one, and otherwise the answer itself, without
// surrounding white space. Many models put JSON in a code block, whatever they are told. An answer that begins with a brace or
// bracket is returned as it is, because code blocks in it are parts of strings.
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
