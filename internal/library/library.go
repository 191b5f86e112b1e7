// Package library declares the interface of retrieval, so that the commands index and search of package cli can use retrieval
// without linking it.
package library

import (
	"context"
	"io/fs"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/llm"
)

// A Library opens indexes.
type Library struct {
	// Open opens an index. If there is none, the error matches fs.ErrNotExist, unless Config.Make is set.
	Open func(context.Context, Config) (*Index, error)
}

// Part makes a Library usable as a part of a program; see cli.Part.
func (*Library) Part() {}

// Config specifies which index to open, and how.
type Config struct {
	Index    string       // file of the index, or address of its database
	Make     bool         // create the index if there is none
	Embedder llm.Embedder // if nil, only words are compared
	Folder   string       // folder of the documents, relative to the file of the index
	Rebuild  bool         // compute all vectors again
	// Size and Overlap are described in retrieve.Index.
	Size, Overlap int
	Rerank        string           // capability that sorts passages; "" for none
	Applicator    *call.Applicator // applicator that has the capability
}

// A Query is a question; see retrieve.Query.
type Query struct {
	Text, Under string
	K           int
	Where       map[string]string
	Words       bool
}

// An Index is an open index.
type Index struct {
	Folder   string // folder of the documents, relative to the file of the index
	Pipeline func(files fs.FS) stone.Ashlar
	// Report converts the result of a finished run of the pipeline to a Report.
	Report func(stone.Result) (Report, error)
	// Search answers a query in a run. Path converts the file names in passages.
	Search func(ctx context.Context, q Query, cfg stone.Config, path func(string) string) (Answer, error)
	Close  func() error
}

// A Report describes a finished run.
type Report struct {
	JSON    any
	Text    string
	Empty   bool     // there are no documents
	Skipped []string // number of files that were skipped, for each reason
	Bare    int      // number of texts without a vector
	Built   string   // embedder that computed the vectors; "" for none
}

// An Answer contains the passages found.
type Answer struct {
	JSON  any
	Hits  []Hit
	Words bool // only words were compared
	Built string
	Bare  int // number of texts without a vector, which are ranked only by words
}

// A Hit is a passage.
type Hit struct{ Source, Heading, Text string }
