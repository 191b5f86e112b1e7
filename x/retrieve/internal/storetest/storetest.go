// Package storetest tests the stores of package retrieve: all databases must return the same answers.
package storetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/retrieve"
)

// Test tests a store. The function fresh must create an empty store and return a function that opens it; the returned function is
// called several times.
func Test(t *testing.T, fresh func(t *testing.T) func() (*retrieve.Store, error)) {
	open := fresh(t)
	store := opened(t, open)
	e := new(script.Embedder)
	x := &retrieve.Index{Store: store, Embedder: e, Meta: func(name string) map[string]string {
		return map[string]string{"area": strings.Split(name, "/")[0], "owner's \"key\"": "x"}
	}}
	files := fstest.MapFS{}
	for _, area := range []string{"bees", "foxes", "naïve"} {
		for i := range 20 {
			files[fmt.Sprintf("%s/%d.md", area, i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "# About %s\n\nNote n%d on %s: they are resting in winter's café.\n\n## More\n\nShared paragraph.\n", area, i, area)}
		}
	}
	r := build(t, x, files)
	// The three areas have one heading and one paragraph in common.
	if r.New != 60 || r.Pieces != 120 || r.Embedded != 63 || r.Bare != 0 || r.Embedder != "script/script" || r.Dimensions != 256 {
		t.Fatalf("%+v", r)
	}
	if r := build(t, x, files); r.Same != 60 || r.Embedded != 0 || len(e.Requests()) != 1 {
		t.Errorf("again: %+v, %d requests", r, len(e.Requests()))
	}
	for _, c := range []struct {
		q    retrieve.Query
		want string // expected sources
	}{
		{retrieve.Query{Text: "n7 foxes", K: 1}, "foxes/7.md:3"},
		{retrieve.Query{Text: "n7", Words: true, K: 5}, "bees/7.md:3 foxes/7.md:3 naïve/7.md:3"},
		{retrieve.Query{Text: "n7 rest", Words: true, K: 1, Under: "naïve"}, "naïve/7.md:3"},
		{retrieve.Query{Text: "n7", Words: true, Where: map[string]string{"area": "bees", "type": "markdown"}}, "bees/7.md:3"},
		{retrieve.Query{Text: "n7", Words: true, Where: map[string]string{"owner's \"key\"": "x"}, Under: "bees/7.md"}, "bees/7.md:3"},
		{retrieve.Query{Text: "n7", Where: map[string]string{"area": "' OR 1 = 1 --"}}, ""},
		{retrieve.Query{Text: "n3", K: 1, Where: map[string]string{"area": "foxes"}}, "foxes/3.md:3"},
		{retrieve.Query{Text: "'; DROP TABLE pieces; -- & | ! ( ) :* <-> \\ \"", Words: true, K: 1}, ""},
	} {
		if got := found(t, x, c.q); got != c.want {
			t.Errorf("%+v: %q, want %q", c.q, got, c.want)
		}
	}
	for _, q := range Questions { // in languages without spaces between words
		if files["languages/"+q.File] == nil {
			for name, f := range Languages() {
				files["languages/"+name] = f
			}
			build(t, x, files)
		}
		if got := found(t, x, retrieve.Query{Text: q.Text, Words: true, K: 10}); !strings.Contains(got, "languages/"+q.File+":1") {
			t.Errorf("%s: %q, want %s", q.Text, got, q.File)
		}
	}
	for name := range Languages() {
		delete(files, "languages/"+name)
	}
	build(t, x, files)
	claims(t, open, store)
	delete(files, "foxes/7.md")
	if r := build(t, x, files); r.Removed != 1 || r.Pieces != 118 {
		t.Errorf("%+v", r)
	}
	if got := found(t, x, retrieve.Query{Text: "n7 foxes", Under: "foxes", K: 1}); got == "foxes/7.md:3" {
		t.Error("what was removed is found")
	}

	// A second process sees the same documents, and both write at the same time.
	other := &retrieve.Index{Store: opened(t, open), Embedder: e}
	if got := found(t, other, retrieve.Query{Text: "n9 bees", K: 1}); got != "bees/9.md:3" {
		t.Errorf("the second process finds %q", got)
	}
	files["bees/9.md"] = &fstest.MapFile{Data: []byte("n9 anew\n")}
	var all sync.WaitGroup
	for _, x := range []*retrieve.Index{x, {Store: other.Store, Embedder: e, Meta: x.Meta}} {
		all.Go(func() { build(t, x, files) })
	}
	all.Wait()
	if st, err := store.State(t.Context()); err != nil || st.Documents != 59 || st.Pieces != 117 || st.Bare != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if got := found(t, x, retrieve.Query{Text: "n9 anew", K: 1}); got != "bees/9.md:1" {
		t.Errorf("%q", got)
	}
}

func opened(t *testing.T, open func() (*retrieve.Store, error)) *retrieve.Store {
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func build(t *testing.T, x *retrieve.Index, files fstest.MapFS) retrieve.Report {
	r, err := stone.Produce(t.Context(), x.Pipeline("index", files), retrieve.Indexed, stone.Config{})
	if err != nil {
		t.Error(err)
	}
	return r
}

func found(t *testing.T, x *retrieve.Index, q retrieve.Query) string {
	a, err := x.Search(t.Context(), q)
	if err != nil {
		t.Errorf("%+v: %v", q, err)
	}
	var all []string
	for i := range a.Hits {
		all = append(all, a.Hits[i].Source())
	}
	return strings.Join(all, " ")
}

// claims tests that only one process can build an index at a time, while others can search it.
func claims(t *testing.T, open func() (*retrieve.Store, error), store *retrieve.Store) {
	release, err := store.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := opened(t, open)
	if _, err := other.Claim(t.Context()); err == nil || !strings.Contains(err.Error(), "another process is building the index") {
		t.Errorf("a second process: %v", err)
	}
	if _, err := other.State(t.Context()); err != nil {
		t.Errorf("a search: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if release, err = other.Claim(t.Context()); err == nil {
		err = release()
	}
	if err != nil {
		t.Errorf("after the first: %v", err)
	}
}

// Library returns a folder with a file of 100 pieces of about 700 bytes each. Word frequencies follow Zipf's law.
func Library(pieces int) fstest.MapFS {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 4, 20_000)
	files := fstest.MapFS{}
	for i := range pieces / 100 {
		var text strings.Builder
		for j := range 100 {
			fmt.Fprintf(&text, "## Section %d of %d\n\n", j, i)
			for range 110 {
				fmt.Fprintf(&text, "w%d ", zipf.Uint64())
			}
			text.WriteString("\n\n")
		}
		files[fmt.Sprintf("%d/%d.md", i/100, i)] = &fstest.MapFile{Data: []byte(text.String())}
	}
	return files
}
