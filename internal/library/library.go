// Package library describes retrieval for package cli, whose commands index and search use it without linking it.
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
	// Open opens an index. Its error matches fs.ErrNotExist if there is none, unless Config.Make is set.
	Open func(context.Context, Config) (*Index, error)
}

// Part makes a Library a part of a program, see cli.Part.
func (*Library) Part() {}

// Config says which index to open.
type Config struct {
	Index    string       // its file, or the address of its database
	Make     bool         // if there is none
	Embedder llm.Embedder // nil compares words alone
	Folder   string       // of the documents, as seen from the file of the index
	Rebuild  bool         // make all vectors anew
	// Size and Overlap are as in retrieve.Index.
	Size, Overlap int
	Rerank        string           // the capability that orders passages, "" for none
	Applicator    *call.Applicator // that has it
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
	Folder   string // of its documents, as seen from the file
	Pipeline func(files fs.FS) stone.Ashlar
	// Report reads the result of a finished run of the pipeline.
	Report func(stone.Result) (Report, error)
	// Search answers a question in a run. Path converts the file names of passages.
	Search func(ctx context.Context, q Query, cfg stone.Config, path func(string) string) (Answer, error)
	Close  func() error
}

// A Report describes a finished run.
type Report struct {
	JSON    any
	Text    string
	Empty   bool     // there is no document
	Skipped []string // how many files were left out, by reason
	Bare    int      // texts without a vector
	Built   string   // the embedder of the vectors, "" for none
}

// An Answer contains the passages found.
type Answer struct {
	JSON  any
	Hits  []Hit
	Words bool // only words were compared
	Built string
	Bare  int // texts without a vector, which rank by words alone
}

// A Hit is a passage.
type Hit struct{ Source, Heading, Text string }
