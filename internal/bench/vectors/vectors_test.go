// Package vectors compares the search of package retrieve with a graph of neighbours (HNSW):
//
//	STONE_VECTORS=10000,50000,200000 go test ./vectors -run '^$' -bench . -benchtime 1x -timeout 3h
package vectors

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/coder/hnsw"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

// vectorsVar has the numbers of vectors of BenchmarkVectors: STONE_VECTORS=10000,200000.
const vectorsVar = "STONE_VECTORS"

const (
	dimensions = 1536
	questions  = 50
	nearest    = 10
	mostBuild  = 10 * time.Minute // CPU time for a graph
)

// cloud is an embedder. The text "v7" has the vector number 7, which is always the same.
type cloud struct {
	base  [][]float32
	mix   func(c *cloud, r *rand.Rand, n int, v []float32)
	asked map[int][]float32
}

// clouds are kinds of vectors: around 50 topics that have nothing in common, or spread over 48 directions.
var clouds = map[string]func(c *cloud, r *rand.Rand, n int, v []float32){
	"topics": func(c *cloud, r *rand.Rand, n int, v []float32) {
		add(v, c.base[n%len(c.base)], 1)
		noise(v, r, 0.5)
	},
	"spread": func(c *cloud, r *rand.Rand, _ int, v []float32) {
		for _, direction := range c.base[:48] {
			add(v, direction, float32(r.NormFloat64()))
		}
		noise(v, r, 0.5)
	},
}

func newCloud(kind string, asked int) *cloud {
	c := &cloud{mix: clouds[kind], asked: map[int][]float32{}}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		v := make([]float32, dimensions)
		noise(v, r, 1)
		c.base = append(c.base, v)
	}
	for i := range questions {
		c.asked[asked+i] = c.vector(asked + i)
	}
	return c
}

func add(v, other []float32, scale float32) {
	for i := range v {
		v[i] += scale * other[i]
	}
}

func noise(v []float32, r *rand.Rand, scale float64) {
	for i := range v {
		v[i] += float32(scale * r.NormFloat64())
	}
}

func (c *cloud) vector(n int) []float32 {
	if v := c.asked[n]; v != nil {
		return v
	}
	v := make([]float32, dimensions)
	c.mix(c, rand.New(rand.NewPCG(uint64(n), 7)), n, v)
	return v
}

func (*cloud) Info() llm.Info { return llm.Info{Provider: "cloud", Model: "cloud", Mode: llm.Mock} }

func (c *cloud) Embed(_ context.Context, req *llm.EmbedRequest) (*llm.Embedding, error) {
	got := &llm.Embedding{}
	for _, text := range req.Texts {
		n, err := strconv.Atoi(text[strings.LastIndexByte(text, 'v')+1:])
		if err != nil {
			return nil, err
		}
		got.Vectors = append(got.Vectors, c.vector(n))
	}
	return got, nil
}

// exact returns the nearest of n vectors to each question, which are the vectors after them.
func (c *cloud) exact(n int) []map[int]bool {
	type found struct {
		n    int
		near float32
	}
	asked, best := make([][]float32, questions), make([][]found, questions)
	for i := range asked {
		asked[i] = c.vector(n + i)
	}
	for i := range n {
		v := c.vector(i)
		for j, q := range asked {
			at := found{i, -hnsw.CosineDistance(q, v)}
			if len(best[j]) < nearest || at.near > best[j][nearest-1].near {
				best[j] = append(best[j], at)
				slices.SortFunc(best[j], func(a, b found) int { return cmp.Compare(b.near, a.near) })
				best[j] = best[j][:min(len(best[j]), nearest)]
			}
		}
	}
	sets := make([]map[int]bool, questions)
	for j := range best {
		sets[j] = map[int]bool{}
		for _, f := range best[j] {
			sets[j][f.n] = true
		}
	}
	return sets
}

