package eval

import (
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/text"
)

// Routing compares a pipeline that routes requests between small and large models with each of these models alone, on the same
// cases. Because every model answers every case, use it with recorded answers; see package call/answers.
type Routing struct {
	Data   Data
	Scorer Scorer
	// Routed, Small and Large are the pipelines to compare. Of the pipelines in Small, the report uses the one with the best
	// score.
	Routed stone.Ashlar
	Small  []stone.Ashlar
	Large  stone.Ashlar
	// LargeCap is the id of the large capability. The report contains the share of the cases that call it.
	LargeCap string
	// Gate judges the report by its rules for routing, and the evaluation of Routed by its other rules. It may be nil.
	Gate *Gate
}

// A RoutingReport shows the benefit of routing. Gap and GapRecovered are computed by case, over the cases in which the routed
// pipeline, the large model and the best small model all have a score.
type RoutingReport struct {
	Cases int `json:"cases"`
	// Gap is the score of the large model alone minus the score of the best small model alone. If its interval is not entirely
	// above 0, there may be no gap to recover, and the N of GapRecovered is 0.
	Gap          Estimate `json:"gap"`
	GapRecovered Estimate `json:"gap_recovered"` // (routed - small) / (large - small)
	LargeShare   Estimate `json:"large_share"`   // share of the cases that called the large model
	// CostShare is the cost of the routed pipeline divided by the cost of the large model alone. If prices are unknown, its N is
	// 0.
	CostShare Estimate `json:"cost_share"`
	Ways      []way    `json:"ways"` // the routed pipeline, the large model and the small ones
	Gate      *Verdict `json:"gate,omitempty"`
	Text      string   `json:"text"` // report as tables
}

// A way is one of the pipelines that are compared.
type way struct {
	Name string `json:"name"`
	Estimate
	NoAnswer   int      `json:"no_answer"`
	Errors     int      `json:"errors"`
	LargeShare Estimate `json:"large_share"`
	USD        Estimate `json:"usd"` // cost of one case
}

// Routed is the type of the last node in the pipeline that Routing.Pipeline returns.
var Routed = dag.NewType[RoutingReport]("eval/routing")

// went is the result of a way: its report and the values of each case that are needed for the comparison.
type went struct {
	Report Report     `json:"report"`
	Scores []*float64 `json:"scores"` // scores by case; null if all trials are errors
	Large  []float64  `json:"large"`  // share of the trials that called the large model, by case
	USD    []float64  `json:"usd"`
}

var wentType = dag.NewType[went]("eval/way")

// Pipeline returns the comparison as a pipeline, which evaluates all ways concurrently and ends with the report. The error
// describes a missing field, or a fault in the data or the gate.
func (r Routing) Pipeline() (stone.Ashlar, error) {
	if len(r.Small) == 0 || r.LargeCap == "" {
		return stone.Ashlar{}, errors.New("eval: a Routing needs Small and LargeCap")
	}
	ways := append([]stone.Ashlar{r.Routed, r.Large}, r.Small...)
	lanes := []stone.FanPart{stone.AllLanes()}
	var e *evaluation
	for i, w := range ways {
		cfg := Config{Pipeline: w, Data: r.Data, Scorers: []Scorer{r.Scorer}}
		if i == 0 {
			cfg.Gate = r.Gate.alone()
		}
		var err error
		if e, err = newEvaluation(context.Background(), cfg, stone.Config{}); err != nil {
			return stone.Ashlar{}, err
		}
		p, err := e.pipeline()
		if err != nil {
			return stone.Ashlar{}, err
		}
		lanes = append(lanes, stone.Seq(w.Name(), p, r.way(e)))
	}
	compare := stone.Func("compare", dag.Lanes(wentType), Routed, func(_ context.Context, all []went) (RoutingReport, error) {
		if len(all) != len(ways) {
			return RoutingReport{}, fmt.Errorf("%d of %d ways were evaluated", len(all), len(ways))
		}
		return r.report(e, all), nil
	}, stone.Version(r.Gate.routing().String()))
	return stone.Seq("routing", stone.Parallel("ways", lanes...), stone.Reduce(compare)), nil
}

