package eval

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
)

func recorded(t *testing.T, name string) *os.File {
	f, err := os.Open(need.Recorded(t, "data/"+name)[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// resamples judges so many pairs of runs by a gate, and returns the share of failed ones.
func resamples(n int, draw func(*rand.Rand) (before, now []float64)) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	failed := 0
	for range n {
		before, now := draw(r)
		if above("", difference(before, now, nil), 0, mean4).Verdict == GateFailed {
			failed++
		}
	}
	return float64(failed) / float64(n)
}

// TestGateOnEqual compares trials of one model with each other: the gate rarely fails.
func TestGateOnEqual(t *testing.T) {
	rows, err := csv.NewReader(recorded(t, "trials/tau-airline.csv")).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	byTask := map[string][]float64{}
	var tasks []string
	for _, row := range rows[1:] {
		reward, err := strconv.ParseFloat(row[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if byTask[row[0]] == nil {
			tasks = append(tasks, row[0])
		}
		byTask[row[0]] = append(byTask[row[0]], reward)
	}
	for _, n := range []int{50, 500} {
		share := resamples(1000, func(r *rand.Rand) (before, now []float64) {
			for range n {
				trials := byTask[tasks[r.IntN(len(tasks))]]
				i := r.IntN(len(trials))
				before = append(before, trials[i])
				now = append(now, trials[(i+1+r.IntN(len(trials)-1))%len(trials)])
			}
			return before, now
		})
		t.Logf("n = %d: %.3f of equal runs failed", n, share)
		if share > .05 {
			t.Errorf("n = %d: %.3f of equal runs failed, want at most 0.05", n, share)
		}
	}
}

// TestGateOnDrop turns right answers of a model wrong, five in a hundred: the gate fails.
func TestGateOnDrop(t *testing.T) {
	scan := bufio.NewScanner(recorded(t, "gsm8k/responses.jsonl"))
	scan.Buffer(nil, 16<<20)
	var right []float64
	for scan.Scan() {
		var row struct {
			Responses map[string]struct{ Correct bool }
		}
		if err := json.Unmarshal(scan.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		score := 0.
		if row.Responses["mixtral-8x7b-instruct-v0.1"].Correct {
			score = 1
		}
		right = append(right, score)
	}
	all := averageOf(right, nil).Mean
	share := resamples(1000, func(r *rand.Rand) (before, now []float64) {
		for range 500 {
			s := right[r.IntN(len(right))]
			before = append(before, s)
			if r.Float64() < .05/all {
				s = 0
			}
			now = append(now, s)
		}
		return before, now
	})
	t.Logf("%.3f of runs that are 5 points worse failed", share)
	if share < .8 {
		t.Errorf("%.3f of runs that are 5 points worse failed, want at least 0.8", share)
	}
}

func TestGateRules(t *testing.T) {
	rest := strings.Repeat("0", idSize-4)
	e := &evaluation{data: &dataset{rows: []row{{text: "aa00" + rest + "\n\n"}, {text: "ab11" + rest + "\n\n"}}}}
	e.Scorers = []Scorer{{name: "s"}}
	e.Gate = &Gate{Must: []string{"aa"}, Never: []string{"refused"}, USDAtMost: 1, AtLeast: map[string]float64{"s": .5}}
	tell := func(first, second string, cost0 float64) (all []string) {
		tally := &tally{
			trials: [][]outcome{{{Case: "aa00", Verdicts: first, Values: []float64{1}}}, {{Case: "ab11", Verdicts: second, Values: []float64{0}, Failure: map[string]string{"n": "refused"}[second]}}},
			costs:  [][]cost{{{USD: cost0}}, {{}}},
		}
		r, err := e.summarize(tally)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range r.Gate.Rules {
			all = append(all, rule.Verdict)
		}
		return append(all, r.Gate.Verdict)
	}
	for _, c := range []struct {
		first, second string
		usd           float64
		want          []string
	}{
		{"r", "w", 1, []string{Passed, Passed, CannotTell, Passed, CannotTell}},
		{"w", "n", 2, []string{GateFailed, GateFailed, CannotTell, GateFailed, GateFailed}},
		{"e", "w", 0, []string{CannotTell, Passed, CannotTell, Passed, CannotTell, CannotTell}},
	} {
		if got := tell(c.first, c.second, c.usd); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
	for _, bad := range []*Gate{{Must: []string{"a"}}, {Must: []string{"x"}}, {AtLeast: map[string]float64{"t": 1}}, {NoWorseThan: map[string]float64{"s": .1}}} {
		e.Gate = bad
		if err := e.checkGate(); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
