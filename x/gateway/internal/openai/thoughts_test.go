package openai

import (
	"testing"

	"github.com/stonelayer/stone/llm"
)

// A turn is the model's also where its client got the text of a code block.
func TestSameTurn(t *testing.T) {
	said := llm.Message{Role: llm.RoleAssistant, Content: []llm.Part{{Text: "Here it is:\n```json\n{\"n\":1}\n```\n"}}}
	for text, want := range map[string]bool{said.Text(): true, `{"n":1}`: true, `{"n":2}`: false, "Here it is:": false} {
		if got := sameTurn(llm.Message{Role: llm.RoleAssistant, Content: []llm.Part{{Text: text}}}, said); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
