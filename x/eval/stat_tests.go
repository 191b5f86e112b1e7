package eval

import (
	"math"
	"slices"
)

// mcNemar returns the two-sided p-value of McNemar's exact test: the probability that gained and lost differ at least as much as
// they do if both directions are equally likely. The argument gained is the number of questions that are right only now, and lost
// the number that were right only before. The p-value is a sum of probabilities from a binomial distribution with p = 1/2 (Q.
// McNemar, Psychometrika 12, 1947).
func mcNemar(gained, lost int) float64 {
	n := gained + lost
	var tail float64
	for k := range min(gained, lost) + 1 {
		tail += math.Exp(logChoose(n, k) - float64(n)*math.Ln2)
	}
	return min(1, 2*tail)
}

// PValue returns the two-sided p-value of Student's test for the hypothesis that the mean, a difference, is 0.
func (e Estimate) PValue() float64 {
	switch {
	case e.Clusters < 2 || e.Mean == 0:
		return 1
	case e.SE == 0:
		return 0
	}
	return 2 * (1 - cdfT(math.Abs(e.Mean)/e.SE, float64(e.Clusters-1)))
}

// holm returns adjusted p-values of several tests, in the order of the arguments. With them, the probability of at least one
// false alarm is no higher than in a single test (S. Holm, Scandinavian Journal of Statistics 6, 1979).
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

// passAt returns the probability that a question passes at least one of k trials, estimated without bias from n trials of
// which c passed: 1 - C(n-c, k) / C(n, k) (M. Chen et al., "Evaluating Large Language Models Trained on Code", arXiv 2107.03374).
// k must be at most n.
func passAt(n, c, k int) float64 { return 1 - quotient(n-c, n, k) }

// passAll returns the probability that a question passes all of k trials, pass^k, estimated from n trials of which c passed:
// C(c, k) / C(n, k) (S. Yao et al., "τ-bench", arXiv 2406.12045). k must be at most n.
func passAll(n, c, k int) float64 { return quotient(c, n, k) }

// quotient returns C(c, k) / C(n, k).
func quotient(c, n, k int) float64 {
	r := 1.0
	for i := range k {
		r *= max(0, float64(c-i)) / float64(n-i)
	}
	return r
}

// This file and the other stat files contain the statistics of an evaluation, as pure functions of scores.
//
// Each question has one score, the mean of its trials, because the trials of a question are not independent. Questions may share
// a cluster, such as the document to which they refer; clusters are assumed to be independent of each other.
//
//	e := averageOf(scores, nil)         // mean, standard error and interval by question
//	d := difference(old, now, nil) // of two runs over the same questions
//
// # Intervals
//
// All intervals have a nominal coverage of 95 %. averageOf uses Wilson's interval if the scores are between 0 and 1, because the
// usual interval around the mean is too short, or empty, if nearly all answers are right or wrong. difference uses Student's
// interval, and ratioOf the paired bootstrap. Sources are given with each function.
//
// The tests simulate the coverage, which is between 94 % and 96 % with these exceptions:
//
//   - The coverage of any interval for the rate of n binary answers jumps with the rate, because there are only n+1 possible
//     results. With 30 questions and a rate of 0.05, no deterministic rule has a coverage between 93.92 % and 98.44 %. Averaged
//     over neighbouring rates, the coverage is between 94 % and 96 %.
//   - With fewer than about ten rare answers (right answers near a rate of 0, wrong answers near 1), means of trials and of
//     clusters have wider intervals, whose coverage is up to 99 %.
//   - If fewer than about five questions changed, the coverage of a difference's interval is up to 99 %, again because few
//     results are possible: of 30 questions that two systems each answer right at a rate of 0.05, three change on average. The
//     coverage of difference is then 97.17 %. The coverage of an interval that agrees with McNemar's exact test is, depending on
//     its level, at least 96.25 % or at most 90.37 %.
