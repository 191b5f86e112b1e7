package eval

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
)

// A Report is the result of an evaluation.
type Report struct {
	Pipeline string        `json:"pipeline"`
	Cases    int           `json:"cases"`
	Trials   int           `json:"trials"`             // trials per case
	Repeated int           `json:"repeated,omitempty"` // number of rows that repeat a case; these count once
	Scores   []ScoreReport `json:"scores"`             // results by scorer
	Cost     Cost          `json:"cost"`
	Asked    []asked       `json:"asked,omitempty"`  // capabilities that calls have called
	Reused   int           `json:"reused,omitempty"` // number of answers reused from an earlier run
	Looks    int           `json:"looks,omitempty"`  // number of runs that have shown results on this test split, including this one; set by the command
	// Recorded is set if the cases are recorded runs. It contains the number of requests, of "new" requests without a recorded
	// answer, of cases that needed a person or an effect, and of skipped runs by reason.
	Recorded map[string]int `json:"recorded,omitempty"`
	Failures []example      `json:"failures,omitempty"` // the first cases without an answer and the first errors
	Against  *comparison    `json:"against,omitempty"`
	Gate     *Verdict       `json:"gate,omitempty"`
}

// A ScoreReport is the result of one scorer.
type ScoreReport struct {
	Name string `json:"name"`
	Estimate
	// Number of trials by verdict. Errors are excluded from the mean.
	Right    int `json:"right"`
	Wrong    int `json:"wrong"`
	NoAnswer int `json:"no_answer"`
	Errors   int `json:"errors"`
	// PassAt and PassAll are pass@k and pass^k for k = 1, 2, …. They cover only cases none of whose trials is an error.
	PassAt  []float64 `json:"pass_at,omitempty"`
	PassAll []float64 `json:"pass_all,omitempty"`
	Flips   int       `json:"flips,omitempty"` // number of cases whose trials disagree
	// Missed lists the first wrong trials. In each, Before and Now are both the score of the trial.
	Missed []Turned `json:"missed,omitempty"`
	Slices []slice  `json:"slices,omitempty"`
}

// A slice is the set of the cases that have the same value in a column.
type slice struct {
	Column string `json:"column"`
	Value  string `json:"value"`
	Estimate
}

// Cost is the cost of all answers, including reused ones, and the cost of the judges.
type Cost struct {
	USD       float64 `json:"usd"`        // cost of the answers
	JudgesUSD float64 `json:"judges_usd"` // cost of the judges in this run
	ReusedUSD float64 `json:"reused_usd"` // part of USD that an earlier run paid
	Tokens    int     `json:"tokens"`
	// Whole estimates the cost of all cases in the data if only a sample was drawn.
	Whole *Whole `json:"whole,omitempty"`
}

// Whole estimates the cost of all cases from the sample.
type Whole struct {
	Cases int     `json:"cases"`
	USD   float64 `json:"usd"`
	Low   float64 `json:"low"` // lower end of the 95 % interval
	High  float64 `json:"high"`
}

// An example is a case without an answer or with an error, as the report lists it.
type example struct {
	Case  string `json:"case"`
	Trial int    `json:"trial"`
	Why   string `json:"why"`
}

// maxExamples is the maximum number of failures in a report, and of wrong trials per scorer.
const maxExamples = 20

// report returns the leaf that reads the results of all groups and produces the report.
func (e *evaluation) report(version string) stone.Ashlar {
	return stone.New("report", Result, func(_ context.Context, d dag.DAG) (Report, error) {
		t, err := e.tally(d)
		if err != nil {
			return Report{}, err
		}
		return e.summarize(t)
	}, stone.Queries(dag.All(results)), stone.Version(version), stone.Detail{Value: e.extent(), Facts: e.extent().facts})
}

// A tally holds the results of all cases, in the order of the data.
type tally struct {
	trials [][]outcome // trials by case
	costs  [][]cost
}

