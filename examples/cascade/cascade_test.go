package cascade

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/answers"
	"github.com/stonelayer/stone/eval"
	"github.com/stonelayer/stone/eval/stat"
)

// recording has the answers of the two models. It is optional.
const recording = "../../../shared/data/gsm8k/responses.jsonl"

func recorded(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(recording); errors.Is(err, os.ErrNotExist) {
		t.Skipf("no recorded answers: %v", err)
	}
}

func route(t *testing.T, args ...string) eval.RoutingReport {
	t.Helper()
	p, err := Pipeline(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range stone.Validate(p, stone.Given{}) {
		t.Errorf("finding: %s", f)
	}
	r, err := stone.Produce(t.Context(), p, eval.Routed, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The claim of the example: on the test split, which chose nothing, and with its interval of 95 %.
func TestThesis(t *testing.T) {
	recorded(t)
	r := route(t, "--data", recording, "--split", eval.TestSplit)
	t.Log(r.Text)
	for _, w := range r.Ways {
		if w.N != 313 || w.Errors+w.NoAnswer > 0 {
			t.Errorf("%s: %d questions, %d errors, %d without an answer, want 313 answers", w.Name, w.N, w.Errors, w.NoAnswer)
		}
	}
	for _, c := range []struct {
		name            string
		got             stat.Estimate
		mean, low, high float64
	}{
		{"of the gap", r.GapRecovered, .592, .455, .759},
		{"large calls", r.LargeShare, .214, .172, .263},
		{"of the cost", r.CostShare, .280, .224, .336},
	} {
		if near := func(a, b float64) bool { return math.Abs(a-b) < .0005 }; !near(c.got.Mean, c.mean) || !near(c.got.Low, c.low) || !near(c.got.High, c.high) {
			t.Errorf("%s: %.3f, %.3f to %.3f; want %.3f, %.3f to %.3f", c.name, c.got.Mean, c.got.Low, c.got.High, c.mean, c.low, c.high)
		}
	}
}

// The checks are those that recover most of the gap on the dev split with at most 30 % of large calls, and a
// margin of 1.64 standard errors: of 20 such choices, 19 keep the bound elsewhere. Of equal sets it is the
// smallest, so that each of its checks adds something.
func TestChosen(t *testing.T) {
	dev := recordings(t, eval.DevSplit)
	most, best, size := 0.0, "", 0
	for set := 1; set < 1<<len(checks); set++ {
		var names []string
		for i, c := range checks {
			if set>>i&1 == 1 {
				names = append(names, c.name)
			}
		}
		gap, large := dev.routed(names)
		t.Logf("%.3f of the gap, %.3f ± %.3f large calls: %q", gap.Mean, large.Mean, 1.64*large.SE, names)
		gain := gap.Mean - most
		if large.Mean+1.64*large.SE <= 0.30 && (gain > 1e-9 || gain > -1e-9 && len(names) < size) {
			most, best, size = gap.Mean, strings.Join(names, ","), len(names)
		}
	}
	if best != chosen {
		t.Errorf("the best checks on the dev split are %s, the example has %s", best, chosen)
	}
	// The pipeline routes as this simulation does.
	gap, large := dev.routed(strings.Split(chosen, ","))
	if r := route(t, "--data", recording, "--split", eval.DevSplit); r.GapRecovered.Mean != gap.Mean || r.LargeShare.Mean != large.Mean {
		t.Errorf("the pipeline recovers %v of the gap at %v large calls, the simulation %v at %v", r.GapRecovered.Mean, r.LargeShare.Mean, gap.Mean, large.Mean)
	}
}

// answered is the answers of both models to a question.
type answered map[string]struct {
	Text    string
	Correct bool
}

// part is a part of the recording.
type part []answered

// recordings reads the part of the recording that an evaluation of the split asks for.
func recordings(t *testing.T, split string) (all part) {
	recorded(t)
	var mu sync.Mutex
	collect := eval.Func("collect", func(_ context.Context, c eval.Case) (s eval.Score, err error) {
		var a answered
		err = json.Unmarshal(c.Expected, &a)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, a)
		return s, err
	})
	silent := stone.Func("silent", Asked, Chosen, func(context.Context, Question) (t Text, err error) { return t, nil })
	_, err := eval.Run(t.Context(), eval.Config{Pipeline: silent, Data: eval.Data{File: recording, Split: split, Expected: "responses"}, Scorers: []eval.Scorer{collect}}, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// routed asks the large model where one of the checks rejects the small one's answer.
func (p part) routed(names []string) (gap, asked stat.Estimate) {
	value := map[bool]float64{true: 1}
	var gains, gaps, calls []float64
	for _, a := range p {
		got := a[small]
		rejected := slices.ContainsFunc(checks, func(c check) bool { return slices.Contains(names, c.name) && c.fn(got.Text) != nil })
		if rejected {
			got = a[large]
		}
		alone := value[a[small].Correct]
		gains, gaps, calls = append(gains, value[got.Correct]-alone), append(gaps, value[a[large].Correct]-alone), append(calls, value[rejected])
	}
	return stat.Ratio(gains, gaps, nil), stat.Mean(calls, nil)
}

// TestTuned tunes the order of the models and the number of checks that an answer must pass, of all four. It
// uses the dev split and allows a cost per question, without a margin. On the test split, which the tuning
// does not read, the chosen setting recovers 67.1 % of the gap with 25.6 % of large calls.
func TestTuned(t *testing.T) {
	recorded(t)
	app := &call.Applicator{Checks: map[string]call.Check{}}
	var names []string
	for _, c := range checks {
		app.Checks[c.name] = func(ctx context.Context, s call.Subject) error {
			if strings.HasPrefix(s.Step, large) {
				return nil // the last candidate, and its answers have another form than the checks expect
			}
			return c.call(ctx, s)
		}
		names = append(names, c.name)
	}
	var models []call.Capability
	for _, name := range []string{large, small} {
		models = append(models, answers.New(call.Metadata{ID: name, Cost: call.Cost{Price: prices[name]}},
			answers.Config{File: recording, Key: answers.Key{"question": {"question"}}, Text: answers.Path{"responses", name, "text"}}))
	}
	app.Registry = call.NewRegistry(models...)
	spec := func(least float64, candidates ...string) call.Spec {
		return call.Spec{Applicator: app, Intent: "math/solve", Input: call.From(Asked), Done: call.Done{Should: names, ScoreMin: &least}, Dispatch: call.Dispatch{Candidates: candidates}}
	}
	ask := func(name string, s call.Spec) stone.Ashlar { return call.New(name, Solution, s) }
	cascade, err := app.Tunable(spec(0, large, small))
	if err != nil {
		t.Fatal(err)
	}
	tuning := eval.Tuning{
		Data: eval.Data{File: recording, Expected: "responses", Split: eval.DevSplit}, Scorer: eval.Func("correct", correct),
		Call: Solution.Name(), Cascade: cascade, USDPerCase: 0.0015,
		Alone: func(id string) (stone.Ashlar, error) { return ask("solve", spec(0, id)), nil },
	}
	choice, err := tuning.Run(t.Context(), stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(choice.Text())
	gap := func(mean, small, large float64) float64 { return (mean - small) / (large - small) }
	if got := gap(choice.Mean, choice.Alone[1].Mean, choice.Alone[0].Mean); choice.Candidates[0] != small || choice.ScoreMin != 1 || got < 0.69 {
		t.Errorf("%q from a score of %v, %.3f of the gap on the dev split: want the small model first, all checks, at least 0.69", choice.Candidates, choice.ScoreMin, got)
	}
	test := tuning.Data
	test.Split = eval.TestSplit
	p, err := eval.Routing{Data: test, Scorer: tuning.Scorer, Routed: ask("tuned", spec(choice.ScoreMin, choice.Candidates...)), LargeCap: large,
		Small: []stone.Ashlar{ask("small", spec(0, small))}, Large: ask("large", spec(0, large))}.Pipeline()
	if err != nil {
		t.Fatal(err)
	}
	r, err := stone.Produce(t.Context(), p, eval.Routed, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Text)
	if r.GapRecovered.Mean < 0.67 || r.LargeShare.Mean > 0.30 {
		t.Errorf("%.3f of the gap at %.3f large calls on the test split: want at least 0.67, at most 0.30", r.GapRecovered.Mean, r.LargeShare.Mean)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "responses.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestFive runs five short questions. The small model is right; wrong, as its calculation shows;
// wrong, and the large one gives no final answer; silent; wrong, but no check notices.
func TestFive(t *testing.T) {
	r := route(t, "--data", "testdata/five.jsonl")
	if r.Cases != 5 || r.Ways[0].Mean != 0.6 || r.LargeShare.Mean != 0.6 || r.Ways[2].Mean != 0.2 || r.Ways[1].Mean != 0.8 {
		t.Errorf("%+v", r)
	}
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"want --data FILE": nil,
		"no such file":     {"--data", "there.jsonl"},
		`has no answers with the text at "responses.mixtral-8x7b-instruct-v0.1.text"`: {"--data", write(t, "{\"question\": \"?\"}")},
		":2: it answers the same question as line 1":                                  {"--data", write(t, strings.Repeat(`{"question": "?", "responses": {"`+small+`": {"text": "a"}}}`+"\n", 2))},
	} {
		if _, err := Pipeline(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}
