package eval

import (
	"math"
	"testing"
)

// TestAttainable computes the figures of the package comment: for 30 questions that two systems
// answer right at a rate of 0.05 each, the exact coverage of Difference, and of intervals that agree
// with McNemar's exact test at any level.
func TestAttainable(t *testing.T) {
	const n, p = 30, .05
	turn := p * (1 - p) // in each direction
	covered := 0.0
	byTest := map[float64]float64{} // probability of the results with a p-value
	for b := range n + 1 {
		for c := range n + 1 - b {
			before, now := make([]float64, n), make([]float64, n)
			for i := range b {
				before[i] = 1
			}
			for i := range c {
				now[b+i] = 1
			}
			of := choose(n, b) * choose(n-b, c) * math.Pow(turn, float64(b+c)) * math.Pow(1-2*turn, float64(n-b-c))
			if e := difference(before, now, nil); e.Low <= 0 && 0 <= e.High {
				covered += of
			}
			byTest[math.Round(1e9*mcNemar(b, c))] += of
		}
	}
	near(t, "coverage of Difference", covered, .9717, 4)
	// Rejecting p-values up to a level covers the others.
	least, most := 0.0, 1.0
	for level := range byTest {
		share := 0.0
		for other, of := range byTest {
			if other > level {
				share += of
			}
		}
		if share < .95 {
			least = max(least, share)
		} else {
			most = min(most, share)
		}
	}
	near(t, "coverage below 95 %", least, .9037, 4)
	near(t, "coverage above 95 %", most, .9625, 4)
}

func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c *= float64(n-i) / float64(i+1)
	}
	return c
}
