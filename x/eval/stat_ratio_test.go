package eval

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// routes are the gains of a routed and a large system over a small one, for n questions.
func routes(r *rand.Rand, n int) (routed, large []float64) {
	for range n {
		small, big := r.Float64() < .6, r.Float64() < .85
		got := small
		if r.Float64() < .3 {
			got = big
		}
		value := map[bool]float64{true: 1}
		routed, large = append(routed, value[got]-value[small]), append(large, value[big]-value[small])
	}
	return routed, large
}

// The interval covers the true ratio, .3, in about 95 % of simulated comparisons; STONE_COVERAGE=1 makes more.
func TestRatioCovers(t *testing.T) {
	sims, slack := 50, .08
	if os.Getenv("STONE_COVERAGE") != "" {
		sims, slack = 2000, .015
	}
	covered := 0
	for seed := range sims {
		a, b := routes(rand.New(rand.NewPCG(7, uint64(seed))), 150)
		if e := ratioOf(a, b, nil); e.Low <= .3 && .3 <= e.High {
			covered++
		}
	}
	if share := float64(covered) / float64(sims); math.Abs(share-.95) > slack {
		t.Errorf("the interval covers %.4f", share)
	}
}

// The standard error is near the delta method's; copies of each question, as a cluster, do not make it smaller.
func TestRatioSpread(t *testing.T) {
	a, b := routes(rand.New(rand.NewPCG(1, 2)), 400)
	ratio, rest := sumOf(a)/sumOf(b), make([]float64, len(a))
	for i := range a {
		rest[i] = a[i] - ratio*b[i]
	}
	delta := student(rest, nil).SE / (sumOf(b) / float64(len(b)))
	e := ratioOf(a, b, nil)
	if e.Mean != ratio || e.N != 400 || e.Clusters != 400 || math.Abs(e.SE/delta-1) > .1 {
		t.Errorf("%+v, want %v with about %v", e, ratio, delta)
	}
	var cluster []string
	for i := range 800 {
		cluster = append(cluster, strconv.Itoa(i%400))
	}
	twice := ratioOf(append(a, a...), append(b, b...), cluster)
	if twice.N != 800 || twice.Clusters != 400 || twice.SE != e.SE || twice.Low != e.Low {
		t.Errorf("%+v, want the spread of %+v", twice, e)
	}
}

func TestRatioOfNothing(t *testing.T) {
	for _, b := range [][]float64{nil, {0, 0}, {1, -1}} {
		if e := ratioOf(make([]float64, len(b)), b, nil); e != (Estimate{}) {
			t.Errorf("%v: %+v, want none", b, e)
		}
	}
	if e := ratioOf([]float64{1}, []float64{2}, nil); e.Mean != .5 || e.High < math.MaxFloat32 {
		t.Errorf("of one question: %+v, want an open interval", e)
	}
}

func sumOf(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}
