package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/llm"
)

// An Index configures how documents are indexed and searched in a Store. Only Store is required. Its methods are safe
// for concurrent use.
type Index struct {
	Store *Store
	// Embedder computes the vectors of pieces and questions. If nil, passages are ranked only by words.
	Embedder llm.Embedder
	// Readers contains readers by file extension, such as ".pdf". They take precedence over the built-in readers for Markdown and
	// HTML. Any other file is read as plain text.
	Readers map[string]Reader
	// Size is the maximum length of a piece in bytes. Overlap is the maximum number of bytes that the next piece repeats, at most
	// half of Size. Zero means 1,600 and 200. A negative Overlap means none.
	Size, Overlap int
	// Meta returns the metadata of a file, which Query.Where can select by. It is called when the file is read. If it is nil, no
	// metadata is added.
	Meta func(name string) map[string]string
	// Folder identifies the folder that is indexed. A store that contains documents of another folder is refused, because
	// Pipeline would remove them. If Folder is "", this is not checked.
	Folder string
	// Rebuild replaces all vectors if the embedder has changed. The new embedder is tested with a request first.
	Rebuild bool
	// Rerank changes the order of the 50 best passages of a search, or of the best Query.K passages if that is more. It returns
	// positions in hits, best first. It may omit passages and may set the Relevance of hits. If Rerank is nil, the order is not
	// changed.
	Rerank func(ctx context.Context, question string, hits []Hit) ([]int, error)
}

const (
	maxFile   = 16 << 20  // bytes
	maxPieces = 100_000   // maximum number of pieces per document; no text of the maximum size has more
	batchSize = 64        // texts per request for vectors; with 1,600 bytes each, about 26,000 tokens
	batchText = 256 << 10 // maximum total size of the texts in bytes, not counting headings: OpenAI accepts 300,000 tokens
	splitting = "1"       // version of the readers and of split; changing it causes all documents to be split again
)

func (x *Index) size() int    { return max(cmp.Or(x.Size, 1600), 64) }
func (x *Index) overlap() int { return min(max(cmp.Or(x.Overlap, 200), 0), x.size()/2) }

// name returns the name of the provider and the model that compute the vectors.
func (x *Index) name() string {
	if x.Embedder == nil {
		return ""
	}
	info := x.Embedder.Info()
	return info.Provider + "/" + info.Model
}

// address returns the digest of a document: of its bytes, and of the settings that affect its pieces.
func (x *Index) address(name string, data []byte) string {
	_, kind := x.reader(name)
	return digest([]byte(splitting), fmt.Append(nil, x.size(), " ", x.overlap(), " ", kind), data)
}

// A Report contains counts of what a run of Index.Pipeline has done.
type Report struct {
	State
	New     int `json:"new"`     // new documents
	Changed int `json:"changed"` // changed documents
	Same    int `json:"same"`    // unchanged documents
	Removed int `json:"removed"` // documents whose files no longer exist
	// Embedded is the number of texts embedded in this run. Usage is their cost.
	Embedded int          `json:"embedded"`
	Usage    budget.Usage `json:"usage,omitzero"`
	Skipped  []Skipped    `json:"skipped,omitempty"`
}

// Skipped is a file that was skipped, or a part of a file that has no vector.
type Skipped struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Indexed is the type of the node that Index.Pipeline produces.
var Indexed = dag.NewType[Report]("retrieve/indexed")

// A survey lists the work that a run has to do.
type survey struct {
	Files   []task    `json:"files,omitempty"` // new and changed files
	Same    int       `json:"same"`
	Removed []string  `json:"removed,omitempty"`
	Skipped []Skipped `json:"skipped,omitempty"`
}

// A task is a document to be read.
type task struct {
	File string `json:"file"`
	New  bool   `json:"new,omitempty"`
}

// entered is a document that has been read.
type entered struct {
	task
	Why string `json:"why,omitempty"` // reason why the document was skipped
}

// A batch contains the text digests of one request.
type batch []string

// embedded is a batch whose vectors have been stored.
type embedded struct {
	Texts   int          `json:"texts"`
	Usage   budget.Usage `json:"usage,omitzero"`
	Refused []refusal    `json:"refused,omitempty"`
}

var (
	surveyed   = dag.NewType[survey]("retrieve/survey")
	oneTask    = dag.NewType[task]("retrieve/task")
	entry      = dag.NewType[entered]("retrieve/entry")
	allBatches = dag.NewType[[]batch]("retrieve/batches")
	oneBatch   = dag.NewType[batch]("retrieve/batch")
	vectors    = dag.NewType[embedded]("retrieve/vectors")
)

