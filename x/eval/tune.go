package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/text"
)

// Tuning chooses the order of a cascade and its score-min. Of all settings whose mean cost does not exceed USDPerCase, it chooses
// the setting with the highest mean score. Each candidate is called alone, once per case, and the settings are then simulated
// with these answers.
type Tuning struct {
	Data   Data // the cases, usually of DevSplit, because results should be reported on other cases
	Scorer Scorer
	Lanes  int // maximum number of concurrent cases; zero means 64
	// Call is the type of the call's node. The pipeline must make this call at most once, and must fail if the call fails.
	Call    string
	Cascade call.Tunable
	// Alone returns the pipeline in which the call has a single candidate and a score-min of 0.
	Alone func(candidate string) (stone.Ashlar, error)
	// USDPerCase is the maximum mean cost of an answer.
	USDPerCase float64
}

// maxTuned is the maximum number of candidates. It is small because all orders are simulated.
const maxTuned = 6

// Tuned is the type of a Tuning's last node.
var Tuned = dag.NewType[Choice]("eval/choice")

// A Choice contains the chosen setting and its alternatives. The results are those on the cases by which the setting was chosen,
// so expect somewhat worse results on other cases.
type Choice struct {
	Setting
	Before  Setting   `json:"before"`
	Alone   []Setting `json:"alone"` // each candidate alone, without a threshold
	Cases   int       `json:"cases"`
	Errors  int       `json:"errors,omitempty"` // number of cases excluded because an answer or its score is missing
	Tried   int       `json:"tried"`            // number of settings tried
	Limit   float64   `json:"limit_usd"`        // maximum cost per case
	ReadUSD float64   `json:"read_usd"`         // cost of the answers on which the simulation is based
}

// A Setting is a setting of a cascade together with its simulated result.
type Setting struct {
	Candidates []string `json:"candidates"`
	ScoreMin   float64  `json:"score_min"`
	Estimate
	USD float64 `json:"usd"` // cost per case
}

// Run tunes the cascade and returns the choice.
func (t Tuning) Run(ctx context.Context, run stone.Config) (Choice, error) {
	p, err := t.Pipeline(ctx, run)
	if err != nil {
		return Choice{}, err
	}
	return stone.Produce(withAccount(ctx), p, Tuned, run)
}

// Pipeline returns the tuning as a pipeline, which must be run with the given stone.Config. The costs in the choice of a resumed
// run include earlier costs only if the context has a budget.Account.
func (t Tuning) Pipeline(ctx context.Context, run stone.Config) (stone.Ashlar, error) {
	switch n := len(t.Cascade.Candidates); {
	case n < 2 || n > maxTuned:
		return stone.Ashlar{}, fmt.Errorf("%d candidates: want 2 to %d", n, maxTuned)
	case !(t.USDPerCase > 0):
		return stone.Ashlar{}, errors.New("the cost of a case is unlimited: set the mean cost of an answer in USD")
	case t.Call == "" || t.Alone == nil:
		return stone.Ashlar{}, errors.New("a tuning needs Call and Alone")
	}
	lanes := []stone.FanPart{stone.AllLanes()}
	var e *evaluation
	for _, id := range t.Cascade.Candidates {
		p, err := t.Alone(id)
		if err != nil {
			return stone.Ashlar{}, err
		}
		e = &evaluation{Config: Config{Pipeline: p, Data: t.Data, Scorers: []Scorer{t.Scorer}, Trials: 1, Lanes: cmp.Or(t.Lanes, 64)}, tuned: t.Call}
		if err := e.check(); err != nil {
			return stone.Ashlar{}, err
		}
		if e.data, err = t.Data.load(ctx, p, run); err != nil {
			return stone.Ashlar{}, err
		}
		if err := e.checkExpected(); err != nil {
			return stone.Ashlar{}, err
		}
		judges, err := e.judging()
		if err != nil {
			return stone.Ashlar{}, err
		}
		lanes = append(lanes, stone.Seq(id, e.asking(), stone.Reduce(e.report(judges))))
	}
	version := fmt.Sprintf("%s %v %v", e.version(), t.Cascade, t.USDPerCase)
	return stone.Seq("tune", stone.Parallel("alone", lanes...),
		stone.Reduce(stone.New("choose", Tuned, func(_ context.Context, d dag.DAG) (Choice, error) {
			found, err := t.read(e, d)
			if err != nil {
				return Choice{}, err
			}
			return found.choose()
		}, stone.Queries(dag.All(results)), stone.Version(version)))), nil
}