// tally reads the results of all groups.
func (e *evaluation) tally(d dag.DAG) (*tally, error) {
	t := &tally{make([][]outcome, len(e.data.rows)), make([][]cost, len(e.data.rows))}
	nodes, err := d.All(results.Name())
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		found, costs, err := resultsOf(n)
		if err != nil {
			return nil, err
		}
		for i, o := range found.Rows {
			at, ok := e.data.byID[o.Case]
			if !ok {
				return nil, fmt.Errorf("the data no longer has the case %s", o.Case)
			}
			if o.Trial == 0 {
				e.Against.add(caseResult([]outcome{o}, costs[i:i+1], len(e.Scorers)))
				continue
			}
			t.trials[at] = append(t.trials[at], o)
			t.costs[at] = append(t.costs[at], costs[i])
		}
	}
	return t, nil
}

// resultsOf reads the node of a group.
func resultsOf(n *dag.Node) (o outcomes, costs []cost, err error) {
	if o, err = results.Of(n); err != nil {
		return o, nil, err
	}
	err = json.Unmarshal([]byte(n.Meta()[metaKey]), &costs)
	if err == nil && len(costs) != len(o.Rows) {
		err = fmt.Errorf("the costs of group %s do not fit its results", n.ID())
	}
	return o, costs, err
}

func (e *evaluation) summarize(t *tally) (Report, error) {
	r := Report{Pipeline: e.Pipeline.Name(), Cases: len(e.data.rows), Trials: e.Trials, Repeated: e.data.repeated}
	for _, costs := range t.costs {
		for _, c := range costs {
			r.Cost.USD += c.USD
			r.Cost.JudgesUSD += c.Judges
			r.Cost.Tokens += c.Tokens
			if c.From != "" {
				r.Reused++
				r.Cost.ReusedUSD += c.USD
			}
		}
	}
	r.Cost.Whole = e.whole(t)
	r.Asked, r.Recorded = t.asked(), e.recordedOf(t)
	for i, s := range e.Scorers {
		r.Scores = append(r.Scores, e.scoreReport(t, i, s.name))
	}
	r.Failures = t.failures()
	if e.Against != nil {
		r.Against = e.compare(t)
	}
	if e.Gate != nil {
		r.Gate = e.judge(&r, t)
	}
	return r, nil
}

// whole extrapolates the cost of the sample to all cases.
func (e *evaluation) whole(t *tally) *Whole {
	if e.data.whole == len(t.costs) {
		return nil
	}
	each := make([]float64, len(t.costs))
	for i, costs := range t.costs {
		for _, c := range costs {
			each[i] += c.USD + c.Judges
		}
	}
	n, cost := float64(e.data.whole), student(each, nil)
	return &Whole{e.data.whole, n * cost.Mean, n * max(cost.Low, 0), n * min(cost.High, math.MaxFloat64/n)}
}

func (t *tally) failures() (all []example) {
	for _, trials := range t.trials {
		for _, o := range trials {
			if o.Reason != "" && len(all) < maxExamples {
				why := o.Reason
				if o.Failure != "" {
					why = o.Failure + ": " + why
				}
				all = append(all, example{o.Case, o.Trial, why})
			}
		}
	}
	return all
}

