package recipes

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// A Passage is a part of a source.
type Passage struct {
	Source string `json:"source"`
	Text   string `json:"text"`
}

// Sourced is an answer with the numbers, from 1, of the passages that support it.
type Sourced struct {
	Answer  string `json:"answer" jsonschema:"with [1] behind what passage 1 states; say so if no passage answers"`
	Sources []int  `json:"sources"`
}

var (
	Question  = dag.NewType[string]("question")
	Retrieved = dag.NewType[[]Passage]("passages")
	Answered  = dag.NewType[Sourced]("answer")
	Cited     = dag.NewType[int]("cited")
)

// RAG answers a question from the Markdown files below the current directory, and cites its sources.
func RAG(m llm.Model) stone.Ashlar {
	return stone.Seq("rag",
		stone.Func("retrieve", Question, Retrieved, func(_ context.Context, q string) ([]Passage, error) {
			return retrieve(os.DirFS("."), q, 5)
		}),
		answer(m),
	)
}

// answer answers from the passages. The answer is rejected if it cites a passage that the model was not given.
func answer(m llm.Model) stone.Ashlar {
	return agent.New("answer", Answered, m, agent.Config{
		System: agent.Say("You answer from the passages alone, and cite them."),
		User: dag.Derive2(Question, Retrieved, func(q string, passages []Passage) string {
			var text strings.Builder
			for i, p := range passages {
				fmt.Fprintf(&text, "[%d] %s\n%s\n\n", i+1, p.Source, p.Text)
			}
			return text.String() + q
		}),
		Adversary: stone.Func2("cited", Retrieved, Answered, Cited, func(_ context.Context, passages []Passage, a Sourced) (int, error) {
			for _, n := range a.Sources {
				if n < 1 || n > len(passages) || !strings.Contains(a.Answer, fmt.Sprintf("[%d]", n)) {
					return 0, stone.Fail(Unsupported, "source %d is not cited as [%d], or there is no such passage: there are %d", n, n, len(passages))
				}
			}
			return len(a.Sources), nil
		}),
	})
}

// retrieve returns the paragraphs that have the most words in common with a question. Replace it by a search in your index.
func retrieve(files fs.FS, question string, most int) (found []Passage, err error) {
	words := strings.FieldsFunc(strings.ToLower(question), notLetter)
	score := map[Passage]int{}
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := fs.ReadFile(files, path)
		for _, paragraph := range strings.Split(string(text), "\n\n") {
			has := strings.FieldsFunc(strings.ToLower(paragraph), notLetter)
			p := Passage{path, strings.TrimSpace(paragraph)}
			for _, w := range words {
				if len(w) > 3 && slices.Contains(has, w) {
					score[p]++
				}
			}
			if score[p] > 0 {
				found = append(found, p)
			}
		}
		return err
	})
	slices.SortStableFunc(found, func(a, b Passage) int { return cmp.Compare(score[b], score[a]) })
	return found[:min(most, len(found))], err
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
