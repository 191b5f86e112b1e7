package budget

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Bound is an upper limit on the cost of a step or a pipeline, in USD, computed before a run. It may depend on widths, which
// are numbers of lanes: 0.02 + 0.31 × each-document. It names the parts of the pipeline whose cost is not limited. The zero Bound
// costs nothing. A Bound is immutable: its methods return new Bounds.
type Bound struct {
	sums  []sum // alternatives; the Bound is the most expensive one, or zero if there are none
	open  []string
	parts []Part
}

// A sum maps each product of widths to an amount in USD. A product is written as the sorted names of the widths, joined by
// product; it is empty if there is no width.
type sum map[string]float64

const (
	product = " × "
	// maxSums is the maximum number of alternatives in a Bound. If there are more, they are merged into one sum that is at least
	// as high.
	maxSums = 16
)

// A Part is the share of a Bound that one step contributes.
type Part struct {
	Path  string
	Note  string // how the amount is computed
	Bound Bound  // the bound of this part; it has no parts itself
}

// AtMost returns the bound for work that costs at most usd. NaN and infinity mean unbounded.
func AtMost(usd float64) Bound {
	switch {
	case math.IsNaN(usd) || math.IsInf(usd, 1):
		return Unbounded("its price is not a number")
	case usd <= 0:
		return Bound{}
	}
	return Bound{sums: []sum{{"": usd}}}
}

// Unbounded returns the bound for work whose cost is not limited. Why is the human-readable reason, as in "the price of m is
// unknown".
func Unbounded(why string) Bound { return Bound{open: []string{why}} }

// Add returns the sum of b and the other bounds.
func (b Bound) Add(others ...Bound) Bound {
	total := Bound{sums: slices.Clone(b.sums), open: slices.Clone(b.open), parts: slices.Clone(b.parts)}
	for _, o := range others {
		total.open, total.parts = union(total.open, o.open), append(total.parts, o.parts...)
		if len(o.sums) == 0 {
			continue
		}
		if len(total.sums)*len(o.sums) > maxSums {
			total.sums, o.sums = merged(total.sums), merged(o.sums)
		}
		var sums []sum
		for _, s := range o.sums {
			if len(total.sums) == 0 {
				sums = append(sums, s)
			}
			for _, t := range total.sums {
				both := maps.Clone(t)
				for at, usd := range s {
					both[at] += usd
				}
				sums = append(sums, both)
			}
		}
		total.sums = dearest(sums)
	}
	return total
}

// Or returns the bound for work that costs at most either b or o, whichever is more expensive.
func (b Bound) Or(o Bound) Bound {
	both := Bound{open: union(slices.Clone(b.open), o.open)}
	if both.sums = dearest(slices.Concat(b.sums, o.sums)); len(both.sums) > maxSums {
		both.sums = merged(both.sums)
	}
	counts := func(of Bound) bool { // parts of an alternative that is never the most expensive are left out
		return len(of.open) > 0 || slices.ContainsFunc(of.sums, func(s sum) bool {
			return slices.ContainsFunc(both.sums, func(t sum) bool { return maps.Equal(s, t) })
		})
	}
	if counts(b) {
		both.parts = slices.Clone(b.parts)
	}
	if counts(o) && !(counts(b) && slices.EqualFunc(b.sums, o.sums, maps.Equal[sum, sum]) && len(o.open) == 0) {
		both.parts = append(both.parts, o.parts...)
	}
	return both
}

// Times returns n times b.
func (b Bound) Times(n int) Bound {
	if n <= 0 {
		return Bound{}
	}
	return b.each(func(at string, usd float64) (string, float64) { return at, usd * float64(n) })
}

// Over returns b multiplied by a fan-out's number of lanes. The number is unknown, and width is its name in the result. If several
// fan-outs have the same name, the name stands for the widest of them.
func (b Bound) Over(width string) Bound {
	width = strings.ReplaceAll(width, product, " x ")
	return b.each(func(at string, usd float64) (string, float64) {
		names := append(factors(at), width)
		slices.Sort(names)
		return strings.Join(names, product), usd
	})
}

// At returns b with the given numbers in place of the named widths.
func (b Bound) At(widths map[string]int) Bound {
	return b.each(func(at string, usd float64) (string, float64) {
		var left []string
		for _, name := range factors(at) {
			if n, known := widths[name]; known {
				usd *= float64(max(n, 0))
			} else {
				left = append(left, name)
			}
		}
		return strings.Join(left, product), usd
	})
}

func factors(at string) []string {
	if at == "" {
		return nil
	}
	return strings.Split(at, product)
}

// each returns b with every amount, including the amounts of its parts, replaced by the result of calling the function with it.
func (b Bound) each(amount func(at string, usd float64) (string, float64)) Bound {
	out := Bound{open: b.open, parts: slices.Clone(b.parts)}
	for _, s := range b.sums {
		changed := sum{}
		for at, usd := range s {
			if at, usd = amount(at, usd); usd > 0 {
				changed[at] += usd
			}
		}
		out.sums = append(out.sums, changed)
	}
	out.sums = dearest(out.sums)
	for i := range out.parts {
		out.parts[i].Bound = out.parts[i].Bound.each(amount)
	}
	return out
}

