package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
)

// A Price describes the maximum cost of a run.
type Price struct {
	Line    string   // total cost; empty if nothing is known that could be compared with a budget
	Parts   []string // parts with the highest cost, followed by the parts without a limit
	Warning string   // warning that a budget is lower, or ""
}

// mostParts is the maximum number of parts that are shown with an amount.
const mostParts = 10

// most returns the amount by which parts are sorted. A part whose amount depends on widths comes before all known amounts.
func most(b budget.Bound) float64 {
	if usd, known := b.USD(); known {
		return usd
	}
	return math.Inf(1)
}

// PriceOf returns a description of a bound. Unless limit is nil, it also compares the bound with the budget.
func PriceOf(b budget.Bound, limit *float64) (p Price) {
	if b.String() == "0" && (b.Free() || limit == nil) {
		return p
	}
	p.Line = "A run costs at most " + b.String() + " USD."
	if len(b.Open()) > 0 {
		p.Line = "The cost of a run has no upper bound. What has one costs at most " + b.String() + " USD."
	}
	more := 0
	parts := b.Parts()
	slices.SortStableFunc(parts, func(x, y budget.Part) int { return cmp.Compare(most(y.Bound), most(x.Bound)) })
	for _, part := range parts {
		switch {
		case part.Bound.String() == "0":
			continue
		case len(p.Parts) == mostParts:
			more++
			continue
		}
		line := fmt.Sprintf("%s  %s", part.Bound, address.Readable(part.Path))
		if part.Note != "" {
			line += ": " + part.Note
		}
		p.Parts = append(p.Parts, line)
	}
	if more > 0 {
		p.Parts = append(p.Parts, fmt.Sprintf("… and %d more parts", more))
	}
	for _, why := range b.Open() {
		p.Parts = append(p.Parts, "unbounded: "+why)
	}
	if limit != nil {
		if err := b.Fits(*limit); err != nil {
			p.Warning = "Warning: " + err.Error()
		}
	}
	return p
}
