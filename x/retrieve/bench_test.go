package retrieve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/internal/storetest"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

// noise is an embedder whose vectors have the length of real ones and no meaning.
type noise struct{ dimensions int }

func (noise) Info() llm.Info { return llm.Info{Provider: "noise", Model: "noise", Mode: llm.Mock} }

func (n noise) Embed(_ context.Context, req *llm.EmbedRequest) (*llm.Embedding, error) {
	got := &llm.Embedding{}
	for _, text := range req.Texts {
		r := rand.New(rand.NewPCG(uint64(len(text)), uint64(text[len(text)-1])))
		v := make([]float32, n.dimensions)
		for i := range v {
			v[i] = r.Float32() - 0.5
		}
		got.Vectors = append(got.Vectors, v)
	}
	return got, nil
}

// sizes are the numbers of pieces; STONE_PIECES=200000 adds one.
func sizes() []int {
	all := []int{10_000}
	if n, err := strconv.Atoi(os.Getenv("STONE_PIECES")); err == nil {
		all = append(all, n)
	}
	return all
}

// BenchmarkIndex indexes 10,000 pieces with vectors of 1,536 numbers, whose embedder takes no time.
func BenchmarkIndex(b *testing.B) {
	files := storetest.Library(10_000)
	for b.Loop() {
		build(b, opened(b, noise{1536}), files)
	}
	b.ReportMetric(10_000*float64(b.N)/b.Elapsed().Seconds(), "pieces/s")
}

// BenchmarkIndexAgain indexes the same folder once more.
func BenchmarkIndexAgain(b *testing.B) {
	files, x := storetest.Library(10_000), opened(b, noise{1536})
	build(b, x, files)
	for b.Loop() {
		build(b, x, files)
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range sizes() {
		file := filepath.Join(b.TempDir(), "index.db")
		store, err := sqlite.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		x := &retrieve.Index{Store: store, Embedder: noise{1536}}
		build(b, x, storetest.Library(n))
		b.Run(fmt.Sprintf("%d/first of a process", n), func(b *testing.B) {
			start := cputime.Used()
			for b.Loop() {
				s, err := sqlite.Open(file)
				if err == nil {
					_, err = (&retrieve.Index{Store: s, Embedder: noise{1536}}).Search(b.Context(), retrieve.Query{Text: "?!"})
				}
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
			b.ReportMetric((cputime.Used()-start).Seconds()*1000/float64(b.N), "CPU-ms/op")
		})
		for name, q := range map[string]retrieve.Query{
			"words":              {Text: "w3 w150 w900 w4000", Words: true},
			"vectors":            {Text: "?!"},
			"both":               {Text: "w150 w900 w4000"},
			"both in one folder": {Text: "w150 w900 w4000", Under: "0"},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				if _, err := x.Search(b.Context(), q); err != nil { // which reads the codes
					b.Fatal(err)
				}
				start := cputime.Used()
				for b.Loop() {
					if _, err := x.Search(b.Context(), q); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((cputime.Used()-start).Seconds()*1000/float64(b.N), "CPU-ms/op")
			})
		}
		store.Close()
	}
}
