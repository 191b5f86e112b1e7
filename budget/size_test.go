package budget_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/declared"
)

// answer is a call whose answer has at most 1,000 tokens.
var answer = budget.Quote{
	Least: budget.Amount{Roundtrips: 1, USD: 0.001}, Most: budget.Amount{Roundtrips: 1, Tokens: 1010, USD: 0.101}, Output: 1000, USDPerOutput: 0.0001,
}

func output(tokens int) budget.Usage {
	return budget.Usage{OutputTokens: tokens, USD: 0.001 + 0.0001*float64(tokens)}
}

// say draws a call in a lane, which answers with some tokens, or is lost for a negative number.
func say(ctx context.Context, t *testing.T, a *budget.Account, lane, tokens int) (said budget.Amount) {
	t.Helper()
	draw, err := a.Draw(ctx, body(fmt.Sprintf("all/each[%d]/ask", lane)), fmt.Sprint("turn-", lane+1), answer)
	if err != nil {
		t.Fatal(err)
	}
	defer draw.Close()
	said = declared.In[budget.Amount](draw.Context(ctx))
	if err := draw.Begin(); err != nil {
		t.Fatal(err)
	}
	if tokens >= 0 {
		draw.End(output(tokens))
	}
	return said
}

// A lost attempt counts with twice the largest answer of calls like it, once eight are known.
func TestEstimateFollowsOutputs(t *testing.T) {
	for _, c := range []struct {
		before, here []int // outputs, recorded by an earlier process and of this one
		want         int   // tokens of output that the next call declares
	}{
		{nil, nil, 1000},
		{nil, []int{9, 9, 9, 9, 9, 9, 9}, 1000},
		{nil, []int{9, 9, 9, 16, 9, 9, 9, 9}, 32},
		{[]int{9, 16, 9, 9}, []int{9, 9, 9, 9}, 32},
		{nil, []int{9, 9, 9, 9, 9, 9, 9, 900}, 1000},                                       // at most max-tokens
		{nil, []int{9, 9, 9, 9, 9, 9, 9, 1400}, 1400},                                      // not less than was seen
		{nil, []int{0, 0, 0, 0, 0, 0, 0, 0, 0}, 1000},                                      // nothing is known of these
		{[]int{9, 16, 9, 9, 9, 9, 9, 9, -1}, nil, 32},                                      // nor of lost ones
		{[]int{9, 9, 9, 9, 9, 9, 9, 9}, []int{9, 9, 500, 9, 9, 9, 9, 9, 9, 9, 9, 9}, 1000}, // the largest of all
	} {
		ctx := budget.WithOutputs(t.Context())
		for i, tokens := range c.before {
			budget.Observe(ctx, fmt.Sprintf("all/each[%d]/ask", i), "turn-1", output(max(tokens, 0)))
		}
		a := budget.New(budget.Limits{USD: new(100.0)})
		for i, tokens := range c.here {
			say(ctx, t, a, i, tokens)
		}
		before := a.Spent()
		got := say(ctx, t, a, 77, -1)
		if want := 10 + c.want; got.Tokens != want || math.Abs(got.USD-(0.001+0.0001*float64(c.want))) > 1e-9 {
			t.Errorf("after %v and %v: a call declares %+v, want %d tokens", c.before, c.here, got, want)
		}
		if spent := a.Spent(); spent.Tokens-before.Tokens != got.Tokens || math.Abs(spent.USD-before.USD-got.USD) > 1e-9 {
			t.Errorf("after %v and %v: a lost call has cost %+v, want %+v", c.before, c.here, spent, got)
		}
		if other, err := a.Draw(ctx, body("all/other"), "turn-1", answer); err != nil || declared.In[budget.Amount](other.Context(ctx)) != answer.Most {
			t.Errorf("a call of another kind declares %+v, %v", declared.In[budget.Amount](other.Context(ctx)), err)
		}
	}
}

// Short answers lower what a lost attempt counts with, not what running lanes reserve. If all
// lanes then give the longest answer at once, they exceed the limit by one estimate at most.
func TestLowEstimatesDoNotOverspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := budget.WithOutputs(t.Context())
		const limit = 0.5
		a := budget.New(budget.Limits{USD: new(limit)})
		for i := range 20 {
			say(ctx, t, a, i, 1)
		}
		var lanes sync.WaitGroup
		for i := range 40 {
			lanes.Go(func() {
				draw, err := a.Draw(ctx, body(fmt.Sprintf("all/each[%d]/ask", i)), "turn-1", answer)
				if err != nil {
					return
				}
				defer draw.Close()
				if got := declared.In[budget.Amount](draw.Context(ctx)); got.Tokens != 12 && got.Tokens != 1010 {
					t.Errorf("a lane declares %+v", got)
				}
				if err := draw.Begin(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				draw.End(output(1000))
			})
		}
		lanes.Wait()
		if spent := a.Spent().USD; spent < limit-answer.Most.USD || spent > limit+answer.Most.USD {
			t.Errorf("%v was spent of %v", spent, limit)
		}
	})
}
