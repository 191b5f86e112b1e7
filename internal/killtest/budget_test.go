package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
)

// paidCalls is the number of calls of a lane that pays.
const paidCalls = 3

// pay makes paidCalls calls of a dollar each.
func pay(ctx context.Context, work func(path string) error) error {
	type reply struct {
		Usage budget.Usage `json:"usage"`
	}
	path := stone.In(ctx).Path()
	for i := range paidCalls {
		name := fmt.Sprint("call-", i)
		draw, err := budget.From(ctx).Draw(ctx, path, name, budget.Fixed(budget.Amount{Roundtrips: 1, USD: 1}))
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

// Eight processes share the budget of a run and are killed one after the other. All calls together,
// including repeated ones, stay within the budget and use most of it.
func TestKillBudget(t *testing.T)       { killBudget(t, func(v *victim) *victim { return v }) }
func TestKillBudgetServer(t *testing.T) { killBudget(t, (*victim).overServer) }

func killBudget(t *testing.T, over func(*victim) *victim) {
	t.Helper()
	const usd, lanes = 600, 400 // which would make 1,200 calls
	for range share(t, 10) {
		v := over(newVictim(t))
		v.env = append(v.env, fmt.Sprint(childLanes, "=", lanes), fmt.Sprint(childBudget, "=", usd))
		m := newTeamOf(v, 8)
		calls := func() int {
			n := 0
			for _, e := range m.entries("lines") {
				if strings.Contains(e.what, "/call-") {
					n++
				}
			}
			return n
		}
		for at := range 5 {
			m.wait("the calls stopped before the budget was used", func() bool { return calls() > at*usd/6 })
			time.Sleep(rand.N(100 * time.Millisecond))
			m.kill()
		}
		ended := make(chan *process, len(m.live))
		for _, p := range m.live {
			go func() {
				_ = p.Wait() // its output says how it ended
				ended <- p
			}()
		}
		for used := false; !used; {
			p := <-ended
			text := p.errs.String()
			if used = strings.Contains(text, budget.Kind); !used && !strings.Contains(text, "is held by") { // it was slow and lost the run
				t.Fatalf("a process ended with %v: %s", p.Wait(), text)
			}
		}
		for _, p := range m.live {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		if n := calls(); n > usd || n < usd*3/4 {
			t.Errorf("%d calls of a dollar, want at most %d, and most of them", n, usd)
		}
	}
}