func live() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// BenchmarkVectors searches the same vectors in an index of package retrieve and in a graph of coder/hnsw: CPU time of a
// question, recall@10, CPU time to build, live memory. It builds for minutes, and only if STONE_VECTORS says how many.
func BenchmarkVectors(b *testing.B) {
	if os.Getenv(vectorsVar) == "" {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(clouds)) {
		for text := range strings.SplitSeq(os.Getenv(vectorsVar), ",") {
			n, err := strconv.Atoi(text)
			if err != nil {
				b.Fatalf("%s=10000,200000 says how many", vectorsVar)
			}
			c := newCloud(kind, n)
			r := &rival{n: n, want: c.exact(n)}
			b.Run(fmt.Sprintf("%s/%d/stone", kind, n), func(b *testing.B) { flat(b, c, r) })
			for _, neighbours := range []int{16, 64} {
				b.Run(fmt.Sprintf("%s/%d/coder-hnsw-%d", kind, n, neighbours), func(b *testing.B) { graph(b, c, r, neighbours) })
			}
		}
	}
}

// rival measures a way to search n vectors.
type rival struct {
	n    int
	want []map[int]bool
}

// built is what it took to build an index.
type built struct{ seconds, before float64 }

func build(work func() error) (built, error) {
	of, start := built{before: live()}, cputime.Used()
	err := work()
	of.seconds = (cputime.Used() - start).Seconds()
	return of, err
}

func (r *rival) measure(b *testing.B, of built, search func(i int) ([]int, error)) {
	right := 0
	for i := range questions { // the first reads the codes
		found, err := search(i)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range found {
			if r.want[i][f] {
				right++
			}
		}
	}
	memory, start := live()-of.before, cputime.Used()
	for b.Loop() {
		for i := range questions {
			if _, err := search(i); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric((cputime.Used()-start).Seconds()*1000/float64(b.N*questions), "CPU-ms/question")
	b.ReportMetric(float64(right)/(nearest*questions), "recall@10")
	b.ReportMetric(of.seconds, "build-CPU-s")
	b.ReportMetric(memory, "live-MB")
	b.ReportMetric(0, "ns/op")
}

// flat is the scan of codes, and the exact comparison of the best.
func flat(b *testing.B, c *cloud, r *rival) {
	store, err := sqlite.Open(filepath.Join(b.TempDir(), "index.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	x := &retrieve.Index{Store: store, Embedder: c}
	of, err := build(func() error {
		files := fstest.MapFS{}
		for i := range r.n / 100 {
			var text strings.Builder
			for j := range 100 {
				fmt.Fprintf(&text, "# %d\n\nv%d\n\n", j, 100*i+j)
			}
			files[fmt.Sprintf("%d.md", i)] = &fstest.MapFile{Data: []byte(text.String())}
		}
		_, err := stone.Produce(b.Context(), x.Pipeline("index", files), retrieve.Indexed, stone.Config{})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("10", func(b *testing.B) {
		r.measure(b, of, func(i int) (found []int, err error) {
			a, err := x.Search(b.Context(), retrieve.Query{Text: fmt.Sprintf("v%d", r.n+i), K: nearest})
			for _, hit := range a.Hits {
				at, _ := strconv.Atoi(hit.Text[1:])
				found = append(found, at)
			}
			return found, err
		})
	})
}

// graph is a graph of neighbours, whose package has 16 by default. Its search stops when no neighbour is nearer and it has all
// candidates, so that more candidates find more; EfSearch, their number, changes little alone.
func graph(b *testing.B, c *cloud, r *rival, neighbours int) {
	g := hnsw.NewGraph[int]()
	g.M = neighbours
	of, err := build(func() error {
		start := cputime.Used()
		for i := range r.n {
			if g.Add(hnsw.MakeNode(i, c.vector(i))); cputime.Used()-start > mostBuild {
				return fmt.Errorf("%d of %d vectors took %v of CPU time", i+1, r.n, mostBuild)
			}
		}
		return nil
	})
	if err != nil {
		b.Log(err)
		return
	}
	for _, candidates := range []int{nearest, 1000} {
		g.EfSearch = max(20, candidates)
		b.Run(strconv.Itoa(candidates), func(b *testing.B) {
			r.measure(b, of, func(i int) (found []int, err error) {
				q := c.vector(r.n + i)
				nodes, near := g.Search(q, candidates), map[int]float32{}
				for _, node := range nodes {
					near[node.Key] = hnsw.CosineDistance(q, node.Value)
				}
				slices.SortFunc(nodes, func(a, b hnsw.Node[int]) int { return cmp.Compare(near[a.Key], near[b.Key]) })
				for _, node := range nodes[:min(len(nodes), nearest)] {
					found = append(found, node.Key)
				}
				return found, nil
			})
		})
	}
	runtime.KeepAlive(g)
}