// tried is the result of the call with a single candidate.
type tried struct {
	Score   float64 `json:"score"`
	USD     float64 `json:"usd,omitempty"`
	Failure string  `json:"failure,omitempty"`
}

// tried returns the result of the tuned call, or nil if the pipeline did not make the call.
func (e *evaluation) tried(start, out dag.DAG) *tried {
	if e.tuned == "" {
		return nil
	}
	var r *call.Record
	for _, n := range out.Within(nil).Beyond(start.Within(nil)) {
		if n.Type() == e.tuned {
			r = call.RecordOf(n)
		}
	}
	if r == nil && out.InFlight() {
		r = call.RecordIn(fault.Meta(out.Cause()))
	}
	if r == nil {
		return nil
	}
	did := &tried{USD: r.Usage.USD, Failure: r.Failure}
	if r.Score != nil {
		did.Score = *r.Score
	}
	return did
}

// cascades holds the results from which settings of a cascade are simulated.
type cascades struct {
	Tuning
	alone    [][]try // results by candidate and by case
	clusters []string
	left     int // number of cases excluded
	paid     float64
}

// A try is the result of a case with one candidate alone.
type try struct {
	value float64
	usd   float64 // cost of the whole answer
	call  *tried
}

// read reads the results of the candidates from the lanes. Each lane contains the groups of a candidate's cases in sequence.
func (t Tuning) read(e *evaluation, d dag.DAG) (*cascades, error) {
	c := &cascades{Tuning: t}
	nodes, err := d.All(results.Name())
	groups, _ := e.groups()
	n := len(t.Cascade.Candidates)
	if err == nil && len(nodes) != n*len(groups) {
		err = fmt.Errorf("%d groups of answers, want %d", len(nodes), n*len(groups))
	}
	if err != nil {
		return nil, err
	}
	all := make([][]try, n)
	missing := make([]bool, len(e.data.rows))
	for i := range all {
		all[i] = make([]try, len(e.data.rows))
		for _, node := range nodes[i*len(groups) : (i+1)*len(groups)] {
			found, costs, err := resultsOf(node)
			if err != nil {
				return nil, err
			}
			for k, o := range found.Rows {
				at, ok := e.data.byID[o.Case]
				if !ok {
					return nil, fmt.Errorf("the data no longer has the case %s", o.Case)
				}
				all[i][at] = try{o.Values[0], costs[k].USD, costs[k].Call}
				missing[at] = missing[at] || o.Verdicts == "e"
				c.paid += costs[k].USD
			}
		}
	}
	var kept []int
	for at, left := range missing {
		if !left {
			kept = append(kept, at)
		}
	}
	if c.left = len(missing) - len(kept); len(kept) == 0 {
		return nil, errors.New("every case lacks an answer or a score: evaluate the plan to see why")
	}
	c.clusters = e.clusters(kept)
	for _, tries := range all {
		var of []try
		for _, at := range kept {
			of = append(of, tries[at])
		}
		c.alone = append(c.alone, of)
	}
	return c, nil
}

// choose simulates all orders with all thresholds and returns the best setting within the cost limit. If several settings have
// the same mean score, it returns the cheapest. If several of these are equally cheap, it returns the first in the order of
// simulation, which starts with the current setting.
func (c *cascades) choose() (Choice, error) {
	order := make([]int, len(c.alone))
	for i := range order {
		order[i] = i
	}
	choice := Choice{Before: c.setting(order, c.Cascade.ScoreMin), Cases: len(c.alone[0]), Errors: c.left, Limit: c.USDPerCase, ReadUSD: c.paid}
	for i := range order {
		choice.Alone = append(choice.Alone, c.setting([]int{i}, 0))
	}
	thresholds, found := c.thresholds(), false
	cheapest := math.Inf(1)
	permute(order, 0, func(order []int) {
		for _, least := range thresholds {
			choice.Tried++
			mean, usd := c.simulate(order, least, nil)
			cheapest = min(cheapest, usd)
			if usd > c.USDPerCase {
				continue
			}
			if !found || mean > choice.Mean+1e-12 || mean > choice.Mean-1e-12 && usd < choice.USD-1e-12 {
				choice.Setting, found = Setting{c.names(order), least, Estimate{Mean: mean}, usd}, true
			}
		}
	})
	if !found {
		return choice, fmt.Errorf("no setting costs at most %s a case: the cheapest costs %s", usd(c.USDPerCase), usd(cheapest))
	}
	for i, id := range choice.Candidates {
		order[i] = slices.Index(c.Cascade.Candidates, id)
	}
	choice.Setting = c.setting(order, choice.ScoreMin)
	return choice, nil
}

