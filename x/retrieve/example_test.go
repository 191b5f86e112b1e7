package retrieve_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

func Example() {
	dir, err := os.MkdirTemp("", "index")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(filepath.Join(dir, "index.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	files := fstest.MapFS{"guide.md": {Data: []byte("# Guide\n\n## Resume\n\nA run that was killed is resumed\nwith the same id.\n")}} // or os.DirFS("docs")
	index := &retrieve.Index{Store: store, Embedder: new(script.Embedder)}                                                             // or openai.NewEmbedder(…)
	for range 2 {
		report, err := stone.Produce(context.Background(), index.Pipeline("index", files), retrieve.Indexed, stone.Config{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(report.New, "new,", report.Embedded, "embedded")
	}
	answer, err := index.Search(context.Background(), retrieve.Query{Text: "How is a run resumed?", K: 3})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range answer.Hits {
		fmt.Println(hit.Source(), hit.Heading)
	}
	// Output:
	// 1 new, 1 embedded
	// 0 new, 0 embedded
	// guide.md:5-6 Guide > Resume
}
