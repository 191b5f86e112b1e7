// Package commands provides the commands index and search, for documents in plain text, Markdown, HTML and PDF:
//
//	func main() { cli.Main(Pipeline, commands.Part) }
package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/library"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/pdf"
	"github.com/stonelayer/stone/x/retrieve/search"
	_ "github.com/stonelayer/stone/x/retrieve/sqlite" // for indexes in files
)

// Part provides the commands.
var Part = &library.Library{Open: open}

// open opens an index. If the index is to be built, open claims it until it is closed.
func open(ctx context.Context, c library.Config) (*library.Index, error) {
	store, err := retrieve.Open(ctx, c.Index, c.Make)
	if errors.Is(err, retrieve.ErrNone) {
		err = &fs.PathError{Op: "open", Path: redact.Database(c.Index), Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	release := func() error { return nil }
	if c.Make {
		if release, err = store.Claim(ctx); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	closed := func() error { return errors.Join(release(), store.Close()) }
	x, err := opened(ctx, c, store, closed)
	if err != nil {
		return nil, errors.Join(err, closed())
	}
	return x, nil
}

// opened returns a description of an open index. Its method Close calls closed.
func opened(ctx context.Context, c library.Config, store *retrieve.Store, closed func() error) (*library.Index, error) {
	state, err := store.State(ctx)
	if err != nil {
		return nil, err
	}
	x := &retrieve.Index{Store: store, Embedder: c.Embedder, Folder: c.Folder, Rebuild: c.Rebuild, Size: c.Size, Overlap: c.Overlap, Readers: map[string]retrieve.Reader{".pdf": pdf.Read}}
	if c.Rerank != "" {
		x.Rerank = search.Rerank(call.Spec{Applicator: c.Applicator, Cap: c.Rerank})
	}
	if c.Make {
		if err := x.Check(ctx); err != nil {
			return nil, err
		}
	}
	return &library.Index{
		Folder:   state.Folder,
		Pipeline: func(files fs.FS) stone.Ashlar { return x.Pipeline("index", without{files, own(c)}) },
		Report:   report,
		Search: func(ctx context.Context, q library.Query, cfg stone.Config, shown func(string) string) (library.Answer, error) {
			return find(ctx, x, state, q, cfg, shown)
		},
		Close: closed,
	}, nil
}

// own returns the name of the index file relative to the folder of the documents, or "" if the file is not in that folder.
func own(c library.Config) string {
	name, err := filepath.Rel(filepath.FromSlash(c.Folder), filepath.Base(c.Index))
	if err != nil || redact.IsDatabase(c.Index) || !filepath.IsLocal(name) {
		return ""
	}
	return filepath.ToSlash(name)
}

// without is a folder without the index files in it.
type without struct {
	fs.FS
	index string
}

// ReadDir implements fs.ReadDirFS.
func (w without) ReadDir(dir string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(w.FS, dir)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool {
		rest, is := strings.CutPrefix(path.Join(dir, e.Name()), w.index)
		return is && w.index != "" && slices.Contains([]string{"", "-wal", "-shm", "-journal", ".lock"}, rest)
	}), err
}

func report(result stone.Result) (out library.Report, err error) {
	if result.Node == nil {
		return out, nil
	}
	r, err := retrieve.Indexed.Of(result.Node)
	if err != nil {
		return out, err
	}
	out = library.Report{JSON: r, Empty: r.Documents == 0, Bare: r.Bare, Built: r.Embedder}
	files := map[string][]string{}
	for _, s := range r.Skipped {
		files[s.Why] = append(files[s.Why], s.File)
	}
	for _, why := range slices.Sorted(maps.Keys(files)) {
		of, more := files[why], ""
		if len(of) > 4 {
			of, more = of[:3], fmt.Sprintf(" and %d more", len(of)-3)
		}
		out.Skipped = append(out.Skipped, fmt.Sprintf("%s, %s: %s%s", text.Plural(len(files[why]), "file"), why, strings.Join(of, ", "), more))
	}
	done := []string{}
	for _, part := range []struct {
		n    int
		what string
	}{{r.New, "new"}, {r.Changed, "changed"}, {r.Same, "unchanged"}, {r.Removed, "removed"}} {
		if part.n > 0 {
			done = append(done, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	out.Text = fmt.Sprintf("%s in %s", text.Plural(r.Documents, "document"), text.Plural(r.Pieces, "piece"))
	if len(done) > 0 {
		out.Text += ": " + strings.Join(done, ", ")
	}
	if r.Embedder != "" {
		out.Text += fmt.Sprintf("; %s new from %s", text.Plural(r.Embedded, "vector"), r.Embedder)
	}
	if r.Usage.InputTokens > 0 {
		about := ""
		if r.Usage.Estimated {
			about = "about "
		}
		out.Text += fmt.Sprintf(", %s%s", about, text.Plural(r.Usage.InputTokens, "token"))
	}
	if r.Usage.USD > 0 {
		out.Text += fmt.Sprintf(", $%.4f", r.Usage.USD)
	}
	return out, nil
}

var found = dag.NewType[retrieve.Answer]("search/found")

// find answers a question within a run, so that the cost of the question's vector and of a reranker's calls is limited by the
// run's budget.
func find(ctx context.Context, x *retrieve.Index, state retrieve.State, q library.Query, cfg stone.Config, shown func(string) string) (out library.Answer, err error) {
	query := retrieve.Query{Text: q.Text, K: q.K, Where: q.Where, Under: q.Under, Words: q.Words}
	if err := query.Check(); err != nil {
		return out, err
	}
	p := stone.New("search", found, func(ctx context.Context, _ dag.DAG) (retrieve.Answer, error) { return x.Search(ctx, query) })
	a, err := stone.Produce(ctx, p, found, cfg)
	if err != nil {
		return out, err
	}
	for i := range a.Hits {
		h := &a.Hits[i]
		h.File = shown(h.File)
		out.Hits = append(out.Hits, library.Hit{Source: h.Source(), Heading: h.Heading, Text: h.Text})
	}
	out.JSON, out.Words, out.Built, out.Bare = a, a.By == "words", state.Embedder, state.Bare
	return out, nil
}
