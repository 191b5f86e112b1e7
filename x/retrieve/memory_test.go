package retrieve_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

// resized is an embedder whose vectors have another length from time to time.
type resized struct {
	script.Embedder
	dimensions int
}

func (e *resized) Embed(ctx context.Context, req *llm.EmbedRequest) (*llm.Embedding, error) {
	got, err := e.Embedder.Embed(ctx, req)
	if err == nil {
		for i, v := range got.Vectors {
			got.Vectors[i] = v[:e.dimensions]
		}
	}
	return got, err
}

// A search whose index is rebuilt with vectors of another length, while it compares the old ones, compares the new ones.
func TestRebuildWhileSearching(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.db")
	open := func(dimensions int) *retrieve.Index {
		store, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return &retrieve.Index{Store: store, Embedder: &resized{dimensions: dimensions}, Rebuild: true}
	}
	files := fstest.MapFS{}
	for i := range 1100 {
		files[fmt.Sprintf("%d.txt", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "note%d", i)}
	}
	build(t, open(256), files)
	x := open(256)
	for _, rebuilt := range []int{128, 256} {
		done, ended := x.Store.Busy(), make(chan error)
		go func() {
			_, err := x.Search(t.Context(), retrieve.Query{Text: "note7"})
			ended <- err
		}()
		for stacks := make([]byte, 1<<20); !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*Store).coded(")); { // it has read the state
			runtime.Gosched()
		}
		build(t, open(128), files)
		if rebuilt == 256 {
			build(t, open(256), files)
		}
		done()
		err := <-ended
		if other := (*retrieve.EmbedderError)(nil); rebuilt == 128 && !errors.As(err, &other) || rebuilt == 256 && err != nil {
			t.Errorf("rebuilt with %d dimensions: %v", rebuilt, err)
		}
		build(t, open(256), files)
	}
}

// Codes are read once for all searches, again when another process has changed the vectors, and at each search if they
// are too large.
func TestCodes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.db")
	e := new(script.Embedder)
	open := func() *retrieve.Index {
		store, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return &retrieve.Index{Store: store, Embedder: e}
	}
	x, other := open(), open()
	files := fstest.MapFS{}
	for i := range 1200 {
		files[fmt.Sprintf("%d.txt", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "note%d", i)}
	}
	first := func(x *retrieve.Index, q retrieve.Query) string {
		t.Helper()
		q.K = 1
		a, err := x.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Hits) == 0 || a.Hits[0].VectorRank == 0 {
			return ""
		}
		return a.Hits[0].File
	}
	build(t, x, files)
	for range 2 {
		if got := first(x, retrieve.Query{Text: "note77"}); got != "77.txt" || x.Store.InMemory() != 1200 || x.Store.CodesRead() != 1200 {
			t.Errorf("%q, %d in memory, %d read", got, x.Store.InMemory(), x.Store.CodesRead())
		}
	}
	files["new.txt"] = &fstest.MapFile{Data: []byte("added")}
	delete(files, "77.txt")
	build(t, other, files)
	if got := first(x, retrieve.Query{Text: "added"}); got != "new.txt" || x.Store.InMemory() != 1200 || x.Store.CodesRead() != 1200+64 { // the block of the code that has gone
		t.Errorf("after another process: %q, %d in memory, %d read", got, x.Store.InMemory(), x.Store.CodesRead())
	}
	done, late := x.Store.Busy(), time.After(10*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := x.Search(ctx, retrieve.Query{Text: "added"})
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a search that was cancelled while another one reads: %v", err)
		}
	case <-late:
		t.Error("a cancelled search waits for another one that reads")
	}
	done()
	if got := first(x, retrieve.Query{Text: "note77", Under: "new.txt"}); got != "new.txt" {
		t.Errorf("within a filter: %q", got)
	}
	small := open()
	small.Store.SetRoom(1000)
	if got := first(small, retrieve.Query{Text: "note78"}); got != "78.txt" || small.Store.InMemory() != 0 {
		t.Errorf("without room: %q, %d in memory", got, small.Store.InMemory())
	}
}

