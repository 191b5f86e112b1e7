package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stonelayer/stone/eval"
	"github.com/stonelayer/stone/eval/stat"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// evaluated is the report of an evaluation, with what a page adds to it.
type evaluated struct {
	eval.Report
	Run     string // "" in a file, from which nothing leads elsewhere
	Base    string // the baseline's run, "" if the journal has none
	Plot    *plot
	turned  map[[2]string]turnedCase // by the names of scores and the paths of cases
	means   scale
	changes scale
}

// A turnedCase is what was answered to a case before and now. What the journals do not have is empty.
type turnedCase struct {
	Before, Now reply
}

// reply is an answer to a case, and what its scorer said.
type reply struct{ Output, Why string }

// Case returns the answers to a case that turned in a score.
func (e *evaluated) Case(score string, t eval.Turned) turnedCase {
	return e.turned[[2]string{score, t.Path}]
}

// readTurned reads the answers to turned cases. A report lists at most 50 for each score.
func (e *evaluated) readTurned(ctx context.Context, v View, run string) error {
	e.turned = map[[2]string]turnedCase{}
	for _, s := range e.Against.Scores {
		for _, t := range s.Turned {
			if t.Path == "" {
				continue
			}
			var c turnedCase
			var err error
			if c.Now, err = replyTo(ctx, v, run, t.Path, s.Name); err == nil && e.Base != "" {
				c.Before, err = replyTo(ctx, v, e.Base, t.Path, s.Name)
			}
			if err != nil {
				return err
			}
			e.turned[[2]string{s.Name, t.Path}] = c
		}
	}
	return nil
}

// replyTo reads the answer to the case at a path, and the reason of its score.
func replyTo(ctx context.Context, v View, run, path, score string) (out reply, err error) {
	answer, err := view.Record(ctx, v.Journal, run, path+"/case/answer", "leaf")
	if answer == nil {
		return out, err
	}
	var said struct {
		Output json.RawMessage `json:"output"`
	}
	if json.Unmarshal(answer.Content, &said) == nil {
		out.Output = text.Content(said.Output, columnsOfCase)
	}
	scored, err := view.Record(ctx, v.Journal, run, address.Child(path+"/case", score, 1), "leaf")
	var s eval.Score
	if scored != nil && json.Unmarshal(scored.Content, &s) == nil {
		out.Why = text.Cut(s.Reason, columnsOfCase)
	}
	return out, err
}

// columnsOfCase bounds each text of a case.
const columnsOfCase = 160

// scale is the range of the intervals in a column.
type scale struct{ low, high float64 }

func (s *scale) add(e stat.Estimate) {
	s.low, s.high = min(s.low, e.Low, e.Mean), max(s.high, e.High, e.Mean)
}

// onto returns where a value of the scale is between two places of a drawing.
func (s scale) onto(low, high float64) func(float64) float64 {
	return func(v float64) float64 { return low + (v-s.low)/max(s.high-s.low, 1e-12)*(high-low) }
}

// ticks are five values of the scale.
func (s scale) ticks(at func(float64) float64) (out []tick) {
	for i := range 5 {
		v := s.low + float64(i)/4*(s.high-s.low)
		out = append(out, tick{at(v), fmt.Sprintf("%.2f", v)})
	}
	return out
}

// An interval is an estimate as a drawing, in the units of a bar.
type interval struct{ From, Width, Mean, Zero float64 }

func (s scale) draw(e stat.Estimate) interval {
	at := func(x float64) float64 {
		if s.high <= s.low || math.IsNaN(x) {
			return 0
		}
		return min(max((x-s.low)/(s.high-s.low), 0), 1) * barWidth
	}
	return interval{From: at(e.Low), Width: max(at(e.High)-at(e.Low), 1), Mean: min(at(e.Mean), barWidth-1.5), Zero: at(0)}
}

// Mean draws an interval of the report, Change one of the comparison.
func (e *evaluated) Mean(m stat.Estimate) interval   { return e.means.draw(m) }
func (e *evaluated) Change(m stat.Estimate) interval { return e.changes.draw(m) }

// TurnedURL is the address of the comparison of a case, before and now.
func (e *evaluated) TurnedURL(t eval.Turned) string {
	switch {
	case e.Run == "" || t.Path == "":
		return ""
	case e.Base == "":
		return runURL(e.Run, "at", t.Path)
	}
	return comparison{A: rowOf(journal.RunInfo{ID: e.Base}), B: rowOf(journal.RunInfo{ID: e.Run})}.URL("under", t.Path)
}

// detach removes what leads to other pages.
func (e *evaluated) detach() {
	if e == nil {
		return
	}
	if e.Run = ""; e.Plot != nil {
		for i := range e.Plot.Points {
			e.Plot.Points[i].URL = ""
		}
	}
}

// isEvaluation reports whether a run evaluates a pipeline.
func isEvaluation(info journal.RunInfo) bool {
	return slices.ContainsFunc(info.Shape, func(p journal.Part) bool { return p.Type == eval.Result.Name() })
}

// evaluatedOf reads the report of an evaluation, nil if a piece is none.
func evaluatedOf(ctx context.Context, v View, info journal.RunInfo, n *piece) (*evaluated, error) {
	e := &evaluated{Run: info.ID, means: scale{0, 1}}
	if n.Type != eval.Result.Name() || json.Unmarshal(n.Content, &e.Report) != nil {
		return nil, nil
	}
	for _, s := range e.Scores {
		e.means.add(s.Estimate)
		for _, l := range s.Slices {
			e.means.add(l.Estimate)
		}
	}
	if e.Against != nil {
		for _, s := range e.Against.Scores {
			e.changes.add(s.Estimate)
			for _, l := range s.Slices {
				e.changes.add(l.Estimate)
			}
		}
		base, err := find(ctx, v, e.Against.With)
		if err == nil {
			e.Base = base.ID
		} else if !isMissing(err) {
			return nil, err
		}
	}
	var err error
	if e.Against != nil {
		if err := e.readTurned(ctx, v, info.ID); err != nil {
			return nil, err
		}
	}
	e.Plot, err = plotOf(ctx, v, info, e)
	return e, err
}

