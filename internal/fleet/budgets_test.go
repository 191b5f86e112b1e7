package fleet_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/fleet"
)

// sums is a [fleet.Reader].
type sums struct {
	spent       float64
	outstanding map[string]budget.Amount
}

func (s *sums) Spent(fleet.Key) (budget.Amount, error) { return budget.Amount{USD: s.spent}, nil }
func (s *sums) Outstanding(budget.Shared) (map[string]budget.Amount, error) {
	return s.outstanding, nil
}

// The estimate of a batch counts until its answers are read. A visit of its run asks for the same requests again, which count once; what it
// asks for besides counts as well. A request that was asked for before is never refused.
func TestOutstanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fleet.Budgets
		from := &sums{outstanding: map[string]budget.Amount{"other": {USD: 2}}}
		b := budget.Shared{Name: "b", Limits: budget.Limits{USD: new(10.0)}}
		start := func(run string, n byte, usd float64, batched, again bool) (refused bool) {
			t.Helper()
			claim := fleet.Claim{Quote: budget.Fixed(budget.Amount{USD: usd}), Batched: batched}
			no, err := f.Admit(from, fleet.Start{Run: run, Step: dag.ID{n}, Of: []budget.Shared{b}, Claim: claim, Again: again}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if no != nil && !errors.As(no, new(*budget.ExhaustedError)) {
				t.Fatal(no)
			}
			return no != nil
		}
		held := func(when string, want float64) {
			t.Helper()
			bal, err := f.Balance(from, b, time.Now())
			if err != nil || bal.Held.USD != want || bal.Used.USD != from.spent {
				t.Errorf("%s: used %v, in flight %v, %v, want %v and %v", when, bal.Used.USD, bal.Held.USD, err, from.spent, want)
			}
		}
		held("before", 2)
		if start("r", 1, 3, true, false) || start("r", 2, 3, true, false) || !start("r", 3, 2.5, true, false) {
			t.Error("8 of 10 are taken by two requests of 3, and a batch of 2")
		}
		f.Leave("r", true)
		held("before the batch is noted", 8)
		from.outstanding["r"] = budget.Amount{USD: 6}
		held("noted", 8)
		f.Leave("r", false) // the next visit begins
		held("begun", 8)
		if start("r", 1, 3, true, true) || start("r", 2, 3, true, true) || start("r", 4, 1, true, false) || !start("s", 1, 1.5, false, false) {
			t.Error("9 of 10 are taken: the same requests count once")
		}
		held("asked again", 9)
		delete(from.outstanding, "r") // its answers are read
		from.spent = 9
		if start("r", 1, 3, true, true) {
			t.Error("a request that was asked for before was refused")
		}
		from.spent = 1.5
		if most := f.End("r", dag.ID{1}); most.USD != 3 {
			t.Errorf("a step of 3 had %v in flight", most.USD)
		}
		held("answered", 6)
		f.Lose("r", dag.ID{2}, budget.Amount{USD: 0.5})
		held("lost", 3.5)
		f.Leave("r", true)
		held("left", 3)
		time.Sleep(2 * time.Minute)
		held("its batches were never noted", 2)
	})
}

// A claim below zero leaves no room that was not there, neither while its step runs nor after it.
func TestNegativeClaim(t *testing.T) {
	var f fleet.Budgets
	from := &sums{}
	b := budget.Shared{Name: "b", Limits: budget.Limits{USD: new(10.0)}}
	for n, usd := range []float64{2, -5} {
		start := fleet.Start{Run: "r", Step: dag.ID{byte(n)}, Of: []budget.Shared{b}, Claim: fleet.Claim{Quote: budget.Fixed(budget.Amount{USD: usd})}}
		if refused, err := f.Admit(from, start, time.Now()); refused != nil || err != nil {
			t.Fatal(refused, err)
		}
	}
	held := func(when string, want float64) {
		t.Helper()
		if bal, err := f.Balance(from, b, time.Now()); err != nil || bal.Held.USD != want {
			t.Errorf("%s: %v in flight, %v, want %v", when, bal.Held.USD, err, want)
		}
	}
	held("both run", 2)
	if most := f.End("r", dag.ID{1}); most != (budget.Amount{}) {
		t.Errorf("the claim below zero had %v in flight", most)
	}
	held("the one below zero has ended", 2)
}