// However an index is changed, it has one code for each vector, in few blocks. What a process keeps in memory is what another
// one reads anew.
func TestBlocks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.db")
	store, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	x := &retrieve.Index{Store: store, Embedder: new(script.Embedder)}
	files, r := fstest.MapFS{}, rand.New(rand.NewPCG(1, 2))
	for round := range 120 {
		changes := 1
		if round%40 == 0 {
			changes = 300
		}
		for range changes {
			name := fmt.Sprintf("%d.txt", r.IntN(600))
			if files[name] != nil && r.IntN(3) == 0 {
				delete(files, name)
			} else {
				files[name] = &fstest.MapFile{Data: fmt.Appendf(nil, "note%d", r.IntN(400))}
			}
		}
		build(t, x, files)
		if _, err := x.Search(t.Context(), retrieve.Query{Text: "note7"}); err != nil {
			t.Fatal(err)
		}
		var vectors, blocks, small int
		if err := db.QueryRow("SELECT (SELECT count(*) FROM vectors), count(*), count(*) FILTER (WHERE length(keys) < 16 * 32) FROM blocks").Scan(&vectors, &blocks, &small); err != nil {
			t.Fatal(err)
		}
		if got := store.Digests(); len(got) != vectors || store.InMemory() != vectors || small > 33 || blocks > 33+vectors/32 {
			t.Fatalf("round %d: %d codes of %d vectors, %d blocks, %d of them small", round, len(got), vectors, blocks, small)
		}
		for digest := range store.Digests() {
			if err := db.QueryRow("SELECT 1 FROM vectors WHERE digest = ?", digest).Scan(new(int)); err != nil {
				t.Fatalf("round %d: a code of %s: %v", round, digest, err)
			}
		}
	}
	if read := store.CodesRead(); read > 3*600+120*2*64 {
		t.Errorf("%d codes were read", read)
	}
}

// apart is an embedder whose vectors of texts "beta" are all farther from a question than the centre is.
type apart struct{ script.Embedder }

func (e *apart) Embed(ctx context.Context, req *llm.EmbedRequest) (*llm.Embedding, error) {
	got, err := e.Embedder.Embed(ctx, req)
	if err != nil {
		return nil, err
	}
	for i, text := range req.Texts {
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		r := rand.New(rand.NewPCG(h.Sum64(), 0))
		v := make([]float32, 64)
		for j := range v {
			v[j] = float32(r.NormFloat64() * 0.02)
		}
		switch v[0] = 1; { // also of the question
		case strings.Contains(text, "target"):
			v[0], v[1] = 0.6, 1
		case strings.Contains(text, "beta"):
			v[0], v[1] = float32(0.2+0.1*math.Abs(r.NormFloat64())), 1
		}
		got.Vectors[i] = v
	}
	return got, nil
}

// The nearest of many texts are found although all seem far, as of a folder with texts that differ from the first
// ones of the index.
func TestAllFar(t *testing.T) {
	x := opened(t, new(apart))
	files := fstest.MapFS{}
	for i := range 100 {
		files[fmt.Sprintf("a/%d.txt", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "alpha %d", i)}
	}
	build(t, x, files) // makes the centre
	for i := range 2500 {
		files[fmt.Sprintf("b/%d.txt", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "beta %d", i)}
	}
	for i := range 10 {
		files[fmt.Sprintf("b/near%d.txt", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "beta target %d", i)}
	}
	build(t, x, files)
	found := sources(t, x, retrieve.Query{Text: "zzz qqq", K: 10, Under: "b"})
	if near := slices.DeleteFunc(slices.Clone(found), func(f string) bool { return !strings.HasPrefix(f, "b/near") }); len(near) != 10 {
		t.Errorf("found %q, want the 10 nearest", found)
	}
}

// Indexing does not spread damage: codes of a wrong length are reported with the option that repairs them.
func TestDamagedLengths(t *testing.T) {
	for _, damage := range []string{
		"UPDATE blocks SET codes = substr(codes, 2)",
	} {
		file := filepath.Join(t.TempDir(), "index.db")
		store, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		x := &retrieve.Index{Store: store, Embedder: new(script.Embedder)}
		files := folder("a.md", "one", "b.md", "two", "c.md", "three")
		build(t, x, files)
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(damage); err != nil {
			t.Fatal(err)
		}
		delete(files, "a.md")
		if _, err := stone.Produce(t.Context(), x.Pipeline("index", files), retrieve.Indexed, stone.Config{}); err == nil || !strings.Contains(err.Error(), "index the documents again with --rebuild") {
			t.Errorf("%s: %v", damage, err)
		}
		x.Rebuild = true
		build(t, x, files)
	}
}

// Many searches at the same time share the connections of their store.
func TestConnections(t *testing.T) {
	x := opened(t, nil)
	build(t, x, folder("a.md", "honey"))
	done := x.Store.Fill(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := x.Search(ctx, retrieve.Query{Text: "honey"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a search opened one more connection: %v", err)
	}
	done()
	if got := sources(t, x, retrieve.Query{Text: "honey"}); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
