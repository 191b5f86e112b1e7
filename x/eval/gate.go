package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/money"
)

// A Gate is a list of rules that an evaluation must satisfy. A rule with a zero value is not checked. The exception is
// ErrorsMost: if it is 0 and there is an error, the verdict is CannotTell.
type Gate struct {
	Must        []string           // cases, given by the start of their digest, that every scorer must find right in every trial
	Never       []string           // kinds of failure that must not occur in any case
	NoWorseThan map[string]float64 // maximum loss of the mean compared with the baseline, by scorer
	AtLeast     map[string]float64 // minimum mean, by scorer
	USDAtMost   float64            // maximum cost of all answers and judges, in USD
	ErrorsMost  int                // maximum number of errors excluded from a mean
	Routing     RoutingRules       // rules for the report of a Routing
}

// RoutingRules are the rules of a gate for a RoutingReport. Rules with a zero value are not checked.
type RoutingRules struct {
	GapAtLeast  float64 // GapRecovered
	LargeAtMost float64 // LargeShare
	CostAtMost  float64 // CostShare
}

// ReadGate reads a gate from a file, in EDN or JSON:
//
//	{:must ["4f0c9a"] :never ["loop-exhausted"]
//	 :no-worse-than {:exact 0.02} :at-least {:exact 0.8} :usd-at-most 2.5 :errors-at-most 0
//	 :routing {:gap-at-least 0.6 :large-at-most 0.3 :cost-at-most 0.5}}
func ReadGate(file string) (*Gate, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	value, err := edn.ReadEither(data, edn.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	g := &Gate{}
	faults := form.Read(value, func(m *form.Map) {
		m.At("must").Texts(&g.Must)
		m.At("never").Texts(&g.Never)
		g.NoWorseThan = bounds(m, "no-worse-than")
		g.AtLeast = bounds(m, "at-least")
		m.At("usd-at-most").Float(&g.USDAtMost, 0, math.MaxFloat64)
		m.At("errors-at-most").Int(&g.ErrorsMost, 0, math.MaxInt32)
		m.At("routing").Map(func(m *form.Map) {
			m.At("gap-at-least").Float(&g.Routing.GapAtLeast, 0, math.MaxFloat64)
			m.At("large-at-most").Float(&g.Routing.LargeAtMost, 0, 1)
			m.At("cost-at-most").Float(&g.Routing.CostAtMost, 0, math.MaxFloat64)
		})
	})
	if err := faults.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return g, nil
}

// bounds reads a map from scorers to numbers.
func bounds(m *form.Map, field string) map[string]float64 {
	of := map[string]float64{}
	m.At(field).Entries(func(name string, v form.Value) {
		var x float64
		if v.Float(&x, -math.MaxFloat64, math.MaxFloat64) {
			of[name] = x
		}
	})
	return of
}

// Verdicts of a Gate.
const (
	Passed     = "passed"
	GateFailed = "failed"
	CannotTell = "cannot tell"
)

// A Verdict is the result of applying a gate to a report.
type Verdict struct {
	Verdict string `json:"verdict"` // Passed, GateFailed or CannotTell: the worst verdict of all rules
	Rules   []rule `json:"rules"`
}

// A rule is one rule of a gate with its result.
type rule struct {
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"`
	Found   string `json:"found"`
	// Needed is the number of cases that would probably suffice to decide the rule. Zero means that no number would.
	Needed int `json:"needed,omitempty"`
}

// checkGate returns an error for rules that cannot be checked.
func (e *evaluation) checkGate() error {
	g := e.Gate
	if g == nil {
		return nil
	}
	for _, of := range []map[string]float64{g.NoWorseThan, g.AtLeast} {
		for _, name := range sortedKeys(of) {
			if !slices.Contains(e.scorers(), name) {
				return fmt.Errorf("the gate names the scorer %q: have %s", name, strings.Join(e.scorers(), ", "))
			}
		}
	}
	for _, name := range sortedKeys(g.AtLeast) {
		if least := g.AtLeast[name]; least >= 1 && e.isShare(name) {
			return fmt.Errorf("the gate wants %s at least %v, which cannot pass: its scores are at most 1, so their interval starts below 1; want a mean below 1, or name cases in must", name, least)
		}
	}
	for _, name := range sortedKeys(g.NoWorseThan) {
		margin := g.NoWorseThan[name]
		switch {
		case margin < 0:
			return fmt.Errorf("the gate allows %s to be %v worse: want a margin of at least 0", name, margin)
		case margin >= 1 && e.isShare(name):
			return fmt.Errorf("the gate allows %s to be %v worse, which cannot fail: its scores are between 0 and 1; want a margin below 1, such as 0.05 for 5 points", name, margin)
		case e.Against == nil:
			return errors.New("the gate has no-worse-than: name the baseline with --against")
		case !slices.Contains(e.Against.scorers, name):
			return fmt.Errorf("the baseline has no scorer %q: it has %s", name, strings.Join(e.Against.scorers, ", "))
		}
	}
	for _, id := range g.Must {
		if _, err := e.named(id); err != nil {
			return err
		}
	}
	return nil
}

// isShare reports whether the scores of a scorer are always between 0 and 1.
func (e *evaluation) isShare(name string) bool {
	return e.Scorers[slices.Index(e.scorers(), name)].share
}

// named returns the index of the only case whose digest starts with id.
func (e *evaluation) named(id string) (at int, err error) {
	at = -1
	for i, r := range e.data.rows {
		if id == "" || !strings.HasPrefix(r.id(), id) {
			continue
		}
		if at >= 0 {
			return at, fmt.Errorf("several cases start with %q: give more digits", id)
		}
		at = i
	}
	if at < 0 {
		return at, fmt.Errorf("the data has no case %q: the report lists cases by their digests", id)
	}
	return at, nil
}

// judging returns a digest of everything that affects the report, except the answers and scores.
func (e *evaluation) judging() (string, error) {
	parts := struct {
		Cases, Baseline string
		Scorers         []string
		Cluster         string
		Slices          []string
		Whole           int
		Gate            *Gate
	}{Cases: e.data.sum, Scorers: e.scorers(), Cluster: e.data.Cluster, Slices: e.data.Slices, Whole: e.data.whole, Gate: e.Gate}
	var err error
	if e.Against != nil {
		if parts.Baseline, err = e.Against.digest(); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(parts)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), err
}

// judge applies the gate to a report.
func (e *evaluation) judge(r *Report, t *tally) *Verdict {
	g, v := e.Gate, &Verdict{Verdict: Passed}
	for _, id := range g.Must {
		v.add(e.must(t, id))
	}
	for _, kind := range g.Never {
		v.add(never(t, kind))
	}
	for _, name := range sortedKeys(g.AtLeast) {
		least := g.AtLeast[name]
		s := r.Scores[slices.Index(e.scorers(), name)]
		v.add(above(fmt.Sprintf("%s at least %v", name, least), s.Estimate, least, mean4))
	}
	for _, name := range sortedKeys(g.NoWorseThan) {
		margin := g.NoWorseThan[name]
		p := e.pairs(t, slices.Index(e.scorers(), name))
		d := difference(p.before, p.now, e.clusters(p.at))
		v.add(above(fmt.Sprintf("%s no worse than %s by %v", name, e.Against.name, margin), d, -margin, signed))
	}
	if g.USDAtMost > 0 {
		spent := r.Cost.USD + r.Cost.JudgesUSD
		v.add(settled("at most $"+money.Exact(g.USDAtMost), spent <= g.USDAtMost, usd(spent)))
	}
	for _, s := range r.Scores {
		if s.Errors > g.ErrorsMost {
			v.add(rule{Rule: fmt.Sprintf("at most %d errors", g.ErrorsMost), Verdict: CannotTell, Found: fmt.Sprintf("%s has %d", s.Name, s.Errors)})
		}
	}
	return v
}

func (v *Verdict) add(r rule) {
	v.Rules = append(v.Rules, r)
	if r.Verdict == GateFailed || r.Verdict == CannotTell && v.Verdict == Passed {
		v.Verdict = r.Verdict
	}
}

// above judges whether a mean is at least a bound. The rule passes if no part of the interval is below the bound, fails if the
// whole interval is below it, and is otherwise undecided.
func above(says string, e Estimate, bound float64, print func(float64) string) rule {
	return against(says, e, bound, e.Low >= bound, e.High < bound, print)
}

// below judges whether a mean is at most a bound.
func below(says string, e Estimate, bound float64) rule {
	return against(says, e, bound, e.High <= bound, e.Low > bound, mean4)
}

func against(says string, e Estimate, bound float64, passed, failed bool, print func(float64) string) rule {
	r := rule{Rule: says, Found: fmt.Sprintf("%s, 95 %% between %s and %s", print(e.Mean), print(e.Low), print(e.High))}
	switch {
	case e.N == 0:
		r.Verdict, r.Found = CannotTell, "no scores"
	case passed:
		r.Verdict = Passed
	case failed:
		r.Verdict = GateFailed
	default:
		r.Verdict, r.Needed = CannotTell, e.Needed(bound)
	}
	return r
}

func settled(says string, ok bool, found string) rule {
	if ok {
		return rule{Rule: says, Verdict: Passed, Found: found}
	}
	return rule{Rule: says, Verdict: GateFailed, Found: found}
}

func (e *evaluation) must(t *tally, id string) rule {
	at, err := e.named(id)
	if err != nil {
		return rule{Rule: "must " + id, Verdict: CannotTell, Found: err.Error()}
	}
	r := settled("must "+id, true, "right")
	for _, o := range t.trials[at] {
		for i, k := range o.Verdicts {
			switch {
			case k == 'e' && r.Verdict == Passed:
				r.Verdict, r.Found = CannotTell, "error: "+o.Reason
			case k == 'w' || k == 'n':
				r.Verdict, r.Found = GateFailed, fmt.Sprintf("%s in trial %d, by %s", verdicts[strings.IndexRune(verdictLetters, k)], o.Trial, e.Scorers[i].name)
			}
		}
	}
	return r
}

func never(t *tally, kind string) rule {
	n := 0
	for _, trials := range t.trials {
		for _, o := range trials {
			if o.Failure == kind {
				n++
			}
		}
	}
	return settled("never "+kind, n == 0, fmt.Sprintf("%d times", n))
}

// alone returns the gate without the rules for a Routing.
func (g *Gate) alone() *Gate {
	if g == nil {
		return nil
	}
	alone := *g
	alone.Routing = RoutingRules{}
	return &alone
}

// routing returns the rules that apply to a Routing.
func (g *Gate) routing() RoutingRules {
	if g == nil {
		return RoutingRules{}
	}
	return g.Routing
}

// String returns a text that identifies the rules.
func (g RoutingRules) String() string { return fmt.Sprint(g.GapAtLeast, g.LargeAtMost, g.CostAtMost) }

// judge adds the results of the routing rules to the verdict on the routed pipeline.
func (g RoutingRules) judge(routed *Verdict, r RoutingReport) *Verdict {
	v := &Verdict{routed.Verdict, slices.Clone(routed.Rules)}
	if g.GapAtLeast > 0 {
		rule := above(fmt.Sprintf("at least %v of the gap", g.GapAtLeast), r.GapRecovered, g.GapAtLeast, mean4)
		if r.GapRecovered.N == 0 {
			rule.Found, rule.Needed = fmt.Sprintf("the gap itself may be nothing: 95 %% between %s and %s", signed(r.Gap.Low), signed(r.Gap.High)), r.Gap.Needed(0)
		}
		v.add(rule)
	}
	if g.LargeAtMost > 0 {
		v.add(below(fmt.Sprintf("the large model answers at most %v of the cases", g.LargeAtMost), r.LargeShare, g.LargeAtMost))
	}
	if g.CostAtMost > 0 {
		v.add(below(fmt.Sprintf("at most %v of the large model's cost", g.CostAtMost), r.CostShare, g.CostAtMost))
	}
	return v
}
