//go:build unix

package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
)

// paidCalls is the number of calls in a lane that pays.
const paidCalls = 3

// pay makes paidCalls calls of a dollar each.
func pay(ctx context.Context, work func(path string) error) error {
	type reply struct {
		Usage budget.Usage `json:"usage"`
	}
	path := stone.In(ctx).Path()
	for i := range paidCalls {
		name := fmt.Sprint("call-", i)
		draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), name, budget.Fixed(budget.Amount{Roundtrips: 1, USD: 1}))
		if err != nil {
			return err
		}
		r, err := stone.Step(draw.Context(ctx), name, i, func(context.Context, int) (reply, error) {
			if err := draw.Begin(); err != nil {
				return reply{}, err
			}
			return reply{budget.Usage{USD: 1}}, work(path + "/" + name)
		})
		if err == nil {
			draw.End(r.Usage)
		}
		if draw.Close(); err != nil {
			return err
		}
	}
	return nil
}

// paid is the number of calls that were paid.
func (m *team) paid() int {
	m.Helper()
	n := 0
	for _, e := range m.entries("lines") {
		if strings.Contains(e.what, "/call-") {
			n++
		}
	}
	return n
}

// suffice is a round in which processes that share a budget are killed one after the other. The
// budget has what the lanes cost, and for each kill one call per lane that may be open: so the run
// ends well. What it counts is what was made, and for each kill at most such a call more.
func (v *victim) suffice() {
	v.Helper()
	const lanes, kills = 200, 3
	const usd = lanes*paidCalls + kills*lanes
	v.env = append(v.env, fmt.Sprint(childLanes, "=", lanes), fmt.Sprint(childBudget, "=", usd))
	m := newTeamOf(v, teamSize)
	for at := range kills {
		m.await("the calls stopped", func() bool { return m.paid() > at*lanes*paidCalls/(kills+1) })
		time.Sleep(rand.N(100 * time.Millisecond))
		m.kill()
		v.faults++
	}
	m.await("the run has not ended", m.done)
	m.stop()
	m.audit()
	if made, known, _ := m.counted(); known != lanes*paidCalls {
		m.Errorf("%d calls of a dollar were made, and %d have a result, want %d", made, known, lanes*paidCalls)
	}
}

// counted checks that the run counts each attempt at a call once, as known or as possibly made, and returns how many
// were made, have a result, and have none.
func (m *team) counted() (made, known, possible int) {
	m.Helper()
	run, err := m.db.Find(m.Context(), runID)
	if err != nil {
		m.Fatal(err)
	}
	steps, err := m.db.Steps(m.Context(), runID)
	if err != nil {
		m.Fatal(err)
	}
	attempts := 0
	for _, s := range steps {
		if strings.Contains(s.Path, "/call-") {
			attempts += s.Attempts
		}
	}
	made, known, possible = m.paid(), int(run.Usage.USD), int(run.Usage.Possible.USD)
	m.Logf("%d calls were made, %d have a result, %d were possibly made", made, known, possible)
	m.overspent += max(made-known-possible, 0)
	if known+possible != attempts || made > attempts {
		m.Errorf("%d calls of a dollar were made in %d attempts, the run says %d, and possibly %d more; want as many as attempts", made, attempts, known, possible)
	}
	return made, known, possible
}

// spend is a round in which processes share the budget of a run and are killed one after the other.
// The calls and the attempts without a result are all that the budget has, to the dollar.
func (v *victim) spend() {
	v.Helper()
	const usd, lanes, kills = 300, 200, 3 // lanes would make 600 calls
	v.env = append(v.env, fmt.Sprint(childLanes, "=", lanes), fmt.Sprint(childBudget, "=", usd))
	m := newTeamOf(v, teamSize)
	used := func() bool {
		return slices.ContainsFunc(m.live, func(p *process) bool {
			if p.over() && !p.spent() && !p.lost() { // it was slow and lost the run
				v.Fatalf("a process ended with %v: %s", p.Wait(), p.errs.String())
			}
			return p.over() && p.spent()
		})
	}
	for at := range kills {
		m.await("the calls stopped before the budget was used", func() bool { return m.paid() > at*usd/(kills+1) || used() })
		if used() { // lost attempts have used it, too
			break
		}
		time.Sleep(rand.N(100 * time.Millisecond))
		m.kill()
		v.faults++
	}
	m.await("the budget is not used", used)
	m.stop()
	made, known, possible := m.counted()
	v.overspent += max(made-usd, known+possible-usd, 0)
	if known+possible != usd {
		m.Errorf("%d calls of a dollar were made, the run says %d, and possibly %d more; want all %d that the budget has", made, known, possible, usd)
	}
}
