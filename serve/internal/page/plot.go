package page

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// plot shows the cost and the score of evaluations.
type plot struct {
	Score         string
	Width, Height int
	Points        []point
	Frontier      string // SVG path through the evaluations that no other beats in both cost and score
	X, Y          []tick
}

type point struct {
	X, Y, Low, High float64
	LabelX, LabelY  float64
	Lead            bool // a line leads from the point to its name
	Name, URL, Text string
	Here            bool

	cost float64
	Estimate
}

type tick struct {
	At   float64
	Text string
}

// Position of the plot within its drawing.
const (
	plotLeft, plotTop     = 46, 12
	plotWidth, plotHeight = 560, 190

	mostPoints = 30
)

// plotOf plots the evaluations of the same pipeline with the same number of cases, and the baseline. It returns nil if costs are
// unknown or there is only one evaluation.
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
		i := slices.IndexFunc(r.Scores, func(s scored) bool { return s.Name == p.Score })
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

// lay computes the positions of the points.
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
		if q.Estimate.Mean > best {
			best = q.Estimate.Mean
			p.Frontier += pathTo(p.Frontier, q.X, q.Y)
		}
	}
	p.name()
	p.Y = y.ticks(atY)
	for i := range 5 {
		part := float64(i) / 4
		p.X = append(p.X, tick{plotLeft + part*plotWidth, fmt.Sprintf("%.2g", part*most)})
	}
}

// Sizes of the names in a plot, in drawing units.
const (
	charOfPlot  = 6.2
	lineOfPlot  = 13
	mostOfName  = 22 // maximum characters of a name
	stepsOfName = 14 // maximum number of lines by which a name moves
)

// name places the name of each point as near to it as possible, to the right or left, above or below, so that, if there is room,
// names overlap neither points nor each other.
func (p *plot) name() {
	type area struct{ x, y, w float64 } // the area of a line of text; y is its baseline
	var taken []area
	for _, q := range p.Points {
		taken = append(taken, area{q.X - 5, q.Y + 5, 10})
	}
	free := func(a area) bool {
		return a.x >= plotLeft && a.x+a.w <= plotLeft+plotWidth+20 && a.y >= plotTop && a.y <= plotTop+plotHeight && !slices.ContainsFunc(taken, func(b area) bool {
			return a.x < b.x+b.w && b.x < a.x+a.w && math.Abs(a.y-b.y) < lineOfPlot
		})
	}
	for i := range p.Points {
		q := &p.Points[i]
		q.Name = text.Cut(q.Name, mostOfName)
		width := float64(len([]rune(q.Name))) * charOfPlot
		place := area{q.X + 8, q.Y - 7, width}
	search:
		for step := range stepsOfName {
			for _, y := range []float64{q.Y - 7 - float64(step*lineOfPlot), q.Y + 14 + float64(step*lineOfPlot)} {
				for _, x := range []float64{q.X + 8, q.X - 8 - width, q.X - 16 - 2*width, q.X + 16 + width} {
					if at := (area{x, y, width}); free(at) {
						place, q.Lead = at, step > 0
						break search
					}
				}
			}
		}
		taken = append(taken, place)
		q.LabelX, q.LabelY = place.x, place.y
	}
}

// pathTo extends an SVG path with a line to a point.
func pathTo(path string, x, y float64) string {
	if path == "" {
		return fmt.Sprintf("M%.1f %.1f", x, y)
	}
	return fmt.Sprintf("L%.1f %.1f", x, y)
}
