package retrieve_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/eval"
	"github.com/stonelayer/stone/x/retrieve"
)

// things and actions are the words of documents, each with another word for the same.
var (
	things  = [][2]string{{"pump", "compressor"}, {"filter", "strainer"}, {"valve", "faucet"}, {"motor", "engine"}, {"hose", "tube"}, {"screen", "monitor"}, {"battery", "accumulator"}, {"fan", "ventilator"}}
	actions = [][2]string{{"replace", "swap"}, {"clean", "wash"}, {"inspect", "examine"}, {"lubricate", "grease"}, {"discard", "scrap"}}
)

// manual returns a folder of 48 documents, and 120 questions with the gains of the documents that answer them.
func manual() (files fstest.MapFS, rows []any) {
	files = fstest.MapFS{}
	for i, thing := range things {
		overview := fmt.Sprintf("%s/overview.md", thing[0])
		files[overview] = &fstest.MapFile{Data: fmt.Appendf(nil, "# The %s\n\nEach %s has a plate with its number.\n", thing[0], thing[0])}
		for j, action := range actions {
			file, code := fmt.Sprintf("%s/%s.md", thing[0], action[0]), fmt.Sprintf("E%d%02d", i+1, j)
			files[file] = &fstest.MapFile{Data: fmt.Appendf(nil, "# How to %s it\n\nDisconnect the machine first, and wear gloves.\n\n## Steps\n\nTo %s the %s, open the cover. The display shows %s until it is done.\n", action[0], action[0], thing[0], code)}
			gains := map[string]float64{file: 2, overview: 1}
			for kind, text := range map[string]string{
				"same words":  fmt.Sprintf("How do I %s the %s?", action[0], thing[0]),
				"other words": fmt.Sprintf("What do I have to do to %s the %s?", action[1], thing[1]),
				"code":        fmt.Sprintf("What is %s?", code),
			} {
				if kind == "code" {
					gains = map[string]float64{file: 1}
				}
				rows = append(rows, map[string]any{"question": map[string]string{"text": text}, "expected": gains, "kind": kind})
				gains = map[string]float64{file: 2, overview: 1}
			}
		}
	}
	return files, rows
}

// meanings is an embedder that knows words for the same, and like real ones has no idea of codes.
type meanings struct{ script.Embedder }

var code = regexp.MustCompile(`\w*\d\w*|\b(the|to|a|is|it|do|I|how|what|must|be|done)\b`)

func (m *meanings) Embed(ctx context.Context, req *llm.EmbedRequest) (*llm.Embedding, error) {
	plain := &llm.EmbedRequest{Query: req.Query}
	for _, text := range req.Texts {
		text = code.ReplaceAllString(strings.ToLower(text), "")
		for _, pair := range slices.Concat(things, actions) {
			text = strings.ReplaceAll(text, pair[1], pair[0])
		}
		plain.Texts = append(plain.Texts, "text "+text)
	}
	return m.Embedder.Embed(ctx, plain)
}

type question struct {
	Text string `json:"text"`
}

// ranked scores the files of an answer.
func ranked(name string, score func(files []string, gains map[string]float64) float64) eval.Scorer {
	return eval.Func(name, func(_ context.Context, c eval.Case) (eval.Score, error) {
		var gains map[string]float64
		var files []string
		if err := cmp.Or(json.Unmarshal(c.Output, &files), json.Unmarshal(c.Expected, &gains)); err != nil {
			return eval.Score{}, err
		}
		return eval.Score{Value: score(files, gains)}, nil
	})
}

// recall is the part of the documents with a gain that is among the first k files.
func recall(k int) eval.Scorer {
	return ranked(fmt.Sprintf("recall@%d", k), func(files []string, gains map[string]float64) float64 {
		found := 0
		for _, f := range files[:min(k, len(files))] {
			if gains[f] > 0 {
				found++
			}
		}
		return float64(found) / float64(len(gains))
	})
}

// ndcg is the sum of the first k files' gains, each divided by log2(1+rank), relative to the largest possible sum
// (Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20(4), 2002).
func ndcg(k int) eval.Scorer {
	sum := func(gains []float64) (dcg float64) {
		for i, g := range gains[:min(k, len(gains))] {
			dcg += g / math.Log2(float64(i)+2)
		}
		return dcg
	}
	return ranked(fmt.Sprintf("nDCG@%d", k), func(files []string, gains map[string]float64) float64 {
		var got, ideal []float64
		for _, f := range files {
			got = append(got, gains[f])
		}
		for _, g := range gains {
			ideal = append(ideal, g)
		}
		slices.SortFunc(ideal, func(a, b float64) int { return cmp.Compare(b, a) })
		return sum(got) / sum(ideal)
	})
}

// Words and vectors together meet a gate that each of them alone fails.
func TestQuality(t *testing.T) {
	files, rows := manual()
	x := opened(t, new(meanings))
	build(t, x, files)
	asked, found := dag.NewType[question]("question"), dag.NewType[[]string]("found")
	evaluated := func(name string, search func(context.Context, retrieve.Query) (retrieve.Answer, error)) eval.Report {
		p := stone.Func("find", asked, found, func(ctx context.Context, q question) ([]string, error) {
			a, err := search(ctx, retrieve.Query{Text: q.Text})
			var files []string
			for i := range a.Hits {
				if f := a.Hits[i].File; !slices.Contains(files, f) {
					files = append(files, f)
				}
			}
			return files, err
		})
		report, err := eval.Run(t.Context(), eval.Config{
			Pipeline: p, Data: eval.Data{Rows: rows, Slices: []string{"kind"}}, Scorers: []eval.Scorer{recall(5), ndcg(5)},
			Gate: &eval.Gate{AtLeast: map[string]float64{"recall@5": 0.85, "nDCG@5": 0.8}},
		}, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s\n%s", name, report.Gate.Verdict, report.Text())
		return report
	}
	byWords := evaluated("words", func(ctx context.Context, q retrieve.Query) (retrieve.Answer, error) {
		q.Words = true
		return x.Search(ctx, q)
	})
	byVectors := evaluated("vectors", func(ctx context.Context, q retrieve.Query) (retrieve.Answer, error) {
		q.K = 100
		a, err := x.Search(ctx, q)
		a.Hits = slices.DeleteFunc(a.Hits, func(h retrieve.Hit) bool { return h.VectorRank == 0 || h.VectorRank > 10 })
		slices.SortFunc(a.Hits, func(a, b retrieve.Hit) int { return cmp.Compare(a.VectorRank, b.VectorRank) })
		return a, err
	})
	both := evaluated("both", x.Search)
	if both.Gate.Verdict != eval.Passed || byWords.Gate.Verdict != eval.GateFailed || byVectors.Gate.Verdict != eval.GateFailed {
		t.Errorf("words %s, vectors %s, both %s", byWords.Gate.Verdict, byVectors.Gate.Verdict, both.Gate.Verdict)
	}
	if both.Scores[1].Mean <= max(byWords.Scores[1].Mean, byVectors.Scores[1].Mean) {
		t.Errorf("nDCG of both is %v, of words %v, of vectors %v", both.Scores[1].Mean, byWords.Scores[1].Mean, byVectors.Scores[1].Mean)
	}
}
