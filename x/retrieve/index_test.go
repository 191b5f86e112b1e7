package retrieve_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

// opened returns an index in a new file.
func opened(t testing.TB, e llm.Embedder) *retrieve.Index {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return &retrieve.Index{Store: store, Embedder: e}
}

func folder(files ...string) fstest.MapFS {
	all := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		all[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return all
}

// build runs the pipeline.
func build(t testing.TB, x *retrieve.Index, files fs.FS) retrieve.Report {
	t.Helper()
	p := x.Pipeline("index", files)
	if found := stone.Validate(p, stone.Given{}); len(found) > 0 {
		t.Fatal(found)
	}
	report, err := stone.Produce(t.Context(), p, retrieve.Indexed, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// sources returns where the answer to a question was found.
func sources(t testing.TB, x *retrieve.Index, q retrieve.Query) (all []string) {
	t.Helper()
	a, err := x.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Hits {
		all = append(all, a.Hits[i].Source())
	}
	return all
}

func texts(e *script.Embedder) (n int) {
	for _, r := range e.Requests() {
		n += len(r.Texts)
	}
	return n
}

const guide = "# Guide\n\nStone runs pipelines.\n\n## Resume\n\nA run that was killed is resumed\nwith the same id.\n\n## Budget\n\nMoney is limited by a budget.\n"

func TestOnlyWhatChangedIsEmbedded(t *testing.T) {
	e := new(script.Embedder)
	x := opened(t, e)
	files := folder("guide.md", guide, "a/notes.txt", "Bees make honey.\n\nFoxes sleep in burrows.\n", "pic.png", "\x89PNG\x00", ".git/config", "hidden", "node_modules/x.js", "hidden")
	r := build(t, x, files)
	if r.New != 2 || r.Embedded != 4 || texts(e) != 4 || r.Pieces != 4 || r.Bare != 0 || len(r.Skipped) != 1 || r.Skipped[0].File != "pic.png" || r.Embedder != "script/script" {
		t.Fatalf("first run: %+v, %d texts", r, texts(e))
	}
	for _, step := range []struct {
		what              string
		change            func()
		new, changed      int
		same, removed     int
		embedded, current int
	}{
		{"nothing", func() {}, 0, 0, 2, 0, 0, 4},
		{"one section", func() { files["guide.md"].Data = []byte(strings.Replace(guide, "limited", "bounded", 1)) }, 0, 1, 1, 0, 1, 4},
		{"a move", func() { files["b/moved.txt"] = files["a/notes.txt"]; delete(files, "a/notes.txt") }, 1, 0, 1, 1, 0, 4},
		{"a copy", func() { files["copy.txt"] = files["b/moved.txt"] }, 1, 0, 2, 0, 0, 5},
		{"a removal", func() { delete(files, "guide.md") }, 0, 0, 2, 1, 0, 2},
		{"what was removed is back", func() { files["guide.md"] = &fstest.MapFile{Data: []byte(guide)} }, 1, 0, 2, 0, 3, 5},
		{"a file becomes binary", func() { files["copy.txt"].Data = []byte("\x00"); files["b/moved.txt"] = files["copy.txt"] }, 0, 0, 1, 2, 0, 3},
	} {
		before := texts(e)
		step.change()
		r := build(t, x, files)
		if r.New != step.new || r.Changed != step.changed || r.Same != step.same || r.Removed != step.removed || r.Embedded != step.embedded || texts(e)-before != step.embedded || r.Pieces != step.current || r.Bare != 0 {
			t.Errorf("%s: %+v, %d texts: want %+v", step.what, r, texts(e)-before, step)
		}
	}
}

func TestSearch(t *testing.T) {
	e := new(script.Embedder)
	x := opened(t, e)
	build(t, x, folder("guide.md", guide, "a/notes.txt", "Bees make honey.\n\nFoxes sleep in burrows.\n", "a.txt", "resume"))
	for _, c := range []struct {
		q    retrieve.Query
		want string
	}{
		{retrieve.Query{Text: "How is a killed run resumed?", K: 1}, "guide.md:7-8"},
		{retrieve.Query{Text: "budget", K: 1}, "guide.md:12"},
		{retrieve.Query{Text: "honey", K: 1, Words: true}, "a/notes.txt:1-3"},
		{retrieve.Query{Text: "resuming", Words: true}, "a.txt:1 guide.md:7-8"},
		{retrieve.Query{Text: "resume", Under: "a.txt"}, "a.txt:1"},
		{retrieve.Query{Text: "resume bees", Under: "a/", Words: true}, "a/notes.txt:1-3"},
		{retrieve.Query{Text: "resume", Where: map[string]string{"type": "markdown", "title": "Guide"}, Words: true}, "guide.md:7-8"},
		{retrieve.Query{Text: "resume", Where: map[string]string{"title": "Other"}}, ""},
		{retrieve.Query{Text: `"*) OR NEAR(^ -"`, Words: true}, ""},
		{retrieve.Query{Text: "--- ???", Words: true}, ""},
	} {
		if got := strings.Join(sources(t, x, c.q), " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.q, got, c.want)
		}
	}
	a, err := x.Search(t.Context(), retrieve.Query{Text: "killed run"})
	if err != nil || a.By != "words and vectors" || a.Usage.InputTokens != 2 || a.Hits[0].WordRank != 1 || a.Hits[0].VectorRank != 1 || a.Hits[0].Heading != "Guide > Resume" {
		t.Errorf("%+v, %v", a, err)
	}
	for _, bad := range []retrieve.Query{{}, {Text: " \n"}, {Text: "a", K: 101}, {Text: "a", K: -1}, {Text: strings.Repeat("a", 9000)}} {
		if _, err := x.Search(t.Context(), bad); err == nil {
			t.Errorf("%.40v is answered", bad)
		}
	}
}

// Words alone are found without an embedder, and what an embedder adds later costs each text once.
func TestWordsAlone(t *testing.T) {
	x := opened(t, nil)
	files := folder("guide.md", guide)
	if r := build(t, x, files); r.Bare != 3 || r.Embedder != "" {
		t.Errorf("%+v", r)
	}
	e := new(script.Embedder)
	x.Embedder = e
	if a, err := x.Search(t.Context(), retrieve.Query{Text: "budget"}); err != nil || a.By != "words" || len(e.Requests()) != 0 || len(a.Hits) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	if r := build(t, x, files); r.Same != 1 || r.Embedded != 3 || r.Bare != 0 {
		t.Errorf("%+v", r)
	}
}

// otherEmbedder has another name, and vectors of another length.
type otherEmbedder struct{ script.Embedder }

func (*otherEmbedder) Info() llm.Info { return llm.Info{Provider: "other", Model: "m"} }

func TestAnotherEmbedder(t *testing.T) {
	first, other := new(script.Embedder), &otherEmbedder{script.Embedder{Dimensions: 8}}
	x := opened(t, first)
	files := folder("guide.md", guide)
	build(t, x, files)
	y := &retrieve.Index{Store: x.Store, Embedder: other}
	_, err := stone.Produce(t.Context(), y.Pipeline("index", files), retrieve.Indexed, stone.Config{})
	var mismatch *retrieve.EmbedderError
	if !errors.As(err, &mismatch) || mismatch.Built != "script/script" || mismatch.Asked != "other/m" || len(other.Requests()) != 0 {
		t.Errorf("%v", err)
	}
	if _, err := y.Search(t.Context(), retrieve.Query{Text: "budget"}); !errors.As(err, &mismatch) || len(other.Requests()) != 0 {
		t.Errorf("%v", err)
	}
	if got := sources(t, y, retrieve.Query{Text: "budget", Words: true}); len(got) != 1 {
		t.Errorf("words alone: %v", got)
	}
	y.Rebuild = true
	if r := build(t, y, files); r.Embedded != 3 || r.Embedder != "other/m" || r.Dimensions != 8 {
		t.Errorf("%+v", r)
	}
	x.Embedder = &script.Embedder{Dimensions: 12} // of the name that the index had
	if _, err := x.Search(t.Context(), retrieve.Query{Text: "budget"}); !errors.As(err, &mismatch) {
		t.Errorf("%v", err)
	}
}

// A failed request ends the run, keeps what was paid, and is not paid twice when the run is resumed.
func TestProviderFails(t *testing.T) {
	e := new(script.Embedder)
	e.Fail = func(n int, _ *llm.EmbedRequest) error {
		if n == 1 {
			return &llm.HTTPError{Status: 500}
		}
		return nil
	}
	x := opened(t, e)
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "# Section %d\n\nText %d.\n\n", i, i)
	}
	files := folder("all.md", text.String())
	ctx := budget.With(t.Context(), budget.New(budget.Limits{}))
	_, err := stone.Produce(ctx, x.Pipeline("index", files), retrieve.Indexed, stone.Config{})
	if err == nil {
		t.Fatal("no error")
	}
	e.Fail = nil
	r := build(t, x, files)
	all := map[string]int{}
	for i, req := range e.Requests() {
		if i != 1 {
			for _, text := range req.Texts {
				all[text]++
			}
		}
	}
	if len(all) != 100 || slices.Max(slices.Collect(maps.Values(all))) != 1 || r.Bare != 0 {
		t.Errorf("%d texts were embedded, %+v", len(all), r)
	}
}

// The price of vectors is drawn on the account of the run, and one that cannot pay sends nothing.
func TestBudget(t *testing.T) {
	e := new(script.Embedder)
	x := opened(t, e)
	ctx := llm.WithTable(t.Context(), func(i llm.Info) llm.Spec { return llm.Spec{Price: &budget.Price{In: 1e6}} }) // a dollar a token
	account := budget.New(budget.Limits{USD: new(1.0)})
	files := folder("guide.md", guide)
	_, err := stone.Produce(budget.With(ctx, account), x.Pipeline("index", files), retrieve.Indexed, stone.Config{})
	if spent := (*budget.ExhaustedError)(nil); !errors.As(err, &spent) || len(e.Requests()) != 0 {
		t.Errorf("%v, %d requests", err, len(e.Requests()))
	}
	account = budget.New(budget.Limits{USD: new(1000.0)})
	r, err := stone.Produce(budget.With(ctx, account), x.Pipeline("index", files), retrieve.Indexed, stone.Config{})
	if err != nil || r.Usage.USD == 0 || account.Spent().USD != r.Usage.USD || account.Spent().Roundtrips != 1 {
		t.Errorf("%+v, %v, spent %+v", r, err, account.Spent())
	}
	_, err = stone.Produce(budget.With(t.Context(), budget.New(budget.Limits{USD: new(1.0)})), (&retrieve.Index{Store: x.Store, Embedder: &otherEmbedder{}, Rebuild: true}).Pipeline("index", files), retrieve.Indexed, stone.Config{})
	if unpriced := (*budget.UnpricedError)(nil); !errors.As(err, &unpriced) {
		t.Errorf("%v", err)
	}
}

// brokenFS fails to open one file.
type brokenFS struct {
	fstest.MapFS
	broken string
}

func (b brokenFS) Open(name string) (fs.File, error) {
	if name == b.broken {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return b.MapFS.Open(name)
}

// What cannot be read now is kept as it was, what is damaged now is removed, and both are reported.
func TestUnreadable(t *testing.T) {
	x := opened(t, nil)
	x.Readers = map[string]retrieve.Reader{".odd": func(data []byte) ([]retrieve.Block, map[string]string, error) {
		if string(data) == "damaged" {
			return nil, nil, errors.New("it is damaged")
		}
		return []retrieve.Block{{Text: "odd\x00 \xff text"}}, map[string]string{"title": "\x00T"}, nil
	}}
	files := folder("a.txt", "bees", "d/b.txt", "foxes", "c.odd", "fine", "bad\xff.txt", "name", "large.txt", strings.Repeat("a", 17<<20))
	if r := build(t, x, files); r.New != 3 || len(r.Skipped) != 2 {
		t.Errorf("%+v", r)
	}
	if got := sources(t, x, retrieve.Query{Text: "odd"}); len(got) != 1 || got[0] != "c.odd" {
		t.Errorf("%v", got)
	}
	files["c.odd"].Data = []byte("damaged")
	for range 2 {
		r := build(t, x, brokenFS{files, "d/b.txt"})
		if r.New != 0 || r.Changed != 0 || r.Same != 1 || r.Removed != 0 || r.Documents != 2 || len(r.Skipped) != 4 {
			t.Errorf("%+v", r)
		}
	}
	if r := build(t, x, brokenFS{files, "d"}); r.Documents != 2 || r.Removed != 0 {
		t.Errorf("%+v", r)
	}
	if got := sources(t, x, retrieve.Query{Text: "foxes odd"}); len(got) != 1 || got[0] != "d/b.txt:1" {
		t.Errorf("%v", got)
	}
}

// A request for vectors has no more text than providers take, however large the pieces are.
func TestRequestsAreBounded(t *testing.T) {
	e := new(script.Embedder)
	x := opened(t, e)
	x.Size, x.Overlap = 1<<16, -1
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "# Part %d\n\n%s\n\n", i, strings.Repeat(fmt.Sprintf("word%d ", i), 8000))
	}
	if r := build(t, x, folder("large.md", text.String())); r.Bare != 0 || r.Pieces < 40 {
		t.Fatalf("%+v", r)
	}
	for _, req := range e.Requests() {
		n := 0
		for _, text := range req.Texts {
			n += len(text)
		}
		if n > 300_000 {
			t.Errorf("a request has %d texts of %d bytes", len(req.Texts), n)
		}
	}
}

