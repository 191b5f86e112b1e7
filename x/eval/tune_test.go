package eval_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/x/eval"
)

// rival is a cascade over made up capabilities, whose answers have a random quality.
type rival struct {
	app  *call.Applicator
	asks *atomic.Int32
}

// newRival makes three capabilities. An answer is right, wrong with some of the marks that checks look
// for, refused by a must, or none at all.
func newRival(r *rand.Rand, cases int) rival {
	v := rival{asks: new(atomic.Int32)}
	answers := []string{"%s", "%s", "%s!", "%s!?", "wrong", "wrong!", "wrong!?", "", "fail", "deny"}
	var caps []call.Capability
	for _, id := range []string{"a", "b", "c"} {
		said := map[string]string{}
		for i := range cases {
			said[fmt.Sprint("t", i)] = answers[r.IntN(len(answers))]
		}
		caps = append(caps, call.Func(call.Metadata{ID: id, Intents: []string{"say"}, Cost: call.Cost{USD: float64(1+r.IntN(99)) / 100}},
			func(_ context.Context, in any) (any, error) {
				v.asks.Add(1)
				text := in.(map[string]any)["text"].(string)
				switch answer := said[text]; answer {
				case "fail":
					return nil, stone.Fail(reasons.FormatDrift, "no")
				case "deny":
					return nil, stone.Fail("refused", "no")
				default:
					return strings.Replace(answer, "%s", strings.ToUpper(text), 1), nil
				}
			}))
	}
	v.app = &call.Applicator{Registry: call.NewRegistry(caps...), Checks: map[string]call.Check{"calm": lacks("!"), "sure": lacks("?")}}
	return v
}

// lacks returns a check for texts without a mark.
func lacks(mark string) call.Check {
	return func(_ context.Context, s call.Subject) error {
		if strings.Contains(string(s.Out), mark) {
			return errors.New("it has " + mark)
		}
		return nil
	}
}

func (v rival) spec(least float64, order ...string) call.Spec {
	return call.Spec{Applicator: v.app, Intent: "say", Input: call.From(asked), Dispatch: call.Dispatch{Candidates: order},
		Done: call.Done{Must: []string{"non-empty"}, Should: []string{"calm", "sure"}, ScoreMin: &least}}
}

func (v rival) pipeline(s call.Spec) stone.Ashlar { return call.New("say", reply, s) }

func (v rival) tuning(t *testing.T, data eval.Data, s call.Spec, usd float64) eval.Tuning {
	t.Helper()
	cascade, err := v.app.Tunable(s)
	if err != nil {
		t.Fatal(err)
	}
	return eval.Tuning{Data: data, Scorer: scorers(t, "contains")[0], Call: "reply", Cascade: cascade, USDPerCase: usd,
		Alone: func(id string) (stone.Ashlar, error) {
			alone := s
			alone.Cap, alone.Dispatch.Candidates, alone.Done.ScoreMin = id, nil, new(0.0)
			return v.pipeline(alone), nil
		}}
}

