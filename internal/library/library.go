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
	// Open opens an index and returns it. If the index does not exist, Open creates it if Config.Make is true; otherwise, the
	// error matches fs.ErrNotExist.
	Open func(context.Context, Config) (*Index, error)
}

// Part makes a Library usable as a part of a program; see cli.Part.
func (*Library) Part() {}

// Config specifies which index to open, and how.
type Config struct {
	Index    string       // file of the index, or address of its database
	Make     bool         // whether to create the index if it does not exist
	Embedder llm.Embedder // if nil, only words are compared
	Folder   string       // folder of the documents, relative to the file of the index
	Rebuild  bool         // compute all vectors again
	// Size and Overlap are described in retrieve.Index.
	Size, Overlap int
	Rerank        string           // id of the capability that sorts passages; "" means none
	Applicator    *call.Applicator // applicator whose registry contains that capability
}

// A Query describes a search; see retrieve.Query.
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
	// Report returns a Report for the result of a finished pipeline run.
	Report func(stone.Result) (Report, error)
	// Search starts a run that answers a query. It passes the file names in passages through the function path.
	Search func(ctx context.Context, q Query, cfg stone.Config, path func(string) string) (Answer, error)
	Close  func() error
}

// A Report describes the result of a finished indexing run.
type Report struct {
	JSON    any
	Text    string
	Empty   bool     // there are no documents
	Skipped []string // number of files that were skipped, for each reason
	Bare    int      // number of texts without a vector
	Built   string   // name of the embedder that computed the vectors; "" if there are no vectors
}

// An Answer is the result of a search.
type Answer struct {
	JSON  any
	Hits  []Hit
	Words bool // only words were compared
	Built string
	Bare  int // number of texts without a vector, which are ranked only by words
}

// A Hit is a passage found by a search.
type Hit struct{ Source, Heading, Text string }
