package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

// draws is the number of bootstrap samples. It is large enough that a different seed moves the ends of an interval by less than a
// tenth of its half width.
const draws = 4000

// ratioOf estimates the mean of a divided by the mean of b, for the same questions. Both lists must have the same
// length. The argument cluster is the same as in averageOf. If the interval of b includes 0, the ratio is unknown. If there are
// no questions or the mean of b is 0, the result is the zero Estimate.
//
// The standard error and the percentile interval follow the paired bootstrap (B. Efron and R. J. Tibshirani, "An Introduction to
// the Bootstrap", 1993, chapters 6 and 13): questions, or whole clusters, are drawn with replacement. Because the seed is fixed,
// equal scores always give the same result.
func ratioOf(a, b []float64, cluster []string) Estimate {
	groups := grouped(a, b, cluster)
	whole := sum(groups)
	if whole.b == 0 {
		return Estimate{}
	}
	e := Estimate{Mean: whole.a / whole.b, N: len(a), Clusters: len(groups)}
	if len(groups) < 2 {
		return e.student() // an interval without bounds
	}
	r, found := rand.New(rand.NewPCG(1, uint64(len(groups)))), make([]float64, 0, draws)
	for len(found) < draws {
		var drawn pair
		for range groups {
			drawn.add(groups[r.IntN(len(groups))])
		}
		if drawn.b == 0 {
			drawn = whole // rare, unless the mean of b is near 0
		}
		found = append(found, drawn.a/drawn.b)
	}
	slices.Sort(found)
	e.Low, e.High = found[int(math.Round(draws*(1-level)))], found[int(math.Round(draws*level))-1]
	e.SE = spread(found)
	return e
}

// A pair contains the sum of a and the sum of b over some questions.
type pair struct{ a, b float64 }

func (p *pair) add(q pair) { p.a, p.b = p.a+q.a, p.b+q.b }

func sum(all []pair) (s pair) {
	for _, p := range all {
		s.add(p)
	}
	return s
}

// grouped returns the sums for each cluster, in the order of the clusters' first questions.
func grouped(a, b []float64, cluster []string) (groups []pair) {
	at := map[string]int{}
	for i := range a {
		k, known := len(groups), false
		if cluster != nil {
			k, known = at[cluster[i]]
			if !known {
				k = len(groups)
				at[cluster[i]] = k
			}
		}
		if !known {
			groups = append(groups, pair{})
		}
		groups[k].add(pair{a[i], b[i]})
	}
	return groups
}

// spread returns the standard deviation of the values.
func spread(values []float64) float64 {
	var mean, squares float64
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / float64(len(values)-1))
}