// TestTuningSimulates compares what a tuning says of a setting, the present one and the chosen one, with
// an evaluation of the cascade itself.
func TestTuningSimulates(t *testing.T) {
	const cases = 12
	var texts []string
	for i := range cases {
		texts = append(texts, fmt.Sprint("t", i))
	}
	data := rows(texts...)
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		v := newRival(r, cases)
		order := []string{"a", "b", "c"}
		r.Shuffle(3, func(i, k int) { order[i], order[k] = order[k], order[i] })
		least, limit := []float64{0, 0.3, 0.5, 1}[r.IntN(4)], 0.5+2*r.Float64()
		p, err := v.tuning(t, data, v.spec(least, order...), limit).Pipeline(t.Context(), stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := stone.Validate(p, stone.Given{}).Err(); err != nil {
			t.Fatal(err)
		}
		choice, err := stone.Produce(t.Context(), p, eval.Tuned, stone.Config{})
		if err != nil {
			if !strings.Contains(err.Error(), "no setting costs at most") {
				t.Fatal(err)
			}
			continue
		}
		if n := v.asks.Load(); n != 3*cases {
			t.Errorf("seed %d: %d answers were asked for, want each once", seed, n)
		}
		if choice.USD > limit || choice.Before.USD <= limit && choice.Before.Mean > choice.Mean+1e-9 {
			t.Errorf("seed %d: %+v is chosen within $%v", seed, choice, limit)
		}
		for _, s := range []eval.Setting{choice.Setting, choice.Before} {
			real, err := eval.Run(t.Context(), eval.Config{Pipeline: v.pipeline(v.spec(s.ScoreMin, s.Candidates...)), Data: data, Scorers: scorers(t, "contains")}, stone.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(real.Scores[0].Mean-s.Mean) > 1e-9 || math.Abs(real.Cost.USD/cases-s.USD) > 1e-9 {
				t.Errorf("seed %d: %q from %v: %.4f at $%.4f, simulated %.4f at $%.4f", seed, s.Candidates, s.ScoreMin, real.Scores[0].Mean, real.Cost.USD/cases, s.Mean, s.USD)
			}
		}
	}
}

// TestTuningIsRecorded repeats and resumes a tuning: nothing is asked for again.
func TestTuningIsRecorded(t *testing.T) {
	v := newRival(rand.New(rand.NewPCG(1, 1)), 4)
	db := memdb.New(t)
	for i, opts := range []journal.Options{{}, {Reuse: "r0"}, {Resume: true}} {
		p, err := v.tuning(t, rows("t0", "t1", "t2", "t3"), v.spec(0.5, "a", "b"), 9).Pipeline(t.Context(), stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("r", min(i, 1))
		if _, err := stone.Produce(t.Context(), p, eval.Tuned, stone.Config{RunID: id, Recorder: journal.Keep(db, opts)}); err != nil {
			t.Fatal(err)
		}
		if n := v.asks.Load(); n != 8 {
			t.Errorf("%d answers were asked for, want 8", n)
		}
	}
}

// TestTuningNeeds lists calls that cannot be tuned.
func TestTuningNeeds(t *testing.T) {
	v := newRival(rand.New(rand.NewPCG(1, 1)), 1)
	for want, change := range map[string]func(*call.Spec){
		"names only one capability": func(s *call.Spec) { s.Cap, s.Dispatch.Candidates = "a", nil },
		"only candidate is a":       func(s *call.Spec) { s.Dispatch.Candidates = []string{"a", "unknown"} },
		"no threshold":              func(s *call.Spec) { s.Done.Should = nil },
		"strategy is race":          func(s *call.Spec) { s.Dispatch.Strategy = call.Race },
		"allow-failure?":            func(s *call.Spec) { s.Dispatch.AllowFailure = true },
		"remove repair":             func(s *call.Spec) { s.Dispatch.Repair = &call.Repair{} },
		"same-cap-max":              func(s *call.Spec) { s.Dispatch.Retry.SameCapMax = new(1) },
		"fallback-max is 1":         func(s *call.Spec) { s.Dispatch.Retry.FallbackMax = new(1) },
		"switch-on lacks":           func(s *call.Spec) { s.Dispatch.SwitchOn = []string{reasons.MustFailed} },
		"no capability can ":        func(s *call.Spec) { s.Dispatch.Candidates = []string{"unknown"} },
	} {
		s := v.spec(0, "a", "b", "c")
		change(&s)
		if _, err := v.app.Tunable(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	tuning := v.tuning(t, rows("t0"), v.spec(0, "a", "b"), 0)
	if _, err := tuning.Pipeline(t.Context(), stone.Config{}); err == nil || !strings.Contains(err.Error(), "cost of a case") {
		t.Errorf("%v: want an error for a tuning without a limit", err)
	}
	tuning.Cascade.Candidates = slices.Repeat([]string{"a"}, 7)
	if _, err := tuning.Pipeline(t.Context(), stone.Config{}); err == nil || !strings.Contains(err.Error(), "want 2 to 6") {
		t.Errorf("%v: want an error for too many candidates", err)
	}
}
