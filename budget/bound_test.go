package budget_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
)

func TestBound(t *testing.T) {
	usd := budget.AtMost
	open := budget.Unbounded("the price of m is unknown")
	for _, test := range []struct {
		name  string
		b     budget.Bound
		want  string
		parts string
		open  bool
	}{
		{"nothing", budget.Bound{}, "0", "", false},
		{"free", usd(0).Add(usd(-1)).Times(7), "0", "", false},
		{"sum", usd(0.2).Add(usd(0.11), budget.Bound{}), "0.31", "", false},
		{"rounded up", usd(1.8301), "1.84", "", false},
		{"not rounded", usd(0.1 + 0.2), "0.30", "", false},
		{"small", usd(0.00042), "0.00042", "", false},
		{"width", usd(0.02).Add(usd(0.31).Over("documents")), "0.02 + 0.31 × documents", "", false},
		{"widths", usd(1).Over("pages").Over("chapters").Add(usd(2).Over("chapters").Over("pages")), "3.00 × chapters × pages", "", false},
		{"known width", usd(0.02).Add(usd(0.31).Over("documents")).At(map[string]int{"documents": 10}), "3.12", "", false},
		{"no lanes", usd(0.31).Over("documents").At(map[string]int{"documents": 0}), "0", "", false},
		{"one of two", usd(1).Or(usd(2)), "2.00", "", false},
		{"one that depends", usd(1).Or(usd(0.5).Over("n")).Add(usd(3)), "max(4.00, 3.00 + 0.50 × n)", "", false},
		{"a product", usd(1).Or(usd(0.5).Over("n")).Add(usd(1).Or(usd(0.5).Over("n"))), "max(2.00, 1.00 + 0.50 × n, 1.00 × n)", "", false},
		{"parts", usd(1).In("a").Add(usd(2).Noted("twice").In("b")).Times(2), "6.00", "a 2.00, b 4.00", false},
		{"the dearer part", usd(1).In("a").Or(usd(2).In("b")), "2.00", "b 2.00", false},
		{"either part", usd(1).In("a").Or(usd(2).Over("n").In("b")), "max(1.00, 2.00 × n)", "a 1.00, b 2.00 × n", false},
		{"open", open.In("a").Add(usd(1)).Times(3), "3.00", "a 0", true},
		{"open, not run", open.Times(0), "0", "", false},
		{"open, one of two", usd(1).Or(open), "1.00", "", true},
		{"no number", usd(math.Inf(1)), "0", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var parts []string
			for _, p := range test.b.Parts() {
				parts = append(parts, p.Path+" "+p.Bound.String())
			}
			if got := test.b.String(); got != test.want || strings.Join(parts, ", ") != test.parts || (len(test.b.Open()) > 0) != test.open {
				t.Errorf("%s, parts %q, open %q", got, parts, test.b.Open())
			}
		})
	}
}

// TestBoundOfManyBranches merges alternatives that would grow with each branch. The result is as dear as each of them.
func TestBoundOfManyBranches(t *testing.T) {
	var all budget.Bound
	for range 40 {
		all = all.Add(budget.AtMost(1).Or(budget.AtMost(1).Over("n")))
	}
	for n, want := range []float64{40, 40, 80} {
		if usd, known := all.At(map[string]int{"n": n}).USD(); !known || usd < want || usd > 80+float64(n)*40 {
			t.Errorf("n = %d: %v, want at least %v", n, usd, want)
		}
	}
}

func TestBoundFits(t *testing.T) {
	b := budget.AtMost(1.2).In("draft").Add(budget.AtMost(0.64).In("review"))
	if err := b.Fits(1.84); err != nil {
		t.Error(err)
	}
	for _, test := range []struct {
		b    budget.Bound
		want string
	}{
		{b, "the run may cost at most 1.84 USD; its budget is 1.5: 1.20 of it is for draft"},
		{b.Over("n"), "the run may cost at most 1.84 × n USD; its budget is 1.5: 1.20 × n of it is for draft"},
		{b.Add(budget.Unbounded("the price of m is unknown")), "the cost of the run is unbounded, since the price of m is unknown; its budget is 1.5"},
	} {
		if err := test.b.Fits(1.5); err == nil || err.Error() != test.want {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}