// maxThresholds is the maximum number of thresholds that are simulated.
const maxThresholds = 50

// thresholds returns the thresholds to simulate: first the current threshold, then 0 and the scores of all answers, rounded down
// to four digits. If there are more than maxThresholds, it returns an evenly spaced selection.
func (c *cascades) thresholds() []float64 {
	scores := []float64{0}
	for _, tries := range c.alone {
		for _, try := range tries {
			if try.call != nil && try.call.Failure == "" {
				scores = append(scores, math.Floor(try.call.Score*1e4)/1e4)
			}
		}
	}
	slices.Sort(scores)
	if scores = slices.Compact(scores); len(scores) > maxThresholds {
		some := make([]float64, maxThresholds)
		for i := range some {
			some[i] = scores[i*(len(scores)-1)/(maxThresholds-1)]
		}
		scores = some
	}
	now := c.Cascade.ScoreMin
	return append([]float64{now}, slices.DeleteFunc(scores, func(s float64) bool { return s == now })...)
}

// permute calls fn with every order of the items from the given index on, beginning with the current order.
func permute(order []int, from int, fn func([]int)) {
	if from == len(order) {
		fn(order)
		return
	}
	for i := from; i < len(order); i++ {
		next := slices.Concat(order[:from], order[i:i+1], order[from:i], order[i+1:])
		permute(next, from+1, fn)
	}
}

// setting simulates a setting and returns it with its interval.
func (c *cascades) setting(order []int, least float64) Setting {
	values := make([]float64, len(c.alone[0]))
	_, usd := c.simulate(order, least, values)
	return Setting{c.names(order), least, averageOf(values, c.clusters), usd}
}

func (c *cascades) names(order []int) (ids []string) {
	for _, i := range order {
		ids = append(ids, c.Cascade.Candidates[i])
	}
	return ids
}

// simulate returns the mean score and the mean cost of a setting. If values is not nil, simulate stores the score of each case in
// it. If all candidates are rejected in a case, there is no answer, and the case's cost is an upper bound that includes the steps
// after the call.
func (c *cascades) simulate(order []int, least float64, values []float64) (mean, usd float64) {
	n := len(c.alone[0])
	for at := range n {
		value := 0.0
		for k, i := range order {
			try := c.alone[i][at]
			if try.call == nil || try.call.Failure == "" && try.call.Score >= least {
				value, usd = try.value, usd+try.usd
				break
			}
			failure := cmp.Or(try.call.Failure, reasons.LowScore)
			if k == len(order)-1 || !slices.Contains(c.Cascade.SwitchOn, failure) {
				usd += try.usd
				break
			}
			usd += try.call.USD
		}
		mean += value
		if values != nil {
			values[at] = value
		}
	}
	return mean / float64(n), usd / float64(n)
}

// Text returns the choice as a table for a terminal.
func (c Choice) Text() string {
	p := part{head: []string{"setting", "candidates", "score-min", "mean", "95 %", "cost a case"}}
	row := func(name string, s Setting) {
		p.rows = append(p.rows, []string{name, text.Line(strings.Join(s.Candidates, ", ")), fmt.Sprint(s.ScoreMin), mean4(s.Mean), interval(s.Estimate), usd(s.USD)})
	}
	row("chosen", c.Setting)
	row("before", c.Before)
	for _, s := range c.Alone {
		row("alone", s)
	}
	line := fmt.Sprintf("%d cases, %d settings, at most %s a case; the answers cost %s", c.Cases, c.Tried, usd(c.Limit), usd(c.ReadUSD))
	if c.Errors > 0 {
		line += fmt.Sprintf("; %d further cases are left out, because an answer is missing", c.Errors)
	}
	p.notes = []string{line}
	return tables(p)
}
