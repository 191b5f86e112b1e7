package call

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stonelayer/stone/internal/reasons"
)

// A Tunable holds the settings of a cascade that can be tuned: its order and its threshold.
type Tunable struct {
	Candidates []string // in this order
	ScoreMin   float64
	SwitchOn   []string // the failures after which the next candidate is invoked
}

// Tunable returns the settings of the cascade s, after applying the rules of the policy. It returns an error, which gives the
// reason, if the candidates' answers alone cannot predict the effect of another order or threshold.
func (a *Applicator) Tunable(s Spec) (t Tunable, err error) {
	e := a.Policy.resolve(&s)
	t.ScoreMin, t.SwitchOn = *e.done.ScoreMin, e.switchOn
	single := s.Cap != "" || s.Tool != "" || s.open()
	if !single {
		for _, c := range a.candidates(&s, nil) {
			if c.reason == "" {
				t.Candidates = append(t.Candidates, c.id)
			}
		}
	}
	switch n := len(t.Candidates); {
	case single:
		err = errors.New("it names only one capability: name at least two candidates")
	case s.Dispatch.Strategy != "" && s.Dispatch.Strategy != Cascade:
		err = fmt.Errorf("its strategy is %s: only a cascade has an order", s.Dispatch.Strategy)
	case n == 0:
		err = fmt.Errorf("no capability can answer the intent %s", s.Intent)
	case n == 1:
		err = fmt.Errorf("its only candidate is %s: name at least two", t.Candidates[0])
	case len(e.done.Should) == 0 && !e.judge.on:
		err = errors.New("it has no threshold: add checks as should, or a judge, whose score is compared with score-min")
	case !slices.Contains(e.switchOn, reasons.LowScore):
		err = fmt.Errorf("switch-on lacks %s, so no candidate follows a low score", reasons.LowScore)
	case s.Dispatch.AllowFailure:
		err = errors.New("it has allow-failure?, so the plan decides what follows when all candidates are rejected: remove it")
	case s.Dispatch.Repair != nil || e.sameCapMax > 0:
		err = errors.New("a low-scoring answer is repaired or retried: remove repair, and set same-cap-max to 0")
	case e.judge.on && (e.judge.veto || e.judge.canary < 1):
		err = errors.New("its judge has a veto or a canary below 1: want a score for every answer")
	case e.fallbackMax >= 0 && e.fallbackMax < n-1:
		err = fmt.Errorf("fallback-max is %d, too few for its %d candidates", e.fallbackMax, n)
	}
	return t, err
}
