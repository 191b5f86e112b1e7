package eval

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// TestCoverage simulates evaluations whose true values are known and counts how often the
// interval contains them. STONE_COVERAGE=1 makes 10,000 simulations of each kind, and up to
// 1,000 questions.
func TestCoverage(t *testing.T) {
	sims, sizes, slack := 400, []int{30, 100}, .03
	if os.Getenv("STONE_COVERAGE") != "" {
		sims, sizes, slack = 10_000, []int{30, 100, 1000}, .005
	}
	for k, kind := range simulations {
		for _, p := range []float64{.05, .5, .95} {
			for _, n := range sizes {
				r := &dice{rand.New(rand.NewPCG(uint64(k), uint64(n)))}
				covered := 0
				for range sims {
					if e, truth := kind.draw(r, p, n); e.Low <= truth && truth <= e.High {
						covered++
					}
				}
				share, most := float64(covered)/float64(sims), .96
				if rare := math.Min(p, 1-p) * float64(n); rare < kind.few {
					most = .99
				}
				t.Logf("%-22s p %.2f n %4d: %.4f", kind.name, p, n, share)
				if share < .94-slack || share > most+slack {
					t.Errorf("%s, p %.2f, n %d: the interval covers %.4f", kind.name, p, n, share)
				}
			}
		}
	}
}

var simulations = []struct {
	name string
	few  float64 // below so many rare answers, the documented exceptions hold
	draw func(r *dice, p float64, n int) (e Estimate, truth float64)
}{
	{"binary", 0, func(r *dice, p float64, n int) (Estimate, float64) {
		p += (r.Float64() - .5) * .8 * math.Min(p, 1-p) // the average over rates near p
		return averageOf(r.binary(p, n), nil), p
	}},
	{"three trials", 10, func(r *dice, p float64, n int) (Estimate, float64) {
		return averageOf(r.trials(p, n), nil), p
	}},
	{"clusters of three", 10, func(r *dice, p float64, n int) (Estimate, float64) {
		scores, cluster := r.clusters(p, n)
		return averageOf(scores, cluster), p
	}},
	{"paired, binary", 10, func(r *dice, p float64, n int) (Estimate, float64) {
		q := p + .05
		if p > .5 {
			q = p - .05
		}
		return difference(r.binary(p, n), r.binary(q, n), nil), q - p
	}},
	{"paired, as good", 10, func(r *dice, p float64, n int) (Estimate, float64) {
		return difference(r.binary(p, n), r.binary(p, n), nil), 0
	}},
	{"paired, three trials", 10, func(r *dice, p float64, n int) (Estimate, float64) {
		a, b := make([]float64, n), make([]float64, n)
		for i := range n {
			hard := r.beta(p, 2)
			a[i], b[i] = r.trial(hard), r.trial(hard)
		}
		return difference(a, b, nil), 0
	}},
	{"paired, clusters", 10, func(r *dice, p float64, n int) (Estimate, float64) {
		a, cluster := r.clusters(p, n)
		b, _ := r.clusters(p, n)
		return difference(a, b, cluster), 0
	}},
}

// A dice draws scores.
type dice struct{ *rand.Rand }

func (r *dice) binary(p float64, n int) []float64 {
	scores := make([]float64, n)
	for i := range scores {
		if r.Float64() < p {
			scores[i] = 1
		}
	}
	return scores
}

func (r *dice) trial(p float64) (mean float64) {
	for _, x := range r.binary(p, 3) {
		mean += x / 3
	}
	return min(mean, 1)
}

// trials returns the means of three trials of questions that are hard in different degrees.
func (r *dice) trials(p float64, n int) []float64 {
	scores := make([]float64, n)
	for i := range scores {
		scores[i] = r.trial(r.beta(p, 2))
	}
	return scores
}

func (r *dice) clusters(p float64, n int) (scores []float64, cluster []string) {
	var of float64
	for i := range n {
		if i%3 == 0 {
			of = r.beta(p, 4)
		}
		scores, cluster = append(scores, r.binary(of, 1)...), append(cluster, strconv.Itoa(i/3))
	}
	return scores, cluster
}

// beta draws from the beta distribution with mean p.
func (r *dice) beta(p, size float64) float64 {
	a, b := r.gamma(p*size), r.gamma((1-p)*size)
	return a / (a + b)
}

// gamma draws from the gamma distribution (G. Marsaglia and W. W. Tsang, 2000).
func (r *dice) gamma(shape float64) float64 {
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(r.Float64(), 1/shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := math.Pow(1+c*x, 3)
		if v > 0 && math.Log(r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * boost
		}
	}
}

// No difference of scores within 0 and 1 is beyond 1, however few they are.
func TestDifferenceWithinScores(t *testing.T) {
	if e := difference([]float64{0, 0.5}, []float64{1, 0.6}, nil); e.Low != -1 || e.High != 1 {
		t.Errorf("%+v, want from -1 to 1", e)
	}
	if e := difference([]float64{0, 5}, []float64{1, 9}, nil); e.Low > -1 || e.High < 4 {
		t.Errorf("%+v, want an interval that is not cut", e)
	}
}
