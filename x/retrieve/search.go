package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/llm"
)

// A Query is a question to an index. Only Text is required.
type Query struct {
	Text string `json:"text"`
	// K is the maximum number of passages: 1 to 100; 0 means 10.
	K int `json:"k,omitempty"`
	// Where selects documents whose metadata contains all of these values. Each document has a "type": "text", "markdown", "html"
	// or the extension of its reader; and a "title" if it has one.
	Where map[string]string `json:"where,omitempty"`
	// Under selects the documents below a folder, or a single document.
	Under string `json:"under,omitempty"`
	// Words means to rank passages only by words, so that no vector of the question is computed.
	Words bool `json:"words,omitempty"`
}

// Check returns an error if the query is invalid.
func (q *Query) Check() error {
	switch {
	case strings.TrimSpace(q.Text) == "":
		return errors.New("the question is empty: set Query.Text")
	case len(q.Text) > 8<<10:
		return fmt.Errorf("the question has %d bytes: want at most 8 KiB", len(q.Text))
	case q.K < 0 || q.K > 100:
		return fmt.Errorf("%d passages: want 1 to 100", q.K)
	case len(q.Where) > 32: // each value adds a condition to the statement
		return fmt.Errorf("where has %d names: want at most 32", len(q.Where))
	case len(q.Under) > 4<<10:
		return fmt.Errorf("under has %d bytes: want at most 4 KiB", len(q.Under))
	}
	for name, value := range q.Where {
		if len(name)+len(value) > 1<<10 {
			return fmt.Errorf("where: %.20q has %d bytes with its value: want at most 1 KiB", name, len(name)+len(value))
		}
	}
	return nil
}

// folderOf returns the name of a folder in the form of document names, or "" for the whole index.
func folderOf(under string) string {
	if under = path.Join(".", under); under == "." {
		return ""
	}
	return under
}

func (q *Query) most() int { return cmp.Or(q.K, 10) }

// A Hit is a passage that was found.
type Hit struct {
	Passage
	// Score is the sum of 1/(60+rank) over the ranks by words and by vectors.
	Score float64 `json:"score"`
	// WordRank and VectorRank are the ranks by words and by vectors, counted from 1. Zero means that this ranking does not
	// contain the passage.
	WordRank   int `json:"word-rank,omitempty"`
	VectorRank int `json:"vector-rank,omitempty"`
	// FusedRank is the rank by Score, counted from 1, of a passage that Index.Rerank has reordered.
	FusedRank int `json:"fused-rank,omitempty"`
	// Relevance is the score that Index.Rerank has given to the passage, if any.
	Relevance *float64 `json:"relevance,omitempty"`
}

// An Answer contains the passages found, best first.
type Answer struct {
	Hits []Hit `json:"hits"`
	// By names the rankings: "words", or "words and vectors".
	By    string       `json:"by"`
	Usage budget.Usage `json:"usage,omitzero"` // cost of embedding the question
}

const (
	byWords = "words"
	byBoth  = "words and vectors"
)

// Search returns the passages that match a query. Within a run, the cost of the question's vector is charged to the run's
// account, and the answer is recorded as a step, which a resumed run replays.
func (x *Index) Search(ctx context.Context, q Query) (Answer, error) {
	a, err := paid(ctx, "search", q, x.Quote(ctx, q), func(ctx context.Context) (Answer, error) { return x.find(ctx, q) },
		func(a Answer) budget.Usage { return a.Usage })
	if err != nil {
		return a, err
	}
	return a, x.rerank(ctx, &q, &a)
}

// paid calls work as a recorded step that is charged to the run's account. Outside a run, it only calls work.
func paid[A, T any](ctx context.Context, name string, in A, quote budget.Quote, work func(context.Context) (T, error), cost func(T) budget.Usage) (v T, err error) {
	if stone.In(ctx).Path() == "" {
		return work(ctx)
	}
	draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), name, quote)
	if err != nil {
		return v, err
	}
	defer draw.Close()
	v, err = stone.Step(draw.Context(ctx), name, in, func(ctx context.Context, _ A) (v T, err error) {
		if err := draw.Begin(); err != nil {
			return v, err
		}
		return work(ctx)
	})
	if err == nil {
		draw.End(cost(v))
	} else if used, known := budget.CostOf(err); known {
		draw.End(used)
	}
	return v, err
}

// Effects returns the effects of searches that are restricted by q: reading the store and, unless only words are ranked, calling
// the embedder.
func (x *Index) Effects(q Query) []string {
	remote := x.Store != nil && x.Store.dialect.Remote
	asks := x.Embedder != nil && !q.Words && x.Embedder.Info().Mode != llm.Mock
	switch {
	case remote:
		return []string{effect.Net}
	case asks:
		return []string{effect.FSRead, effect.Net}
	}
	return []string{effect.FSRead}
}

// Quote estimates the cost of a Lookup for q.
func (x *Index) Quote(ctx context.Context, q Query) budget.Quote {
	if x.Embedder == nil || q.Words {
		return budget.Quote{}
	}
	return llm.QuoteEmbed(ctx, x.Embedder, &llm.EmbedRequest{Texts: []string{q.Text}, Query: true})
}

// Lookup is like Search, but neither charges nor records the search, because its callers do so themselves, as the applicator does
// for a capability. The answer or the error contains the cost.
func (x *Index) Lookup(ctx context.Context, q Query) (Answer, error) {
	a, err := x.find(ctx, q)
	if err != nil {
		return a, err
	}
	return a, budget.Costly(x.rerank(ctx, &q, &a), a.Usage)
}