// A block without text, as a reader may return it, does not keep the other texts from their vectors.
func TestBlankBlocks(t *testing.T) {
	e := new(script.Embedder)
	x := opened(t, e)
	x.Readers = map[string]retrieve.Reader{".x": func(data []byte) ([]retrieve.Block, map[string]string, error) {
		return []retrieve.Block{{Text: " \n", Page: 1}, {Text: "\x00", Page: 2}, {Text: string(data), Page: 3}, {Page: 4}}, nil, nil
	}}
	if r := build(t, x, folder("a.x", "Bees make honey.", "b.md", "Foxes run.")); r.Pieces != 2 || r.Embedded != 2 || r.Bare != 0 {
		t.Errorf("%+v", r)
	}
}

// A folder is found however it is written, and a query stays within the one that bounds it.
func TestUnder(t *testing.T) {
	x := opened(t, nil)
	build(t, x, folder("guide/a.md", "honey", "guide/deep/b.md", "honey", ".x", "honey", "c.md", "honey"))
	for _, c := range []struct{ base, under, want string }{
		{"", "", "[c.md:1 guide/a.md:1 guide/deep/b.md:1]"},
		{"", ".", "[c.md:1 guide/a.md:1 guide/deep/b.md:1]"},
		{"", "/", "[c.md:1 guide/a.md:1 guide/deep/b.md:1]"},
		{"", "./guide/", "[guide/a.md:1 guide/deep/b.md:1]"},
		{"", "/guide//deep", "[guide/deep/b.md:1]"},
		{"", "../guide", "[]"},
		{"", "c.md", "[c.md:1]"},
		{".", "guide", "[guide/a.md:1 guide/deep/b.md:1]"},
		{"/guide/", "", "[guide/a.md:1 guide/deep/b.md:1]"},
		{"./guide", "deep", "[guide/deep/b.md:1]"},
		{"./guide", "/guide/deep/", "[guide/deep/b.md:1]"},
		{"guide", "../c.md", "[]"},
		{"guide", "../guide/../../c.md", "[]"},
		{"../guide", "a.md", "[]"},
	} {
		got := sources(t, x, retrieve.Query{Text: "honey", Under: c.under}.Within(retrieve.Query{Under: c.base}))
		if slices.Sort(got); fmt.Sprint(got) != c.want {
			t.Errorf("%q within %q: %v, want %s", c.under, c.base, got, c.want)
		}
	}
	only := retrieve.Query{Where: map[string]string{"type": "markdown"}}
	for kind, want := range map[string]int{"markdown": 3, "html": 0} {
		if got := sources(t, x, retrieve.Query{Text: "honey", Where: map[string]string{"type": kind}}.Within(only)); len(got) != want {
			t.Errorf("%s within markdown: %v, want %d", kind, got, want)
		}
	}
}