// reportOf reads the report of a run that evaluated a pipeline. It is nil for others, and for one that
// has not ended well.
func reportOf(ctx context.Context, v View, run journal.RunInfo) (*eval.Report, error) {
	if run.State != journal.Done {
		return nil, nil
	}
	n, err := v.Journal.Node(ctx, run.ID, run.Node.String())
	if errors.Is(err, journal.ErrNoNode) {
		return nil, nil // it ended without one
	}
	if err != nil || n.Type != eval.Result.Name() {
		return nil, err
	}
	var report eval.Report
	if json.Unmarshal(n.Content, &report) != nil {
		return nil, nil
	}
	return &report, nil
}

// plot shows what evaluations cost and how good they are.
type plot struct {
	Score         string
	Width, Height int
	Points        []point
	Frontier      string // the path of the evaluations that none beats in both
	X, Y          []tick
}

type point struct {
	X, Y, Low, High float64
	Right           bool // the name stands left of it
	Name, URL, Text string
	Here            bool

	cost float64
	stat.Estimate
}

type tick struct {
	At   float64
	Text string
}

// The place of the plot within its drawing.
const (
	plotLeft, plotTop     = 46, 12
	plotWidth, plotHeight = 560, 190

	mostPoints = 30
)

// plotOf plots the evaluations of the same pipeline with as many cases, and the one of the
// baseline. It is nil if nothing costs anything, or there is but one.
func plotOf(ctx context.Context, v View, info journal.RunInfo, e *evaluated) (*plot, error) {
	if len(e.Scores) == 0 {
		return nil, nil
	}
	runs, err := v.Journal.Runs(ctx, journal.Query{Pipeline: info.Pipeline, States: []journal.State{journal.Done}, Limit: mostPoints})
	if err != nil {
		return nil, err
	}
	if e.Base != "" && !slices.ContainsFunc(runs, func(r journal.RunInfo) bool { return r.ID == e.Base }) {
		base, err := v.Journal.Find(ctx, e.Base)
		if err != nil {
			return nil, err
		}
		runs = append(runs, base)
	}
	if !slices.ContainsFunc(runs, func(r journal.RunInfo) bool { return r.ID == info.ID }) {
		runs = append(runs, info)
	}
	p := &plot{Score: e.Scores[0].Name, Width: plotLeft + plotWidth + 20, Height: plotTop + plotHeight + 40}
	for _, run := range runs {
		r, err := reportOf(ctx, v, run)
		if err != nil {
			return nil, err
		}
		if r == nil || r.Cases != e.Cases {
			continue
		}
		i := slices.IndexFunc(r.Scores, func(s eval.ScoreReport) bool { return s.Name == p.Score })
		if i < 0 || r.Trials < 1 || r.Cases < 1 {
			continue
		}
		s := r.Scores[i].Estimate
		cost := r.Cost.USD / float64(r.Cases*r.Trials)
		p.Points = append(p.Points, point{Name: run.ID, URL: runURL(run.ID), Here: run.ID == info.ID, cost: cost, Estimate: s,
			Text: fmt.Sprintf("%s, %s USD for each answer", pointText(run.ID, s), money.USD(cost, false))})
	}
	if len(p.Points) < 2 || !slices.ContainsFunc(p.Points, func(q point) bool { return q.cost > 0 }) {
		return nil, nil
	}
	p.lay()
	return p, nil
}

// lay places the points.
func (p *plot) lay() {
	slices.SortFunc(p.Points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(b.Estimate.Mean, a.Estimate.Mean))
	})
	y := scale{p.Points[0].Estimate.Low, p.Points[0].Estimate.High}
	most := 0.0
	for _, q := range p.Points {
		y.add(q.Estimate)
		most = max(most, q.cost)
	}
	most *= 1.08
	atY := y.onto(plotTop+plotHeight, plotTop)
	best := math.Inf(-1)
	for i := range p.Points {
		q := &p.Points[i]
		q.X = plotLeft + q.cost/most*plotWidth
		q.Y, q.Low, q.High = atY(q.Estimate.Mean), atY(q.Estimate.Low), atY(q.Estimate.High)
		q.Right = q.X > plotLeft+plotWidth*3/4
		if q.Estimate.Mean > best {
			best = q.Estimate.Mean
			p.Frontier += pathTo(p.Frontier, q.X, q.Y)
		}
	}
	p.Y = y.ticks(atY)
	for i := range 5 {
		part := float64(i) / 4
		p.X = append(p.X, tick{plotLeft + part*plotWidth, fmt.Sprintf("%.2g", part*most)})
	}
}

// pathTo continues a line to a point.
func pathTo(path string, x, y float64) string {
	if path == "" {
		return fmt.Sprintf("M%.1f %.1f", x, y)
	}
	return fmt.Sprintf("L%.1f %.1f", x, y)
}

// pointText says what an evaluation found.
func pointText(run string, s stat.Estimate) string {
	return fmt.Sprintf("%s: %.4f (95 %% %.4f to %.4f)", run, s.Mean, s.Low, s.High)
}

// estimate formats a number of a report, signed for a difference.
func estimate(f float64) string { return fmt.Sprintf("%.4f", f) }

func signed(f float64) string { return strings.Replace(fmt.Sprintf("%+.4f", f), "-", "−", 1) }