// dearest returns the sums except any sum that can never exceed another.
func dearest(sums []sum) (left []sum) {
	for i, s := range sums {
		if len(s) > 0 && !slices.ContainsFunc(left, s.within) && !slices.ContainsFunc(sums[i+1:], func(t sum) bool { return s.within(t) && !t.within(s) }) {
			left = append(left, s)
		}
	}
	return left
}

// within reports whether s costs at most as much as t for all widths.
func (s sum) within(t sum) bool {
	for at, usd := range s {
		if usd > t[at] {
			return false
		}
	}
	return true
}

// merged returns a sum that is at least as high as every one of the given sums.
func merged(sums []sum) []sum {
	all := sum{}
	for _, s := range sums {
		for at, usd := range s {
			all[at] = max(all[at], usd)
		}
	}
	return dearest([]sum{all})
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// Noted returns b as a bound with a single part, described by the given note. In sets the part's path.
func (b Bound) Noted(note string) Bound {
	if b.Free() {
		return b
	}
	b.parts = []Part{{Note: note, Bound: Bound{sums: b.sums, open: b.open}}}
	return b
}

// In returns b as the bound of the step at the given path: parts of b without a path get this path.
func (b Bound) In(path string) Bound {
	if len(b.parts) == 0 {
		b = b.Noted("")
	}
	parts := slices.Clone(b.parts)
	for i := range parts {
		if p := &parts[i]; p.Path == "" {
			p.Path = path
		}
	}
	b.parts = parts
	return b
}

// Free reports whether b is zero, so that the work costs nothing.
func (b Bound) Free() bool { return len(b.sums)+len(b.open) == 0 }

// USD returns b as an amount in USD. It returns false if b depends on widths or has unbounded parts.
func (b Bound) USD() (usd float64, known bool) {
	for _, s := range b.sums {
		if _, constant := s[""]; !constant || len(s) > 1 {
			return 0, false
		}
		usd = max(usd, s[""])
	}
	return usd, len(b.open) == 0
}

// Open returns the reasons why parts of b are unbounded.
func (b Bound) Open() []string { return slices.Clone(b.open) }

// Parts returns the parts of b that cost something, in the order of the pipeline. The sum of the parts may exceed b if only one
// of several steps runs.
func (b Bound) Parts() []Part { return slices.Clone(b.parts) }

// String formats b, with amounts rounded up and without the unbounded parts.
func (b Bound) String() string {
	texts := []string{}
	for _, s := range b.sums {
		var terms []string
		for _, at := range slices.Sorted(maps.Keys(s)) {
			term := shown(s[at])
			if at != "" {
				term += product + at
			}
			terms = append(terms, term)
		}
		texts = append(texts, strings.Join(terms, " + "))
	}
	switch len(texts) {
	case 0:
		return "0"
	case 1:
		return texts[0]
	}
	return "max(" + strings.Join(texts, ", ") + ")"
}

// shown returns an amount as text, rounded up to cents or, below ten cents, to two significant digits.
func shown(usd float64) string {
	digits := 2
	if usd < 0.1 {
		digits = 1 - int(math.Floor(math.Log10(usd)))
	}
	unit := math.Pow10(digits)
	text := strconv.FormatFloat(math.Ceil(usd*unit*(1-1e-9))/unit, 'f', digits, 64)
	if digits > 2 {
		text = strings.TrimSuffix(text, "0")
	}
	return text
}

// Fits returns nil if b does not exceed a limit in USD. Otherwise, the error names the first unbounded part or, if every part has
// a bound, the sum and its most expensive part.
func (b Bound) Fits(limit float64) error {
	limit = max(limit, 0)
	if usd, known := b.USD(); known && usd <= limit*(1+1e-9) {
		return nil
	}
	budget := strconv.FormatFloat(limit, 'f', -1, 64)
	if len(b.open) > 0 {
		return fmt.Errorf("the cost of the run is unbounded, since %s; its budget is %s", b.open[0], budget)
	}
	text := fmt.Sprintf("the run may cost at most %s USD; its budget is %s", b, budget)
	if len(b.parts) > 0 {
		dear := slices.MaxFunc(b.parts, func(p, q Part) int { return cmp.Compare(p.Bound.weight(), q.Bound.weight()) })
		text += fmt.Sprintf(": %s of it is for %s", dear.Bound, dear.Path)
	}
	return errors.New(text)
}

// weight returns an estimate of b, which orders bounds in messages. It assumes ten lanes for each width.
func (b Bound) weight() (most float64) {
	for _, s := range b.sums {
		usd := 0.0
		for at, of := range s {
			usd += of * math.Pow10(len(factors(at)))
		}
		most = max(most, usd)
	}
	return most
}
