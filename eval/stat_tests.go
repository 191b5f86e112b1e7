package eval

import (
	"math"
	"slices"
)

// mcNemar returns the two-sided p-value of the exact test of McNemar: how likely so uneven
// a split of the questions that turned is, if both directions are equally likely. Gained
// questions are right only now, lost ones were right only before. The p-value sums a
// binomial distribution with a probability of one half (Q. McNemar, Psychometrika 12, 1947).
func mcNemar(gained, lost int) float64 {
	n := gained + lost
	var tail float64
	for k := range min(gained, lost) + 1 {
		tail += math.Exp(logChoose(n, k) - float64(n)*math.Ln2)
	}
	return min(1, 2*tail)
}

// PValue returns the two-sided p-value of a difference, by Student's test against 0.
func (e Estimate) PValue() float64 {
	switch {
	case e.Clusters < 2 || e.Mean == 0:
		return 1
	case e.SE == 0:
		return 0
	}
	return 2 * (1 - cdfT(math.Abs(e.Mean)/e.SE, float64(e.Clusters-1)))
}

// holm adjusts p-values of several tests so that the chance of any false alarm is as for
// one test (S. Holm, Scandinavian Journal of Statistics 6, 1979). The result is in the order
// of the argument.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case p[i] < p[j]:
			return -1
		case p[i] > p[j]:
			return 1
		}
		return 0
	})
	adjusted := make([]float64, len(p))
	var before float64
	for rank, i := range order {
		before = max(before, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = before
	}
	return adjusted
}

// passAt returns the chance that at least one of k trials of a question passes, estimated
// from n trials of which c passed: 1 - C(n-c, k) / C(n, k), without bias (M. Chen et al.,
// "Evaluating Large Language Models Trained on Code", arXiv 2107.03374). K is at most n.
func passAt(n, c, k int) float64 { return 1 - quotient(n-c, n, k) }

// passAll returns the chance that all of k trials of a question pass, pass^k, estimated from
// n trials of which c passed: C(c, k) / C(n, k) (S. Yao et al., "τ-bench", arXiv 2406.12045).
// K is at most n.
func passAll(n, c, k int) float64 { return quotient(c, n, k) }

// ratio returns C(c, k) / C(n, k).
func quotient(c, n, k int) float64 {
	r := 1.0
	for i := range k {
		r *= max(0, float64(c-i)) / float64(n-i)
	}
	return r
}