// mean returns the mean score of a case over its trials without errors and true. If all trials are errors, it returns false.
func mean(trials []outcome, scorer int) (float64, bool) {
	var sum float64
	n := 0
	for _, o := range trials {
		if o.Verdicts[scorer] != 'e' {
			sum += o.Values[scorer]
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

func (e *evaluation) scoreReport(t *tally, scorer int, name string) ScoreReport {
	s := ScoreReport{Name: name}
	var means []float64
	var at []int // indexes of the cases
	paths := e.paths()
	for i, trials := range t.trials {
		right := 0
		for _, o := range trials {
			switch o.Verdicts[scorer] {
			case 'r':
				s.Right++
				right++
			case 'w':
				if s.Wrong++; s.Wrong <= maxExamples {
					missed := Turned{Case: o.Case, Path: paths(i, o.Trial), Before: o.Values[scorer], Now: o.Values[scorer]}
					e.data.tell(&missed)
					s.Missed = append(s.Missed, missed)
				}
			case 'n':
				s.NoAnswer++
			case 'e':
				s.Errors++
			}
		}
		if right > 0 && right < len(trials) {
			s.Flips++
		}
		if m, ok := mean(trials, scorer); ok {
			means, at = append(means, m), append(at, i)
		}
	}
	s.Estimate = averageOf(means, e.clusters(at))
	s.PassAt, s.PassAll = passes(t.trials, scorer, e.Trials)
	for i, column := range e.data.Slices {
		s.Slices = append(s.Slices, e.slices(i, column, means, at)...)
	}
	return s
}

// clusters returns the cluster names of the rows at the given indexes. It returns nil if there are no clusters.
func (e *evaluation) clusters(at []int) (names []string) {
	if e.data.Cluster == "" {
		return nil
	}
	for _, i := range at {
		names = append(names, e.data.rows[i].labels[0])
	}
	return names
}

// passes returns pass@k and pass^k over the cases none of whose trials is an error.
func passes(all [][]outcome, scorer, each int) (any, every []float64) {
	if each == 1 {
		return nil, nil
	}
	var right []int
	for _, trials := range all {
		passed := 0
		for _, o := range trials {
			switch o.Verdicts[scorer] {
			case 'r':
				passed++
			case 'e':
				passed = -len(trials) - 1
			}
		}
		if passed >= 0 {
			right = append(right, passed)
		}
	}
	if len(right) == 0 {
		return nil, nil
	}
	for k := 1; k <= min(each, maxPass); k++ {
		var a, b float64
		for _, c := range right {
			a += passAt(each, c, k)
			b += passAll(each, c, k)
		}
		any, every = append(any, a/float64(len(right))), append(every, b/float64(len(right)))
	}
	return any, every
}

// maxPass is the maximum k of pass@k.
const maxPass = 10

// maxSlices is the maximum number of values reported per column; the most frequent come first.
const maxSlices = 50

// parts splits indexes by the value in a column, largest part first.
func (e *evaluation) parts(column int, at []int) (names []string, of map[string][]int) {
	of = map[string][]int{}
	for k, i := range at {
		value := e.data.slice(i, column)
		if of[value] == nil {
			names = append(names, value)
		}
		of[value] = append(of[value], k)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(of[b])-len(of[a]), cmp.Compare(a, b)) })
	return names[:min(len(names), maxSlices)], of
}

func (e *evaluation) slices(i int, column string, means []float64, at []int) (all []slice) {
	names, of := e.parts(i, at)
	for _, value := range names {
		var scores []float64
		var rows []int
		for _, k := range of[value] {
			scores, rows = append(scores, means[k]), append(rows, at[k])
		}
		all = append(all, slice{column, value, averageOf(scores, e.clusters(rows))})
	}
	return all
}

// unmarshal decodes JSON and keeps all digits of numbers.
func unmarshal(data json.RawMessage, to *any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(to)
}

func canonical(v any) ([]byte, error) { return canon.Append(nil, v) }

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// lookup returns the value at a dotted path of names and indexes, such as items.0.price, or an error if there is none.
func lookup(v json.RawMessage, path string) (json.RawMessage, error) {
	if path == "" {
		return v, nil
	}
	v = parsed(v)
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		i, isIndex := strconv.Atoi(name)
		switch {
		case json.Unmarshal(v, &object) == nil && object[name] != nil:
			v = object[name]
		case isIndex == nil && json.Unmarshal(v, &list) == nil && i >= 0 && i < len(list):
			v = list[i]
		default:
			return nil, fmt.Errorf("no %s in %s", path, shown(v))
		}
	}
	return v, nil
}
