package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/text"
)

func (a *app) explain(c *cobra.Command) {
	a.over(c, func(ctx context.Context, p stone.Ashlar) error {
		all := explainedAll(p, budget.From(ctx).Left(), a.calls.base.Grant)
		switch {
		case a.json:
			return output(printJSON(a.Stdout, all))
		case len(all) == 0:
			_, err := fmt.Fprintln(a.Stdout, "There are no calls and no agents.")
			return output(err)
		}
		return output(printTables(a.Stdout, all))
	})
	a.jsonFlag(c.Flags(), "a JSON array")
}

// An explanation predicts a call before it is made.
type explanation struct {
	Path     string           `json:"path"`
	Intent   string           `json:"intent,omitempty"`
	Tool     string           `json:"tool,omitempty"`
	Open     bool             `json:"open,omitempty"` // a value of the run names some of the candidates
	Asked    []string         `json:"candidates"`
	Rejected []call.Rejection `json:"rejected"`
	Dispatch call.Dispatch    `json:"dispatch"`
	HedgeMS  int64            `json:"hedge-ms,omitempty"`
	Requires call.Requires    `json:"requires"`
	Rules    call.Rules       `json:"policy"` // in effect
	Budget   call.Budget      `json:"budget"`
	Needs    []string         `json:"needs"` // effects of the candidates that are asked
	Effects  []string         `json:"effects"`
}

// leafFacts are the facts of a leaf other than a call, such as an agent.
type leafFacts struct {
	Path    string   `json:"path"`
	Facts   facts    `json:"facts"`
	Effects []string `json:"effects"`
	// Undeclared are the tools that state no effects.
	Undeclared []string `json:"undeclared,omitempty"`
	rows       [][2]string
}

// An explained is a call or another leaf that says something of itself.
type explained interface {
	title() string
	table() [][2]string
}

// explainedAll explains the calls and agents of a pipeline, in the order of the tree.
func explainedAll(p stone.Ashlar, left budget.Limits, grant []string) []explained {
	all := []explained{}
	places(p, func(path string, a stone.Ashlar) bool {
		if spec, ok := call.SpecOf(a); ok && spec.Applicator != nil {
			all = append(all, explain(spec, left, grant, path))
			return false
		}
		if facts, rows := factsOf(a); rows != nil {
			all = append(all, leafFacts{path, facts, append([]string{}, a.Effects()...), a.Undeclared(), rows})
		}
		if spec, ok := call.TurnOf(a); ok {
			all = append(all, explain(spec, left, grant, path))
		}
		return true
	})
	return all
}

func (l leafFacts) title() string { return titleOf(l.Path) }

func (l leafFacts) table() [][2]string {
	rows := append(l.rows, [2]string{"effects", words(l.Effects)})
	if len(l.Undeclared) > 0 {
		rows = append(rows, [2]string{"undeclared", words(l.Undeclared) + " (may have any effect)"})
	}
	return rows
}

func explain(s call.Spec, left budget.Limits, grant []string, path string) explanation {
	e := explanation{
		Path: path, Intent: s.Intent, Tool: s.Tool, Dispatch: s.Dispatch, HedgeMS: s.Dispatch.Hedge.Milliseconds(),
		Requires: s.Requires, Rules: s.Applicator.Effective(s), Budget: s.Budget, Effects: s.Effects,
		Open: s.CapFrom != nil || s.CandidatesFrom != nil, Asked: []string{}, Rejected: []call.Rejection{},
	}
	if e.Effects == nil {
		e.Effects = []string{}
	}
	left = budget.Limits{ // the smaller of both in each part
		Roundtrips: bounds.Least(left.Roundtrips, s.Budget.Roundtrips), Tokens: bounds.Least(left.Tokens, s.Budget.Tokens),
		USD: bounds.Least(left.USD, s.Budget.USD), Latency: bounds.Least(left.Latency, s.Budget.Latency),
	}
	asked, rejected := s.Applicator.Candidates(s, left, grant)
	e.Asked, e.Rejected = append(e.Asked, asked...), append(e.Rejected, rejected...)
	e.Needs = []string{}
	from := s.Applicator.Registry
	if s.Tool != "" {
		from = s.Applicator.Tools
	}
	for _, id := range asked {
		m, _ := from.Lookup(id)
		for _, effect := range m.Needs {
			if !slices.Contains(e.Needs, effect) {
				e.Needs = append(e.Needs, effect)
			}
		}
	}
	return e
}

func (e explanation) title() string { return titleOf(e.Path) }