// way returns the leaf that reads the results of one evaluation by case.
func (r Routing) way(e *evaluation) stone.Ashlar {
	return stone.New("way", wentType, func(_ context.Context, d dag.DAG) (w went, err error) {
		if w.Report, err = Result.From(d); err != nil {
			return w, err
		}
		t, err := e.tally(d)
		if err != nil {
			return w, err
		}
		for i, trials := range t.trials {
			c := caseResult(trials, t.costs[i], 1)
			w.Scores, w.USD = append(w.Scores, c.Scores[0]), append(w.USD, c.USD)
			w.Large = append(w.Large, shareOf(t.costs[i], r.LargeCap))
		}
		return w, nil
	}, stone.Queries(Result, dag.All(results)))
}

// report returns the comparison of the ways, which are the routed pipeline, the large model and the small models, in this order.
func (r Routing) report(e *evaluation, all []went) RoutingReport {
	out := RoutingReport{Cases: all[0].Report.Cases}
	for _, w := range all {
		s := w.Report.Scores[0]
		out.Ways = append(out.Ways, way{w.Report.Pipeline, s.Estimate, s.NoAnswer, s.Errors,
			averageOf(w.Large, e.clusters(places(len(w.Large)))), student(w.USD, e.clusters(places(len(w.USD))))})
	}
	best := 2
	for i := range out.Ways[2:] {
		if out.Ways[2+i].Mean > out.Ways[best].Mean {
			best = 2 + i
		}
	}
	routed, large, small, at := paired(all[0], all[1], all[best])
	clusters := e.clusters(at)
	out.LargeShare, out.Gap = out.Ways[0].LargeShare, difference(small, large, clusters)
	if out.Gap.Low > 0 {
		out.GapRecovered = ratioOf(less(routed, small), less(large, small), clusters)
	}
	out.CostShare = ratioOf(all[0].USD, all[1].USD, e.clusters(places(len(all[0].USD))))
	if rules := r.Gate.routing(); r.Gate != nil {
		out.Gate = rules.judge(all[0].Report.Gate, out)
	}
	out.Text = tables(out.parts()...)
	return out
}

// paired returns the indexes of the cases in which all three lists have a score, and the scores of these cases.
func paired(routed, large, small went) (a, b, c []float64, at []int) {
	for i, s := range routed.Scores {
		if l, m := large.Scores[i], small.Scores[i]; s != nil && l != nil && m != nil {
			a, b, c, at = append(a, *s), append(b, *l), append(c, *m), append(at, i)
		}
	}
	return a, b, c, at
}

func less(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range d {
		d[i] = a[i] - b[i]
	}
	return d
}

// places returns the indexes from 0 to n-1.
func places(n int) (at []int) {
	for i := range n {
		at = append(at, i)
	}
	return at
}

func (r RoutingReport) parts() []part {
	p := part{head: []string{"way", "mean", "95 %", "asked large", "cost", "no answer", "errors"}}
	for _, w := range r.Ways {
		p.rows = append(p.rows, []string{text.Line(w.Name), meanOf(w.Estimate), interval(w.Estimate), percent(w.LargeShare.Mean), usd(w.USD.Mean * float64(w.USD.N)), fmt.Sprint(w.NoAnswer), fmt.Sprint(w.Errors)})
	}
	q := part{head: []string{"routing", "found", "95 %"}, notes: []string{fmt.Sprintf("%d cases", r.Cases)}}
	row := func(name string, e Estimate, none string) {
		found := []string{name, none, ""}
		if e.N > 0 {
			found = []string{name, percent(e.Mean), bounded(e, percent)}
		}
		q.rows = append(q.rows, found)
	}
	row("gap between large and best small", r.Gap, "-")
	row("of the gap recovered", r.GapRecovered, "cannot tell: the gap may be nothing")
	row("asked the large model", r.LargeShare, "-")
	row("cost of the large model alone", r.CostShare, "no prices")
	all := []part{p, q}
	if r.Gate != nil {
		all = append(all, r.Gate.part())
	}
	return all
}
