package recipes

import (
	"context"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// Text is a document.
type Text struct {
	Text string `json:"text"`
}

// Facts are the facts in a document, each with the quote that states it.
type Facts struct {
	Facts []Fact `json:"facts"`
}

type Fact struct {
	Claim string `json:"claim"`
	Quote string `json:"quote" jsonschema:"a passage of the document, word by word"`
}

var (
	Document  = dag.NewType[Text]("document")
	Extracted = dag.NewType[Facts]("facts")
	Quoted    = dag.NewType[int]("quoted")
)

// Citations extracts facts from a document. If a quote is not in the document, the answer is rejected, and the model is told
// which quote is wrong.
func Citations(m llm.Model) stone.Ashlar {
	return agent.New("extract", Extracted, m, agent.Config{
		System:    agent.Say("You extract the facts of a document. Quote the passage that states each fact."),
		User:      agent.Prompt(Document, func(d Text) string { return d.Text }),
		Adversary: stone.Func2("quoted", Document, Extracted, Quoted, quoted),
	})
}

// quoted returns the number of facts. It returns an error if a quote is not in the document, ignoring line breaks.
func quoted(_ context.Context, d Text, f Facts) (int, error) {
	text := strings.Join(strings.Fields(d.Text), " ")
	for _, fact := range f.Facts {
		if !strings.Contains(text, strings.Join(strings.Fields(fact.Quote), " ")) {
			return 0, stone.Fail(Unsupported, "the document does not contain the quote %q: copy it word by word, or leave the fact out", fact.Quote)
		}
	}
	return len(f.Facts), nil
}