// titleOf shows a single name as it was written, such as the name of an intent.
func titleOf(path string) string {
	if strings.Contains(path, "/") {
		return path
	}
	return address.Unescape(path)
}

// table returns the names and values to print for a call.
func (e explanation) table() [][2]string {
	rows := [][2]string{{"intent", e.Intent}}
	if e.Tool != "" {
		rows = [][2]string{{"tool", e.Tool}}
	}
	asked := make([]string, len(e.Asked))
	for i, id := range e.Asked {
		asked[i] = fmt.Sprintf("%d. %s", i+1, id)
	}
	if len(asked) == 0 {
		asked = []string{"none"}
	}
	if e.Open {
		rows = append(rows, [2]string{"asked", "as a value of the run says, of " + strings.Join(e.Asked, ", ")})
	} else {
		rows = append(rows, [2]string{"asked", strings.Join(asked, "  ")})
	}
	for _, r := range e.Rejected {
		rows = append(rows, [2]string{"rejected", r.Cap + ": " + r.Reason})
	}
	rows = append(rows, [2]string{"strategy", e.strategy()})
	if d := e.Rules.Admit; len(d.Must)+len(d.Should) > 0 {
		rows = append(rows, [2]string{"admit", shownDone(d)})
	}
	rows = append(rows, [2]string{"done", shownDone(e.Rules.Done)})
	if j := e.Rules.Judge; *j.On {
		rows = append(rows, [2]string{"judge", fmt.Sprintf("%s, weight %v, of %v of the calls, veto %v, on-error %s, up to %d attempts", cmp.Or(j.Cap, "the first with intent "+call.EvalGrade), *j.Weight, *j.Canary, *j.Veto, j.OnError, *j.MaxAttempts)})
		if j.Rubric != "" {
			rows = append(rows, [2]string{"rubric", text.Line(j.Rubric)})
		}
	}
	if age := e.Rules.Cache.MaxAge; age != nil && *age > 0 {
		rows = append(rows, [2]string{"cache", fmt.Sprintf("answers of earlier runs, up to %v old", age)})
	}
	rows = append(rows, [2]string{"switch-on", words(e.Rules.SwitchOn)})
	return append(rows, [2]string{"budget", shownBudget(e.Budget)}, [2]string{"needs", words(e.Needs)}, [2]string{"effects", words(e.Effects)})
}

// strategy says in which way candidates are asked.
func (e explanation) strategy() string {
	s := cmp.Or(e.Dispatch.Strategy, call.Cascade)
	if s == call.Agreement {
		how := "equal as JSON"
		if a := e.Dispatch.Agree; a != nil && a.Check != "" {
			how = "by the check " + a.Check
		}
		s += fmt.Sprintf(" of the first %d, %s", e.Dispatch.Agreeing(), how)
	}
	if e.HedgeMS > 0 {
		s += fmt.Sprintf(", each %v after the one before", e.Dispatch.Hedge)
	}
	if more := *e.Rules.Retry.SameCapMax; more > 0 {
		s += fmt.Sprintf(", up to %d attempts each", more+1)
	}
	if most := e.Rules.Retry.FallbackMax; most != nil {
		s += fmt.Sprintf(", of at most %d candidates", *most+max(e.Dispatch.Agreeing(), 1))
	}
	if r := e.Dispatch.Repair; r != nil {
		s += fmt.Sprintf(", repaired up to %d times by %s", max(r.Max, 1), cmp.Or(r.Cap, "who answered"))
	}
	if e.Dispatch.AllowFailure {
		s += ", may fail"
	}
	return s
}

func shownDone(d call.Done) string {
	parts := []string{}
	if len(d.Must) > 0 {
		parts = append(parts, "must "+strings.Join(d.Must, ", "))
	}
	if len(d.Should) > 0 {
		parts = append(parts, "should "+strings.Join(d.Should, ", "))
	}
	if d.ScoreMin != nil && *d.ScoreMin > 0 {
		parts = append(parts, fmt.Sprintf("score at least %v", *d.ScoreMin))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}

// shownBudget shows the bounded amounts.
func shownBudget(l call.Budget) string {
	parts := []string{}
	if l.USD != nil {
		parts = append(parts, "$"+money.Exact(max(*l.USD, 0)))
	}
	if l.Tokens != nil {
		parts = append(parts, fmt.Sprintf("%d tokens", max(*l.Tokens, 0)))
	}
	if l.Roundtrips != nil {
		parts = append(parts, fmt.Sprintf("%d round trips", max(*l.Roundtrips, 0)))
	}
	if l.Latency != nil {
		parts = append(parts, max(*l.Latency, 0).String())
	}
	return words(parts)
}
