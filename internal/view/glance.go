package view

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/journal"
)

// A Glance shows where a run's money and time went, and which answers were refused.
type Glance struct {
	Spent   []Spender     // most expensive first
	Slow    []Spot        // steps without steps below them, longest first
	Asked   []Spot        // first agents and calls whose prompts are recorded
	Waited  time.Duration // time spent waiting for people
	Refused []Refusal
	More    int // number of further calls with refusals, which were not read
}

// A Spender is a model or capability and its cost.
type Spender struct {
	Name    string
	Answers int
	budget.Usage
}

// A Spot is a step with a readable name.
type Spot struct {
	journal.Step
	Run, Name string
}

// A Refusal describes a candidate of a call that returned no answer, or whose answer was not accepted.
type Refusal struct {
	Path  string // path of the attempt
	Cap   string
	State State
	Why   string
	Times int // number of equal refusals in the call
}

// Limits of a Glance.
const (
	mostSlow         = 3
	mostAsked        = 5
	mostRefusedCalls = 20
)

// Glance sums up the steps of a run. It returns nil for a large run, whose steps were not read.
func (r *Run) Glance(ctx context.Context) (*Glance, error) {
	if r.Large {
		return nil, nil
	}
	g := &Glance{}
	var err error
	if g.Spent, err = Spenders(ctx, r.journal, r.ID, r.All); err != nil {
		return nil, err
	}
	above, tried := map[string]bool{}, map[string]int{}
	var calls []string
	for _, s := range r.All {
		at := address.Parent(s.Path)
		if attemptStep.MatchString(s.Name) && s.Kind == "step" && !strings.HasPrefix(s.Name, "judge ") {
			if tried[at]++; tried[at] == 1 {
				calls = append(calls, at)
			}
		}
		for at = outer(s.Path); at != "" && !above[at]; at = outer(at) {
			above[at] = true
		}
	}
	for _, q := range r.Questions {
		if !q.Open() {
			g.Waited += q.Answered.Sub(q.Asked)
		} else {
			g.Waited += time.Since(q.Asked)
		}
	}
	var slow []journal.Step
	for _, s := range r.All {
		if !above[s.Path] && s.Kind != "decision" && r.asked[s.Path] == nil && !s.Ended.IsZero() && !s.Started.IsZero() {
			slow = append(slow, s)
		}
	}
	slices.SortStableFunc(slow, func(a, b journal.Step) int {
		return cmp.Compare(b.Ended.Sub(b.Started), a.Ended.Sub(a.Started))
	})
	if len(slow) > mostSlow { // if there are fewer, the tree shows them just as well
		for _, s := range slow[:mostSlow] {
			if g.Slow, err = r.spot(ctx, g.Slow, s, s.Path); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range r.All {
		at := address.Parent(s.Path)
		agent := s.Kind == "value" && s.Name == "opening"
		if (agent || slices.Contains(calls[:min(len(calls), mostAsked)], at) && tried[at] > 0) && len(g.Asked) < mostAsked {
			tried[at] = 0
			if g.Asked, err = r.spot(ctx, g.Asked, s, at); err != nil {
				return nil, err
			}
		}
	}
	return g, g.refused(ctx, r, calls)
}

// refused reads the refusals in the calls with the given paths.
func (g *Glance) refused(ctx context.Context, r *Run, calls []string) error {
	for i, at := range calls {
		if i == mostRefusedCalls {
			g.More = len(calls) - i
			break
		}
		c, err := r.Call(ctx, at)
		if err != nil {
			return err
		}
		if c != nil {
			g.Refused = append(g.Refused, refusals(at, c)...)
		}
	}
	return nil
}

// spot appends a step as a Spot. The name of an agent's turn or tool call describes its action.
func (r *Run) spot(ctx context.Context, to []Spot, s journal.Step, path string) ([]Spot, error) {
	name, err := r.Lanes.Shown(ctx, path)
	_, inner, ok := strings.Cut(name, "/")
	if !ok {
		inner = name
	}
	inner = address.Readable(inner)
	if s.Path == path && (Turn(s) > 0 || IsToolCall(s)) && err == nil {
		var row Row
		if err = r.describe(ctx, &row, &s); row.Did != "" {
			inner = strings.TrimSuffix(inner, address.Readable(s.Name)) + row.Did
		}
	}
	s.Path = path
	return append(to, Spot{s, r.ID, inner}), err
}

// outer returns the path of the branch directly above path.
func outer(path string) string { return path[:max(strings.LastIndexAny(path, "/[~"), 0)] }

// refusals lists the refusals in a call. Equal refusals are listed once.
func refusals(path string, c *call.Record) (all []Refusal) {
	for i, name := range AttemptSteps(c) {
		a := c.Tried[i]
		state := Verdict(c, a)
		if state != Rejected && state != Failed {
			continue
		}
		one := Refusal{address.Child(path, name, 1), a.Cap, state, WhyNot(a), 1}
		if at := slices.IndexFunc(all, func(r Refusal) bool { return r.Cap == one.Cap && r.Why == one.Why && r.State == one.State }); at >= 0 {
			all[at].Times++
			continue
		}
		all = append(all, one)
	}
	return all
}

// WhyNot explains on one line why an answer was not accepted. It names the check that the answer failed, or the failure of the
// attempt.
func WhyNot(a call.Attempt) string {
	for _, v := range a.Verdicts {
		if v.As == "must" && v.State != "passed" && v.State != "skipped" && a.Failure == reasons.MustFailed {
			return strings.TrimSuffix(v.By+": "+v.Why, ": ")
		}
	}
	if len(a.Findings) > 0 {
		return a.Findings[0].String()
	}
	score, _, _ := strings.Cut(a.Error, ": ")
	if a.Failure == reasons.LowScore && score != "" {
		return score
	}
	return cmp.Or(a.Error, a.Failure)
}

// attemptEnd matches the name suffix of an attempt or a repair.
var attemptEnd = regexp.MustCompile(` [0-9]+( repair [0-9]+)?$`)

// mostAgents is the maximum number of agents whose model is looked up.
const mostAgents = 50

// Spenders sums up the cost of a run's steps by capability or model, most expensive first. All turns of an agent are attributed to
// the model that wrote its first reply.
func Spenders(ctx context.Context, j journal.Journal, run string, steps []journal.Step) (all []Spender, err error) {
	agents := map[string]string{}
	for _, s := range steps {
		if s.Usage == (budget.Usage{}) {
			continue
		}
		name := s.Name
		if end := attemptEnd.FindStringIndex(name); end != nil && s.Kind == "step" {
			if name = strings.ReplaceAll(name[:end[0]], "|", "/"); strings.HasPrefix(name, "judge ") {
				name = "judges"
			}
		} else if Turn(s) > 0 {
			agent := address.Parent(s.Path)
			if agents[agent] == "" && len(agents) < mostAgents {
				reply, err := ReplyOf(ctx, j, run, s.Path)
				if err != nil {
					return nil, err
				}
				if reply != nil {
					agents[agent] = reply.Model
				}
			}
			name = cmp.Or(agents[agent], address.Readable(address.Last(agent)), "agent")
		}
		all = AddSpenders(all, []Spender{{name, 1, s.Usage}})
	}
	return all, nil
}

// AddSpenders adds up the costs of spenders by name, most expensive first.
func AddSpenders(all, more []Spender) []Spender {
	for _, s := range more {
		at := slices.IndexFunc(all, func(o Spender) bool { return o.Name == s.Name })
		if at < 0 {
			at, all = len(all), append(all, Spender{Name: s.Name})
		}
		all[at].Answers += s.Answers
		all[at].Usage = all[at].Usage.Add(s.Usage)
	}
	slices.SortStableFunc(all, func(a, b Spender) int {
		return cmp.Or(cmp.Compare(b.USD, a.USD), cmp.Compare(b.Tokens(), a.Tokens()), cmp.Compare(a.Name, b.Name))
	})
	return all
}