// Pipeline returns a pipeline that synchronises the store with a folder: it reads new and changed documents, embeds texts without
// a vector, and removes deleted documents. It produces a node of type Indexed. The cost of requests is charged to the account of
// the run. Files that cannot be read are skipped. Texts that the embedder refuses are skipped, too; searches can still find their
// words, and later runs try to embed them again. Any other failure ends the run, which can be resumed or started again; see the
// package comment.
func (x *Index) Pipeline(name string, files fs.FS) stone.Ashlar {
	if x.Store == nil {
		fault := stone.Fail("retrieve/config", "Index.Store is nil: open one with package x/retrieve/sqlite or x/retrieve/postgres")
		return stone.New(name, Indexed, func(context.Context, dag.DAG) (r Report, err error) { return r, fault })
	}
	reads, puts, needs := stone.Effects(effect.FSRead), stone.Effects(), stone.Effects()
	if x.Store.dialect.Remote {
		reads, puts = stone.Effects(effect.FSRead, effect.Net), stone.Effects(effect.Net)
	}
	surveys := reads
	if asks := x.Embedder != nil && x.Embedder.Info().Mode != llm.Mock; asks || x.Store.dialect.Remote {
		if needs = stone.Effects(effect.Net); asks && x.Rebuild {
			surveys = stone.Effects(effect.FSRead, effect.Net)
		}
	}
	e := &embedding{Index: x}
	return stone.Seq(name,
		stone.New("survey", surveyed, func(ctx context.Context, _ dag.DAG) (survey, error) { return x.survey(ctx, files) }, surveys),
		stone.Map("documents", dag.Derive(surveyed, func(s survey) []task { return s.Files }), oneTask,
			stone.Func("document", oneTask, entry, func(ctx context.Context, t task) (entered, error) {
				data, err := read(files, t.File)
				if err != nil {
					return entered{t, why(err)}, nil
				}
				d, err := x.document(t.File, data)
				if err != nil {
					return entered{t, why(err)}, x.Store.change(ctx, change{remove: []string{t.File}})
				}
				return entered{task: t}, x.Store.change(ctx, change{put: []document{d}})
			}, reads),
			stone.AllLanes(), stone.AllowEmpty(), stone.Lanes(16)),
		stone.Reduce(stone.Func2("batches", surveyed, dag.Lanes(entry), allBatches, x.batches, puts)),
		stone.Map("batches-of-texts", allBatches, oneBatch,
			stone.Func("vectors", oneBatch, vectors, e.embed, needs),
			stone.AllLanes(), stone.AllowEmpty(), stone.Lanes(8)),
		stone.Reduce(stone.Func3("report", surveyed, dag.All(entry), dag.Lanes(vectors), Indexed, x.report, puts)),
	)
}

// Check returns an error if the vectors in the store were computed by another embedder or its documents belong to another folder,
// because Pipeline refuses such a store. Otherwise it returns nil.
func (x *Index) Check(ctx context.Context) error {
	state, err := x.Store.State(ctx)
	switch name := x.name(); {
	case err != nil:
		return err
	case x.Folder != "" && state.Folder != "" && x.Folder != state.Folder && state.Documents > 0:
		return &folderError{state.Folder, x.Folder}
	case name != "" && state.Embedder != "" && name != state.Embedder && !x.Rebuild:
		return &EmbedderError{state.Embedder, name}
	}
	return nil
}

// survey compares a folder with the store and returns the work to do.
func (x *Index) survey(ctx context.Context, files fs.FS) (s survey, err error) {
	if err := x.Check(ctx); err != nil {
		return s, err
	}
	known, err := x.Store.documents(ctx)
	if err != nil {
		return s, err
	}
	w := walk{x, files, &s, known, map[string]bool{}}
	for name := range known {
		w.gone[name] = true
	}
	err = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return w.visit(name, e, err)
	})
	s.Removed = slices.Sorted(maps.Keys(w.gone))
	if err == nil && len(known) > 0 && len(s.Removed) == len(known) && len(s.Files)+len(s.Skipped) == 0 {
		err = stone.Fail("retrieve/empty", "the folder is empty, but the index has %d documents of it: is the folder mounted? to forget the documents, remove the index", len(known))
	}
	reset := x.Rebuild && x.Embedder != nil
	if err == nil && reset {
		err = x.probe(ctx)
	}
	if err != nil {
		return s, err
	}
	return s, x.Store.change(ctx, change{reset: reset, folder: x.Folder})
}

