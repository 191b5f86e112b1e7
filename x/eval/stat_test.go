package eval

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
)

// near fails unless got is want to so many digits behind the point.
func near(t *testing.T, what string, got, want float64, digits int) {
	t.Helper()
	if math.Abs(got-want) > 0.5*math.Pow10(-digits)+1e-12 {
		t.Errorf("%s: got %.6f, want %.*f", what, got, digits, want)
	}
}

// trials are the trials of questions: right ones, of so many each.
func trials(t *testing.T) (right []int, each int) {
	f, err := os.Open(need.Recorded(t, "data/trials/tau-airline.csv")[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	by, order := map[string]int{}, []string{}
	for _, row := range rows[1:] {
		q := row[at["task_id"]]
		if _, known := by[q]; !known {
			order = append(order, q)
		}
		reward, err := strconv.ParseFloat(row[at["reward"]], 64)
		if err != nil {
			t.Fatal(err)
		}
		by[q] += int(reward)
	}
	for _, q := range order {
		right = append(right, by[q])
	}
	return right, (len(rows) - 1) / len(right)
}

// TestTrials compares with the published values of gpt-4o on tau-bench (airline).
func TestTrials(t *testing.T) {
	right, each := trials(t)
	var scores []float64
	for _, c := range right {
		scores = append(scores, float64(c)/float64(each))
	}
	e := averageOf(scores, nil)
	near(t, "mean", e.Mean, .42, 4)
	near(t, "standard error", e.SE, .0522, 4)
	at, all := []float64{.42, .5667, .66, .72}, []float64{.42, .2733, .22, .2}
	for k := 1; k <= each; k++ {
		var any, every float64
		for _, c := range right {
			any += passAt(each, c, k) / float64(len(right))
			every += passAll(each, c, k) / float64(len(right))
		}
		near(t, "pass@k", any, at[k-1], 4)
		near(t, "pass^k", every, all[k-1], 4)
	}
}

// TestClusters finds the same error whether the trials of a question are its mean or its
// cluster: the question is what is drawn.
func TestClusters(t *testing.T) {
	var means, single []float64
	var cluster []string
	for q := range 40 {
		var sum float64
		for trial := range 4 {
			x := float64((q*q + trial) % 3 % 2)
			sum += x
			single, cluster = append(single, x), append(cluster, strconv.Itoa(q))
		}
		means = append(means, sum/4)
	}
	a, b := averageOf(means, nil), averageOf(single, cluster)
	near(t, "mean", b.Mean, a.Mean, 12)
	near(t, "standard error", b.SE, a.SE, 12)
	if b.Clusters != 40 || b.N != 160 {
		t.Errorf("%d clusters of %d", b.Clusters, b.N)
	}
}

func TestWilson(t *testing.T) {
	// R. G. Newcombe, Statistics in Medicine 17 (1998), table I.
	for _, c := range []struct{ x, n, low, high float64 }{{81, 263, .2553, .3662}, {15, 148, .0624, .1605}, {0, 20, 0, .1611}, {1, 29, .0061, .1718}} {
		low, high := wilson(c.x/c.n, c.n)
		near(t, "low", low, c.low, 4)
		near(t, "high", high, c.high, 4)
	}
	for _, scores := range [][]float64{{1, 1, 1, 1}, {0, 0, 0, 0}, {1}, {.5, .5}} {
		if e := averageOf(scores, nil); e.High-e.Low < .3 || e.Low < 0 || e.High > 1 {
			t.Errorf("%v have the interval %.3f to %.3f", scores, e.Low, e.High)
		}
	}
	if e := averageOf(nil, nil); e != (Estimate{}) {
		t.Errorf("no scores: %+v", e)
	}
}

func TestStudent(t *testing.T) {
	// The quantiles come from the tables: t(.975) with 1, 9 and 99 degrees of freedom.
	for _, c := range []struct {
		n int
		t float64
	}{{2, 12.7062}, {10, 2.26216}, {100, 1.98422}} {
		scores := make([]float64, c.n)
		for i := range scores {
			scores[i] = float64(i) * 10
		}
		e := averageOf(scores, nil)
		near(t, "quantile", (e.High-e.Mean)/e.SE, c.t, 4)
	}
}

func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		gained, lost int
		p            float64
	}{{0, 0, 1}, {5, 5, 1}, {0, 6, .03125}, {1, 9, .021484}, {10, 2, .038574}, {120, 160, .019607}} {
		near(t, "p", mcNemar(c.gained, c.lost), c.p, 5)
		near(t, "p turned", mcNemar(c.lost, c.gained), c.p, 5)
	}
}

func TestHolm(t *testing.T) {
	got := holm([]float64{.01, .04, .03, .005})
	for i, want := range []float64{.03, .06, .06, .02} {
		near(t, "p", got[i], want, 9)
	}
}

func TestNeeded(t *testing.T) {
	scores := make([]float64, 100)
	for i := range 50 {
		scores[i] = 1
	}
	// n = (1.96+.84)² p(1-p)/δ², with δ = .05.
	if n := averageOf(scores, nil).Needed(.45); n < 750 || n > 850 {
		t.Errorf("%d questions are needed, want about 785", n)
	}
	if n := averageOf(scores, nil).Needed(.5); n != 0 {
		t.Errorf("no number of questions tells equal values apart, got %d", n)
	}
}
