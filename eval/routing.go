package eval

import (
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/eval/stat"
	"github.com/stonelayer/stone/internal/text"
)

// Routing compares a pipeline that routes between small and large models with each model alone, on
// the same cases. It asks every model about every case, so it is meant for recorded answers: see
// package call/answers.
type Routing struct {
	Data   Data
	Scorer Scorer
	// Routed, Small and Large are the pipelines to compare. The report uses the best small one.
	Routed stone.Ashlar
	Small  []stone.Ashlar
	Large  stone.Ashlar
	// LargeCap is the id of the large capability, whose share of the cases is reported.
	LargeCap string
}

// A RoutingReport shows the benefit of routing.
type RoutingReport struct {
	Cases        int     `json:"cases"`
	Accuracy     float64 `json:"accuracy"`      // mean score of the routed pipeline
	LargeShare   float64 `json:"large_share"`   // share of the cases that asked the large model
	GapRecovered float64 `json:"gap_recovered"` // (accuracy - small_only) / (large_only - small_only); 0 without a gap
	SmallOnly    float64 `json:"small_only"`    // accuracy of the best small model alone
	LargeOnly    float64 `json:"large_only"`    // accuracy of the large model alone
	CostUSD      float64 `json:"cost_usd"`
	Ways         []Way   `json:"ways"`
	Text         string  `json:"text"` // the table
}

// A Way is one of the compared pipelines.
type Way struct {
	Name string `json:"name"`
	stat.Estimate
	NoAnswer   int     `json:"no_answer"`
	Errors     int     `json:"errors"`
	LargeShare float64 `json:"large_share"`
	CostUSD    float64 `json:"cost_usd"`
}

// Routed is the type of the last node of the pipeline of a Routing.
var Routed = dag.NewType[RoutingReport]("eval/routing")

// Pipeline returns the comparison as a pipeline. It evaluates all ways concurrently and ends with
// the report. An error says which field is missing, or what is wrong with the data.
func (r Routing) Pipeline() (stone.Ashlar, error) {
	if len(r.Small) == 0 || r.LargeCap == "" {
		return stone.Ashlar{}, errors.New("eval: a Routing needs Small and LargeCap")
	}
	ways := append([]stone.Ashlar{r.Routed, r.Large}, r.Small...)
	lanes := []stone.FanPart{stone.AllLanes()}
	for _, w := range ways {
		p, err := Pipeline(context.Background(), Config{Pipeline: w, Data: r.Data, Scorers: []Scorer{r.Scorer}}, stone.Config{})
		if err != nil {
			return stone.Ashlar{}, err
		}
		lanes = append(lanes, stone.Seq(w.Name(), p))
	}
	return stone.Seq("routing", stone.Parallel("ways", lanes...),
		stone.Reduce(stone.Func("compare", dag.All(Result), Routed, func(_ context.Context, reports []Report) (RoutingReport, error) {
			if len(reports) != len(ways) {
				return RoutingReport{}, fmt.Errorf("%d of %d ways were evaluated", len(reports), len(ways))
			}
			return r.report(reports), nil
		}))), nil
}

// report compares the evaluations of the routed pipeline, the large model and the small ones.
func (r Routing) report(reports []Report) RoutingReport {
	var ways []Way
	for _, report := range reports {
		s := report.Scores[0]
		w := Way{Name: report.Pipeline, Estimate: s.Estimate, NoAnswer: s.NoAnswer, Errors: s.Errors, CostUSD: report.Cost.USD}
		for _, a := range report.Asked {
			if a.Cap == r.LargeCap {
				w.LargeShare = a.Share
			}
		}
		ways = append(ways, w)
	}
	routed, large, small := ways[0], ways[1], ways[2]
	for _, w := range ways[3:] {
		if w.Mean > small.Mean {
			small = w
		}
	}
	out := RoutingReport{Cases: reports[0].Cases, Accuracy: routed.Mean, LargeShare: routed.LargeShare,
		SmallOnly: small.Mean, LargeOnly: large.Mean, CostUSD: routed.CostUSD, Ways: ways}
	if gap := large.Mean - small.Mean; gap > 0 {
		out.GapRecovered = (routed.Mean - small.Mean) / gap
	}
	out.Text = tables(out.part())
	return out
}

func (r RoutingReport) part() part {
	p := part{head: []string{"way", "mean", "95 %", "asked large", "cost", "no answer", "errors"}}
	for _, w := range r.Ways {
		p.rows = append(p.rows, []string{text.Line(w.Name), mean4(w.Mean), interval(w.Estimate), percent(w.LargeShare), usd(w.CostUSD), fmt.Sprint(w.NoAnswer), fmt.Sprint(w.Errors)})
	}
	p.notes = []string{fmt.Sprintf("%d cases: %s of the gap at %s large calls", r.Cases, percent(r.GapRecovered), percent(r.LargeShare))}
	return p
}
