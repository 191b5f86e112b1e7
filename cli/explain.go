package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/llm"
)

func (a *app) explain(c *cobra.Command) {
	a.over(c, func(ctx context.Context, p stone.Ashlar) error {
		all, blocks := explainedAll(p, budget.From(ctx).Left(), a.calls.base.Grant)
		switch {
		case a.json:
			return output(printJSON(a.Stdout, all))
		case len(all) == 0:
			_, err := fmt.Fprintln(a.Stdout, "There are no calls and no agents.")
			return output(err)
		}
		if err := printBlocks(a.Stdout, blocks); err != nil {
			return output(err)
		}
		return output(a.printBound(a.Stdout, a.calls.bound(ctx, p, a.with(dag.DAG{}))))
	})
	a.jsonFlag(c.Flags(), "a JSON array")
}

// An explanation describes what a call would do, without making it.
type explanation struct {
	Path     string           `json:"path"`
	Intent   string           `json:"intent,omitempty"`
	Tool     string           `json:"tool,omitempty"`
	Open     bool             `json:"open,omitempty"` // some candidates are read from the run, so they are not known yet
	Asked    []string         `json:"candidates"`
	Rejected []call.Rejection `json:"rejected"`
	Dispatch call.Dispatch    `json:"dispatch"`
	HedgeMS  int64            `json:"hedge-ms,omitempty"`
	Requires call.Requires    `json:"requires"`
	Rules    call.Rules       `json:"policy"` // policy in effect
	Budget   call.Budget      `json:"budget"`
	Needs    []string         `json:"needs"` // effects that the candidates need
	Effects  []string         `json:"effects"`
}

// leafFacts holds the facts about a leaf that is not a call, such as an agent.
type leafFacts struct {
	Path    string   `json:"path"`
	Facts   facts    `json:"facts"`
	Effects []string `json:"effects"`
	// Undeclared lists the tools that do not state their effects.
	Undeclared []string `json:"undeclared,omitempty"`
}

// explainedAll returns the explanations of a pipeline's calls and agents in tree order, both as values for JSON and as text.
func explainedAll(p stone.Ashlar, left budget.Limits, grant []string) (all []any, blocks []block) {
	all = []any{}
	places(p, func(path string, a stone.Ashlar) bool {
		title := path
		if !strings.Contains(path, "/") { // a single name, such as an intent's, is shown unchanged
			title = address.Unescape(path)
		}
		of := func(spec call.Spec) {
			e := explain(spec, left, grant, path)
			all, blocks = append(all, e), append(blocks, block{title, e.rows()})
		}
		if spec, ok := call.SpecOf(a); ok && spec.Applicator != nil {
			of(spec)
			return false
		}
		if facts, rows := factsOf(a); rows != nil {
			l, b := leafFacts{path, facts, append([]string{}, a.Effects()...), a.Undeclared()}, block{title, rows}
			b.add("effects", words(l.Effects))
			if len(l.Undeclared) > 0 {
				b.add("undeclared", words(l.Undeclared)+" (may have any effect)")
			}
			all, blocks = append(all, l), append(blocks, b)
		}
		if spec, ok := call.TurnOf(a); ok {
			of(spec)
		}
		return true
	})
	return all, blocks
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
	left = budget.Limits{ // the smaller of the two limits for each amount
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

// rows returns the names and values to print for a call.
func (e explanation) rows() [][2]string {
	var b block
	if b.add("tool", e.Tool); e.Tool == "" {
		b.rows = [][2]string{{"intent", e.Intent}}
	}
	asked := "none"
	for i, id := range e.Asked {
		if i == 0 {
			asked = ""
		}
		asked += fmt.Sprintf("%d. %s  ", i+1, id)
	}
	if e.Open {
		asked = "as a value of the run says, of " + strings.Join(e.Asked, ", ")
	}
	b.add("asked", strings.TrimSpace(asked))
	for _, r := range e.Rejected {
		b.add("rejected", r.Cap+": "+r.Reason)
	}
	b.add("strategy", e.strategy())
	if d := e.Rules.Admit; len(d.Must)+len(d.Should) > 0 {
		b.add("admit", shownDone(d))
	}
	b.add("done", shownDone(e.Rules.Done))
	if j := e.Rules.Judge; *j.On {
		b.add("judge", fmt.Sprintf("%s, weight %v, of %v of the calls, veto %v, on-error %s, up to %d attempts", cmp.Or(j.Cap, "the first with intent "+terms.Grade), *j.Weight, *j.Canary, *j.Veto, j.OnError, *j.MaxAttempts))
		b.add("rubric", text.Line(j.Rubric))
	}
	if age := e.Rules.Cache.MaxAge; age != nil && *age > 0 {
		b.add("cache", fmt.Sprintf("answers of earlier runs, up to %v old", age))
	}
	b.add("switch-on", words(e.Rules.SwitchOn))
	b.add("budget", shownBudget(e.Budget))
	b.add("needs", words(e.Needs))
	b.add("effects", words(e.Effects))
	return b.rows
}

// strategy returns a description of the order in which a call invokes its candidates.
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

// shownBudget returns the limits of a budget as text. It omits unlimited amounts.
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

// bound returns the maximum cost of a run.
func (k *calls) bound(ctx context.Context, p stone.Ashlar, cfg stone.Config) budget.Bound {
	if p.IsZero() {
		return budget.Bound{}
	}
	return p.Bound(llm.WithTable(ctx, k.table), cfg.Given())
}

// printBound prints the maximum cost of a run, and warns if the budget is smaller.
func (a *app) printBound(w io.Writer, b budget.Bound) error {
	p := view.PriceOf(b, a.calls.limits.USD)
	lines := []string{text.Line(p.Line)}
	for _, part := range p.Parts {
		lines = append(lines, "  "+text.Line(part))
	}
	for _, line := range append(lines, text.Line(p.Warning)) {
		if line == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// mustFit returns an error if the maximum cost of a run exceeds its budget.
func (a *app) mustFit(ctx context.Context, p stone.Ashlar, cfg stone.Config) error {
	if a.calls.limits.USD == nil {
		return fmt.Errorf("--must-fit needs a budget: add --max-usd, or :max-usd to :budget in .stone/stone.edn")
	}
	if err := a.calls.bound(ctx, p, cfg).Fits(*a.calls.limits.USD); err != nil {
		return failed("%w", err)
	}
	return nil
}