// probe sends one word to the embedder, so that rebuilding with a broken embedder does not remove the existing vectors.
func (x *Index) probe(ctx context.Context) error {
	req := &llm.EmbedRequest{Texts: []string{"test"}, Query: true} // questions are never sent in batches
	_, err := paid(ctx, "test", x.name(), llm.QuoteEmbed(ctx, x.Embedder, req), func(ctx context.Context) (done embedded, err error) {
		got, err := x.Embedder.Embed(ctx, req)
		if err == nil {
			done = embedded{Texts: 1, Usage: got.Usage}
		}
		return done, err
	}, func(e embedded) budget.Usage { return e.Usage })
	return err
}

// A walk is one walk through a folder.
type walk struct {
	*Index
	files fs.FS
	*survey
	known map[string]string
	gone  map[string]bool // documents that have not been encountered yet
}

func (w *walk) visit(name string, e fs.DirEntry, err error) error {
	hidden := name != "." && (strings.HasPrefix(e.Name(), ".") || e.IsDir() && e.Name() == "node_modules")
	switch {
	case err != nil && name == ".":
		return err
	case err != nil && !hidden:
		w.skip(name, err)
		for doc := range w.gone { // a folder that cannot be read may still contain its files
			if strings.HasPrefix(doc, name+"/") {
				delete(w.gone, doc)
			}
		}
	case hidden:
	case e.Type()&fs.ModeSymlink != 0:
		w.Skipped = append(w.Skipped, Skipped{clean(name), "a symbolic link"})
	case e.Type().IsRegular():
		w.compare(name)
	}
	if e.IsDir() && (hidden || err != nil) {
		return fs.SkipDir
	}
	return nil
}

// skip records a file as skipped. A file that currently cannot be read keeps its pieces in the index.
func (w *walk) skip(name string, err error) {
	w.Skipped = append(w.Skipped, Skipped{clean(name), why(err)})
	if errors.As(err, new(*fs.PathError)) {
		delete(w.gone, name)
	}
}

// compare compares a file with the store and records whether it must be read.
func (w *walk) compare(name string) {
	data, err := read(w.files, name)
	if err == nil {
		err = w.unreadable(name, data)
	}
	if err != nil {
		w.skip(name, err)
		return
	}
	delete(w.gone, name)
	if before, found := w.known[name]; !found || before != w.address(name, data) {
		w.Files = append(w.Files, task{name, !found})
	} else {
		w.Same++
	}
}

var (
	errLarge  = fmt.Errorf("larger than %d MiB", maxFile>>20)
	errPieces = fmt.Errorf("more than %d pieces: split the file", maxPieces)
)

// why returns the text of an error without the path.
func why(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

func read(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(data) > maxFile {
		return nil, errLarge
	}
	return data, err
}

// batches removes deleted documents and groups the texts that have no vector into requests.
func (x *Index) batches(ctx context.Context, s survey, _ []entered) (all []batch, err error) {
	if err := x.Store.change(ctx, change{remove: s.Removed}); err != nil || x.Embedder == nil {
		return []batch{}, err
	}
	digests, _, err := x.Store.bare(ctx, nil)
	all = []batch{}
	for part := range slices.Chunk(digests, max(1, min(batchSize, batchText/x.size()))) {
		all = append(all, batch(part))
	}
	return all, err
}

// report removes vectors that are no longer used and returns the report of the run.
func (x *Index) report(ctx context.Context, s survey, docs []entered, made []embedded) (r Report, err error) {
	if err := x.Store.change(ctx, change{sweep: true}); err != nil {
		return r, err
	}
	if r.State, err = x.Store.State(ctx); err != nil {
		return r, err
	}
	r.Same, r.Removed, r.Skipped = s.Same, len(s.Removed), s.Skipped
	for _, d := range docs {
		switch {
		case d.Why != "":
			r.Skipped = append(r.Skipped, Skipped{d.File, d.Why})
		case d.New:
			r.New++
		default:
			r.Changed++
		}
	}
	for _, m := range made {
		r.Embedded, r.Usage = r.Embedded+m.Texts, r.Usage.Add(m.Usage)
		for _, refused := range m.Refused {
			if r.Skipped, err = x.Store.places(ctx, r.Skipped, refused); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}
