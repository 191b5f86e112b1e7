package eval

import "math"

// quantileNormal returns the quantile of the standard normal distribution.
func quantileNormal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// quantileT returns the quantile of Student's t-distribution for p above one half.
func quantileT(p, freedom float64) float64 {
	low, high := 0.0, 2.0
	for cdfT(high, freedom) < p {
		high *= 2
	}
	for range 60 {
		if middle := (low + high) / 2; cdfT(middle, freedom) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// cdfT is the cumulative distribution function of Student's t-distribution for t of at least 0 (Abramowitz and Stegun, 26.7.1).
func cdfT(t, freedom float64) float64 {
	return 1 - beta(freedom/(freedom+t*t), freedom/2, 0.5)/2
}

// beta is the regularized incomplete beta function, computed from its continued fraction (Abramowitz and Stegun, 26.5.8) with
// Lentz's algorithm.
func beta(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // the fraction converges slowly there
		return 1 - beta(1-x, b, a)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	f, c, d := 1.0, 1.0, 0.0
	for i := range 300 {
		m := float64(i / 2)
		var term float64
		switch {
		case i == 0:
			term = 1
		case i%2 == 0:
			term = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			term = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		d = 1 / nonzero(1+term*d, tiny)
		c = nonzero(1+term/c, tiny)
		f *= c * d
		if math.Abs(1-c*d) < 1e-14 {
			break
		}
	}
	return front * (f - 1)
}

func nonzero(x, tiny float64) float64 {
	if math.Abs(x) < tiny {
		return tiny
	}
	return x
}

// logChoose returns the natural logarithm of the binomial coefficient C(n, k).
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
