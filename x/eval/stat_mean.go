package eval

import "math"

// An Estimate is a mean with its uncertainty.
type Estimate struct {
	Mean     float64 `json:"mean"`
	SE       float64 `json:"se"`       // standard error
	Low      float64 `json:"low"`      // lower end of the 95 % interval
	High     float64 `json:"high"`     // upper end of the 95 % interval
	N        int     `json:"n"`        // number of questions
	Clusters int     `json:"clusters"` // number of independent groups of questions; N without clusters
}

// level is the probability below the upper end of an interval.
const level = 0.975

// averageOf returns an estimate of the mean of scores, one for each question. The argument cluster contains the cluster of each
// question; nil means that each question is its own cluster. If there are no scores, the result is the zero Estimate.
//
// The standard error follows E. Miller, "Adding Error Bars to Evals" (arXiv 2411.00640): by question in section 2.1, and
// clustered in section 2.2 with the factor G/(G-1) for G clusters, which makes the first a special case of the second. If all
// scores are between 0 and 1, the interval follows E. B. Wilson ("Probable Inference", JASA 22, 1927), using the effective sample
// size, as E. L. Korn and B. I. Graubard propose for clusters (Survey Methodology 24, 1998). Otherwise it is Student's interval
// with G-1 degrees of freedom: with quantiles of the normal distribution, coverage would be only 84 % with three clusters.
func averageOf(scores []float64, cluster []string) Estimate {
	e := estimate(scores, cluster)
	if e.N == 0 {
		return e
	}
	for _, s := range scores {
		if s < 0 || s > 1 {
			return e.student()
		}
	}
	return e.wilson()
}

// student is like averageOf, but always uses Student's interval. It is used for values that are not scores, such as costs.
func student(values []float64, cluster []string) Estimate {
	e := estimate(values, cluster)
	if e.N == 0 {
		return e
	}
	return e.student()
}

// estimate returns an Estimate with the mean and the standard error, but without an interval.
func estimate(scores []float64, cluster []string) Estimate {
	e := Estimate{N: len(scores), Clusters: len(scores)}
	if e.N == 0 {
		return e
	}
	n := float64(e.N)
	for _, s := range scores {
		e.Mean += s
	}
	e.Mean /= n
	var squares float64
	if cluster == nil {
		for _, s := range scores {
			squares += (s - e.Mean) * (s - e.Mean)
		}
	} else {
		sums := map[string]float64{}
		order := []string{} // keeps the sum independent of map order
		for i, s := range scores {
			if _, known := sums[cluster[i]]; !known {
				order = append(order, cluster[i])
			}
			sums[cluster[i]] += s - e.Mean
		}
		for _, c := range order {
			squares += sums[c] * sums[c]
		}
		e.Clusters = len(order)
	}
	if e.Clusters > 1 {
		g := float64(e.Clusters)
		e.SE = math.Sqrt(squares*g/(g-1)) / n
	}
	return e
}

// student sets the interval to Student's interval around the mean. With only one cluster, it has no bounds.
func (e Estimate) student() Estimate {
	half := math.MaxFloat64 // JSON cannot represent infinity
	if e.Clusters > 1 {
		half = quantileT(level, float64(e.Clusters-1)) * e.SE
	}
	e.Low, e.High = e.Mean-half, e.Mean+half
	return e
}

// wilson sets the interval to Wilson's interval, for a mean between 0 and 1. The effective sample size is the number of
// independent binary answers that would have the same standard error.
func (e Estimate) wilson() Estimate {
	if e.Clusters < 2 {
		e.Low, e.High = 0, 1
		if e.N == 1 {
			e.Low, e.High = wilson(e.Mean, 1)
		}
		return e
	}
	n := float64(e.Clusters)
	if e.SE > 0 { // for binary answers without clusters, n = N
		n *= e.Mean * (1 - e.Mean) / (e.SE * e.SE) / (n - 1)
	}
	if e.Clusters < e.N { // the variance itself is estimated from few clusters
		t, z := quantileT(level, float64(e.Clusters-1)), quantileNormal(level)
		n *= z * z / (t * t)
	}
	e.Low, e.High = wilson(e.Mean, n)
	return e
}

// wilson returns Wilson's interval for a rate among n binary answers. Because n is the effective sample size, it may be a
// fraction.
func wilson(rate, n float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	z := quantileNormal(level)
	middle := (rate + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(rate*(1-rate)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

// difference returns an estimate of the mean of b minus a, the differences between the scores of the same questions. Both lists
// must have the same length. The argument cluster is the same as in averageOf.
//
// The standard error is computed from the paired differences, as in E. Miller, "Adding Error Bars to Evals" (arXiv 2411.00640),
// section 4.2: questions that are difficult for both sides add no noise. The interval is Student's. It is limited to -1 and 1 if
// the scores are between 0 and 1. If all differences are equal, it follows D. G. Bonett and R. M. Price ("Adjusted Wald Confidence
// Interval for a Difference of Binomial Proportions Based on Paired Data", JEBS 37, 2012), who add one question that changed in
// each direction: otherwise Student's interval would be empty.
func difference(a, b []float64, cluster []string) Estimate {
	d := make([]float64, len(a))
	scores := true
	for i := range a {
		d[i] = b[i] - a[i]
		scores = scores && min(a[i], b[i]) >= 0 && max(a[i], b[i]) <= 1
	}
	e := estimate(d, cluster)
	if e.SE > 0 || e.Clusters < 2 || math.Abs(e.Mean) > 1 {
		if e = e.student(); scores && e.Clusters > 1 {
			e.Low, e.High = max(-1, e.Low), min(1, e.High)
		}
		return e
	}
	n := float64(e.Clusters) + 2
	middle := e.Mean * float64(e.Clusters) / n
	turned := (math.Abs(e.Mean)*float64(e.Clusters) + 2) / n
	half := quantileNormal(level) * math.Sqrt((turned-middle*middle)/n)
	e.Low, e.High = max(-1, middle-half), min(1, middle+half)
	return e
}

// Needed returns the number of questions with which an estimate of this spread would distinguish its mean from the bound with a
// probability of 80 %. It returns 0 if no number would suffice, for example because the mean equals the bound. The formula
// follows E. Miller, "Adding Error Bars to Evals" (arXiv 2411.00640), section 5.
func (e Estimate) Needed(bound float64) int {
	away := math.Abs(e.Mean - bound)
	if away == 0 || e.N == 0 {
		return 0
	}
	// The interval has a width even if the standard error is 0.
	se := max(e.SE, (e.High-e.Low)/2/quantileNormal(level))
	if se > math.MaxFloat32 {
		return 0
	}
	z := (quantileNormal(level) + quantileNormal(0.8)) * se / away
	return int(math.Min(math.Ceil(float64(e.N)*z*z), 1e9))
}