// A rebuild whose embedder does not answer leaves the vectors that there are, which were paid for.
func TestRebuildKeepsVectors(t *testing.T) {
	old := new(script.Embedder)
	x := opened(t, old)
	files := folder("guide.md", guide)
	build(t, x, files)
	away := &named{Embedder: script.Embedder{Fail: func(int, *llm.EmbedRequest) error { return errors.New("no such model") }}}
	y := &retrieve.Index{Store: x.Store, Embedder: away, Rebuild: true}
	if _, err := stone.Produce(t.Context(), y.Pipeline("index", files), retrieve.Indexed, stone.Config{}); err == nil || !strings.Contains(err.Error(), "no such model") {
		t.Errorf("%v", err)
	}
	a, err := x.Search(t.Context(), retrieve.Query{Text: "killed run", K: 1})
	if err != nil || a.By != "words and vectors" || a.Hits[0].VectorRank != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// named is an embedder of another name.
type named struct{ script.Embedder }

func (*named) Info() llm.Info { return llm.Info{Provider: "script", Model: "other", Mode: llm.Mock} }

// A folder that is not mounted costs no vectors.
func TestEmptyFolder(t *testing.T) {
	e := new(script.Embedder)
	x := opened(t, e)
	build(t, x, folder("a.md", "Bees rest.", "b.md", "Foxes run."))
	if _, err := stone.Produce(t.Context(), x.Pipeline("index", folder()), retrieve.Indexed, stone.Config{}); err == nil || !strings.Contains(err.Error(), "the index has 2 documents of it: is the folder mounted?") {
		t.Errorf("%v", err)
	}
	if r := build(t, x, folder("a.md", "Bees rest.")); r.Removed != 1 || r.Same != 1 || r.Embedded != 0 {
		t.Errorf("%+v", r)
	}
}