// find returns the passages of an answer, or the candidates for a reranker.
func (x *Index) find(ctx context.Context, q Query) (a Answer, err error) {
	if err := q.Check(); err != nil {
		return a, err
	}
	n := max(5*q.most(), 50) // number of candidates in each ranking
	words, strong, err := x.Store.byWords(ctx, &q, n)
	if err != nil {
		return a, err
	}
	vectors, err := x.nearest(ctx, &q, n, &a)
	if err != nil {
		return a, budget.Costly(err, a.Usage)
	}
	if len(vectors) > 0 { // a passage that is low in both rankings must not beat the best of one ranking
		words = words[:strong]
	}
	if err := x.fuse(ctx, &q, words, vectors, &a); err != nil {
		return a, budget.Costly(err, a.Usage)
	}
	return a, nil
}

// nearest ranks by the question's vector, if the index has vectors.
func (x *Index) nearest(ctx context.Context, q *Query, n int, a *Answer) ([]place, error) {
	a.By = byWords
	if x.Embedder == nil || q.Words {
		return nil, nil
	}
	st, err := x.Store.made(ctx, x.Store.db)
	switch built := st.Embedder; {
	case err != nil:
		return nil, x.Store.explain(err)
	case built == "":
		return nil, nil
	case built != x.name():
		return nil, &EmbedderError{built, x.name()}
	}
	got, err := x.Embedder.Embed(ctx, &llm.EmbedRequest{Texts: []string{q.Text}, Query: true})
	if err != nil {
		return nil, err
	}
	a.By, a.Usage = byBoth, got.Usage
	if err := got.Check(1); err != nil {
		return nil, err
	}
	return x.Store.byVector(ctx, q, st.Embedder, got.Vectors[0], n)
}

// rrf is the constant that the authors of reciprocal rank fusion propose.
const rrf = 60

// fuse combines two rankings.
func (x *Index) fuse(ctx context.Context, q *Query, words, vectors []place, a *Answer) error {
	ranked := map[int64]*Hit{}
	var ids []int64
	for which, list := range [][]place{words, vectors} {
		for _, p := range list {
			h := ranked[p.id]
			if h == nil {
				h = &Hit{}
				ranked[p.id], ids = h, append(ids, p.id)
			}
			h.Score += 1 / float64(rrf+p.rank)
			if which == 0 {
				h.WordRank = p.rank
			} else {
				h.VectorRank = p.rank
			}
		}
	}
	slices.SortFunc(ids, func(i, j int64) int { // if scores are equal, the ranking by words decides
		a, b := ranked[i], ranked[j]
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(min(b.WordRank, 1), min(a.WordRank, 1)), cmp.Compare(i, j))
	})
	most := q.most()
	if x.Rerank != nil {
		most = max(most, 50)
	}
	ids = ids[:min(len(ids), most)]
	found, err := x.Store.passages(ctx, ids)
	if err != nil {
		return err
	}
	a.Hits = []Hit{}
	for _, id := range ids {
		if p, ok := found[id]; ok { // the passage may just have been removed
			h := ranked[id]
			h.Passage = p
			a.Hits = append(a.Hits, *h)
		}
	}
	return nil
}

// rerank returns the candidates in the order of Index.Rerank, at most as many as the query requests.
func (x *Index) rerank(ctx context.Context, q *Query, a *Answer) error {
	if x.Rerank == nil || len(a.Hits) == 0 {
		return nil
	}
	given := slices.Clone(a.Hits)
	for i := range given {
		given[i].FusedRank = i + 1
	}
	order, err := x.Rerank(ctx, q.Text, given)
	if err != nil {
		return fmt.Errorf("rerank: %w", err)
	}
	hits, seen := []Hit{}, map[int]bool{}
	for _, i := range order {
		if i < 0 || i >= len(a.Hits) || seen[i] {
			return fmt.Errorf("rerank: it returned position %d of %d passages: want each at most once", i, len(a.Hits))
		}
		seen[i] = true
		hits = append(hits, given[i])
	}
	a.Hits = hits[:min(len(hits), q.most())]
	return nil
}

// nowhere is a folder that contains no document.
const nowhere = ".."

// Within returns a copy of q that is restricted by base: base.K is the default and the maximum of K, the conditions in base.Where
// are added, Under must be below base.Under, and base.Words disables vectors. If q.Where contradicts base.Where, the result finds
// nothing.
func (q Query) Within(base Query) Query {
	if base.K > 0 {
		q.K = min(cmp.Or(max(q.K, 0), base.K), base.K)
	}
	contradicts := q.Under == nowhere
	if len(base.Where) > 0 {
		where := maps.Clone(q.Where)
		if where == nil {
			where = map[string]string{}
		}
		maps.Copy(where, base.Where)
		for name, value := range q.Where {
			contradicts = contradicts || where[name] != value
		}
		q.Where = where
	}
	if under := folderOf(base.Under); under != "" {
		below := folderOf(path.Join("/", q.Under))
		if below != under && !strings.HasPrefix(below, under+"/") {
			below = path.Join(under, below)
		}
		q.Under = below
	}
	if contradicts {
		q.Under = nowhere
	}
	q.Words = q.Words || base.Words
	return q
}
