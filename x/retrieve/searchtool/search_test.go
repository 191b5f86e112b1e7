package searchtool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	journals "github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/searchtool"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

type reply struct {
	Text string `json:"text"`
}

var asked, answered = dag.NewType[string]("asked"), dag.NewType[reply]("answered")

func Example() {
	store, err := sqlite.Open("docs.db")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	index := &retrieve.Index{Store: store, Embedder: openai.NewEmbedder(openai.Config{Model: "text-embedding-3-small"})}
	support := agent.New("support", answered, openai.New(openai.Config{Model: "gpt-5-mini"}), agent.Config{
		System: agent.Say("You answer questions from the documents, and name the source of each claim."),
		User:   agent.Prompt(asked, func(q string) string { return q }),
		Use:    []agent.Middleware{searchtool.Tool(index, retrieve.Query{Under: "guide"})},
	})
	fmt.Println(support.Name())
}

// An agent searches, gets passages with their sources, and its run pays for the vector of the question, once.
func TestAgentSearches(t *testing.T) {
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e := new(script.Embedder)
	x := &retrieve.Index{Store: store, Embedder: e}
	files := fstest.MapFS{
		"guide/run.md":  {Data: []byte("# Runs\n\nA killed run is resumed\nby its id.\n")},
		"secret/run.md": {Data: []byte("# Runs\n\nA killed run is a secret.\n")},
	}
	if _, err := stone.Produce(t.Context(), x.Pipeline("index", files), retrieve.Indexed, stone.Config{}); err != nil {
		t.Fatal(err)
	}
	ctx := llm.WithTable(t.Context(), func(llm.Info) llm.Spec { return llm.Spec{Price: &budget.Price{In: 1e6}} }) // a dollar a token of a question
	account := budget.New(budget.Limits{USD: new(1000.0)})
	indexing := len(e.Requests())
	model := script.New(
		script.Call("search_documents", `{"query":"killed run","k":99}`),
		script.JSON(reply{"Resume it (guide/run.md:3-4)."}),
	)
	var told string
	a := agent.New("support", answered, llm.Priced(model, budget.Price{}), agent.Config{
		User: agent.Prompt(asked, func(q string) string { return q }),
		Use:  []agent.Middleware{searchtool.Tool(x, retrieve.Query{Under: "guide"})},
	})
	db, err := journals.Open(filepath.Join(t.TempDir(), "runs.db"), journals.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = stone.Produce(budget.With(ctx, account), a, answered, stone.Config{
		RunID: "r", Input: dag.Of(asked.With("What of a killed run?")), Recorder: journal.Keep(db, journal.Options{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	requests := model.Requests()
	told = requests[1].Messages[len(requests[1].Messages)-1].Text()
	if told != "[1] guide/run.md:3-4 (Runs)\nA killed run is resumed\nby its id." {
		t.Errorf("the model is told %q", told)
	}
	if !json.Valid(requests[0].Tools[0].Schema) || strings.Contains(told, "secret") {
		t.Errorf("%s", requests[0].Tools[0].Schema)
	}
	if spent := account.Spent(); spent.USD != 2 || len(e.Requests()) != indexing+1 || !e.Requests()[indexing].Query {
		t.Errorf("spent %+v with %d requests", spent, len(e.Requests())-indexing)
	}
	steps, err := db.Steps(context.Background(), "r")
	if _, total := journal.Total(steps); err != nil || total.USD != 2 {
		t.Errorf("the journal has %+v, %v", total, err)
	}
}
