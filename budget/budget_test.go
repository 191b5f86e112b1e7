package budget_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stonelayer/stone/budget"
	"pgregory.net/rapid"
)

// body is a body without recorded steps.
type body string

func (b body) Path() string                          { return string(b) }
func (body) Recorded(string) (before, repeated bool) { return false, false }

// draw draws a fixed amount and begins its work.
func draw(t *testing.T, a *budget.Account, amount budget.Amount) (*budget.Draw, error) {
	t.Helper()
	d, err := a.Draw(t.Context(), body("p"), "s", budget.Fixed(amount))
	if err == nil {
		err = d.Begin()
	}
	return d, err
}

func limitOf(err error) string {
	if e := (*budget.ExhaustedError)(nil); errors.As(err, &e) {
		return e.Limit
	}
	return fmt.Sprint(err)
}

func TestReserve(t *testing.T) {
	one := budget.Amount{Roundtrips: 1}
	usd := func(f float64) budget.Amount { return budget.Amount{Roundtrips: 1, USD: f} }
	for _, tc := range []struct {
		name   string
		limits budget.Limits
		spend  []budget.Amount // reserved one after the other, all but the last granted
		want   string          // the limit that the last one meets
	}{
		{"nothing is bounded", budget.Limits{}, []budget.Amount{{Roundtrips: 1 << 30, Tokens: 1 << 30, USD: 1e9}, one}, "<nil>"},
		{"round trips", budget.Limits{Roundtrips: new(2)}, []budget.Amount{one, one, one}, "max-roundtrips"},
		{"no round trip at all", budget.Limits{Roundtrips: new(0)}, []budget.Amount{one}, "max-roundtrips"},
		{"money to the last cent", budget.Limits{USD: new(0.3)}, []budget.Amount{usd(.1), usd(.1), usd(.1)}, "<nil>"},
		{"one cent more", budget.Limits{USD: new(0.3)}, []budget.Amount{usd(.1), usd(.1), usd(.1), usd(.01)}, "max-usd"},
		{"what is free needs no money", budget.Limits{USD: new(0.5)}, []budget.Amount{usd(.5), usd(0)}, "<nil>"},
		{"no money at all", budget.Limits{USD: new(0.0)}, []budget.Amount{usd(.0001)}, "max-usd"},
		{"tokens left", budget.Limits{Tokens: new(10)}, []budget.Amount{{Tokens: 9}, one}, "<nil>"},
		{"no token left", budget.Limits{Tokens: new(10)}, []budget.Amount{{Tokens: 10}, one}, "max-tokens"},
		{"declared tokens", budget.Limits{Tokens: new(10)}, []budget.Amount{{Tokens: 9}, {Tokens: 2}}, "max-tokens"},
		{"no time at all", budget.Limits{Latency: new(time.Duration(0))}, []budget.Amount{one}, "latency-ms"},
		{"nothing comes back", budget.Limits{Roundtrips: new(1), USD: new(1.0)}, []budget.Amount{{Roundtrips: -5, USD: -5}, usd(1), one}, "max-roundtrips"},
		{"no number overflows", budget.Limits{Tokens: new(math.MaxInt)}, []budget.Amount{{Tokens: math.MaxInt - 1}, {Tokens: math.MaxInt}}, "<nil>"},
		{"no money that is no number", budget.Limits{USD: new(1.0)}, []budget.Amount{usd(math.NaN()), usd(math.Inf(1))}, "max-usd"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := budget.New(tc.limits)
			for i, amount := range tc.spend {
				afford := a.Affords(amount)
				_, err := draw(t, a, amount)
				if fmt.Sprint(afford) != fmt.Sprint(err) {
					t.Errorf("it affords %v, but a draw says %v", afford, err)
				}
				if last := i == len(tc.spend)-1; last && limitOf(err) != tc.want {
					t.Errorf("got %v, want %s", err, tc.want)
				} else if !last && err != nil {
					t.Fatalf("reservation %d: %v", i, err)
				}
			}
		})
	}
}

func TestSettle(t *testing.T) {
	a := budget.New(budget.Limits{Roundtrips: new(2), Tokens: new(100), USD: new(1.0)})
	sub := a.Sub(budget.Limits{})
	r, err := draw(t, sub, budget.Amount{Roundtrips: 1, USD: 0.75})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := draw(t, a, budget.Amount{Roundtrips: 1, USD: 0.5}); limitOf(err) != "max-usd" {
		t.Errorf("what is reserved can be had again: %v", err)
	}
	r.End(budget.Usage{InputTokens: 120, USD: 0.25})
	r.Close()
	if got, want := a.Spent(), (budget.Amount{Roundtrips: 1, Tokens: 120, USD: 0.25}); got != want {
		t.Errorf("spent %+v, want %+v", got, want)
	}
	if err := sub.Affords(budget.Amount{Roundtrips: 1}); limitOf(err) != "max-tokens" {
		t.Errorf("an overdrawn account gave more: %v", err)
	}
	if got, want := sub.Left(), (budget.Limits{Roundtrips: new(1), Tokens: new(0), USD: new(0.75)}); !cmp.Equal(got, want) {
		t.Errorf("left: %s", cmp.Diff(want, got))
	}
	a.Charge(budget.Amount{USD: 5})
	if got := a.Left().USD; *got != 0 {
		t.Errorf("overdrawn, and %v left", *got)
	}
}

// What was drawn and not begun is given back.
func TestCancelGivesAllBack(t *testing.T) {
	a := budget.New(budget.Limits{Roundtrips: new(1)})
	sub := a.Sub(budget.Limits{Roundtrips: new(5)})
	d, err := sub.Draw(t.Context(), body("p"), "s", budget.Fixed(budget.Amount{Roundtrips: 1, Tokens: 3, USD: 2}))
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if a.Spent() != (budget.Amount{}) || sub.Spent() != (budget.Amount{}) {
		t.Errorf("spent %+v and %+v", a.Spent(), sub.Spent())
	}
}

func TestRefusalTakesNothing(t *testing.T) {
	a := budget.New(budget.Limits{Roundtrips: new(1)})
	sub := a.Sub(budget.Limits{Roundtrips: new(3)})
	for range 3 {
		_, _ = draw(t, sub, budget.Amount{Roundtrips: 1})
	}
	if got := sub.Spent().Roundtrips; got != 1 {
		t.Errorf("%d round trips were taken below, want 1", got)
	}
	if got := sub.Left().Roundtrips; *got != 0 {
		t.Errorf("%d left, want none", *got)
	}
}

// Many attempts at once, below caps of their own, never take more than there is.
func TestTogether(t *testing.T) {
	const limit = 1000
	root := budget.New(budget.Limits{Roundtrips: new(limit), USD: new(float64(limit))})
	var granted atomic.Int64
	var all sync.WaitGroup
	for lane := range 16 {
		sub := root.Sub(budget.Limits{Roundtrips: new(90)}).Sub(budget.Limits{})
		all.Go(func() {
			for i := range 200 {
				r, err := sub.Draw(t.Context(), body("p"), "s", budget.Fixed(budget.Amount{Roundtrips: 1, USD: 1}))
				switch {
				case err != nil:
				case (i+lane)%5 == 0:
					r.Close()
				default:
					granted.Add(1)
					if err := r.Begin(); err != nil {
						t.Error(err)
					}
					r.End(budget.Usage{USD: 0.5})
				}
				if s := root.Spent(); s.Roundtrips > limit || s.USD > limit {
					t.Errorf("overdrawn: %+v", s)
				}
			}
		})
	}
	all.Wait()
	if got := root.Spent(); granted.Load() != limit || got != (budget.Amount{Roundtrips: limit, USD: limit / 2}) {
		t.Errorf("%d granted, %+v spent; want %d", granted.Load(), got, limit)
	}
}

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := budget.New(budget.Limits{Latency: new(time.Second)})
		time.Sleep(400 * time.Millisecond)
		sub := root.Sub(budget.Limits{Latency: new(time.Hour)})
		if got := sub.Left().Latency; *got != 600*time.Millisecond {
			t.Errorf("left %v, want 600 ms", *got)
		}
		ctx, cancel := sub.Context(t.Context())
		defer cancel()
		<-ctx.Done()
		if limitOf(context.Cause(ctx)) != "latency-ms" || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("the context ended with %v because of %v", ctx.Err(), context.Cause(ctx))
		}
		if err := sub.Affords(budget.Amount{}); limitOf(err) != "latency-ms" {
			t.Errorf("late, and got %v", err)
		}
		if got := sub.Left().Latency; *got != 0 {
			t.Errorf("late, and %v left", *got)
		}
	})
}

func TestNoAccount(t *testing.T) {
	a := budget.From(t.Context())
	r, err := draw(t, a, budget.Amount{Roundtrips: 1 << 30})
	r.End(budget.Usage{})
	r.Close()
	a.Charge(budget.Amount{USD: 1})
	ctx, cancel := a.Context(t.Context())
	defer cancel()
	_, timed := ctx.Deadline()
	if a != nil || err != nil || timed || a.Left() != (budget.Limits{}) || a.Spent() != (budget.Amount{}) {
		t.Error("no account bounds something")
	}
	if err := a.Sub(budget.Limits{Roundtrips: new(0)}).Affords(budget.Amount{Roundtrips: 1}); err == nil {
		t.Error("an account under none bounds nothing")
	}
}

func TestLimitsAsJSON(t *testing.T) {
	for _, tc := range []struct {
		limits budget.Limits
		want   string
	}{
		{budget.Limits{}, `{}`},
		{budget.Limits{Roundtrips: new(3), Latency: new(2 * time.Second)}, `{"latency-ms":2000,"max-roundtrips":3}`},
		{budget.Limits{Latency: new(1500 * time.Microsecond)}, `{"latency-ms":1.5}`},
		{budget.Limits{Latency: new(time.Duration(math.MaxInt64))}, `{"latency-ms":9223372036854.775807}`},
		{budget.Limits{Roundtrips: new(0), Tokens: new(0), USD: new(0.0), Latency: new(time.Duration(0))}, `{"latency-ms":0,"max-roundtrips":0,"max-tokens":0,"max-usd":0}`},
	} {
		if got, err := json.Marshal(tc.limits); err != nil || string(got) != tc.want {
			t.Errorf("%+v: got %s, %v; want %s", tc.limits, got, err, tc.want)
		}
	}
}

// What is written is read again: no limit gets lost on the way through a file, least of all one that
// allows nothing.
func TestLimitsComeBack(t *testing.T) {
	limit := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		want := budget.Limits{
			Roundtrips: rapid.Ptr(rapid.Map(limit, func(n int64) int { return int(n) }), true).Draw(t, "roundtrips"),
			Tokens:     rapid.Ptr(rapid.Map(limit, func(n int64) int { return int(n) }), true).Draw(t, "tokens"),
			USD:        rapid.Ptr(rapid.Map(limit, func(n int64) float64 { return float64(n) / 1e9 }), true).Draw(t, "usd"),
			Latency:    rapid.Ptr(rapid.Map(limit, func(n int64) time.Duration { return time.Duration(n) }), true).Draw(t, "latency"),
		}
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := budget.Limits{USD: new(7.0), Latency: new(time.Duration(7))} // which is overwritten
		if err := json.Unmarshal(raw, &got); err != nil || !cmp.Equal(got, want) {
			t.Fatalf("%s was read with %v: %s", raw, err, cmp.Diff(want, got))
		}
	})
	for text, want := range map[string]budget.Limits{
		`{"max-usd":-3,"max-tokens":-3,"max-roundtrips":0,"latency-ms":-0.5}`: {USD: new(-3.0), Tokens: new(-3), Roundtrips: new(0), Latency: new(-500 * time.Microsecond)},
		`{"latency-ms":2e3}`: {Latency: new(2 * time.Second)},
		`{}`:                 {},
	} {
		var got budget.Limits
		if err := json.Unmarshal([]byte(text), &got); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v: %s", text, err, cmp.Diff(want, got))
		}
	}
	for _, text := range []string{`{"max-usdd":1}`, `{"latency-ms":1e13}`, `{"latency-ms":9223372036855}`, `{"max-tokens":1.5}`, `{"max-usd":1e999}`} {
		var got budget.Limits
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s was read as %+v", text, got)
		}
	}
}

func Example() {
	run := budget.New(budget.Limits{USD: new(1.0)})
	step := run.Sub(budget.Limits{Roundtrips: new(2)})

	draw, err := step.Draw(context.Background(), body(""), "ask", budget.Fixed(budget.Amount{Roundtrips: 1, USD: 0.50}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer draw.Close()
	if err := draw.Begin(); err != nil {
		fmt.Println(err)
		return
	}
	draw.End(budget.Usage{InputTokens: 1000, OutputTokens: 200, USD: 0.20})
	fmt.Printf("%+v\n", run.Spent())

	fmt.Println(step.Affords(budget.Amount{Roundtrips: 1, USD: 0.90}))
	// Output:
	// {Roundtrips:1 Tokens:1200 USD:0.2}
	// budget/exhausted: spent 0.2000, limit 1: set max-usd to at least 1.1
}

// Draws that wait for open estimates are counted, until they go on.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := budget.New(budget.Limits{USD: new(1.0)})
		q := budget.Quote{Least: budget.Amount{USD: 0.1}, Most: budget.Amount{USD: 0.9}}
		first, err := a.Draw(t.Context(), body(""), "ask", q)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				draw, err := a.Sub(budget.Limits{}).Draw(t.Context(), body(""), "ask", q)
				if err != nil {
					t.Error(err)
				}
				draw.Close()
			})
		}
		synctest.Wait()
		if n := a.Waiting(); n != 3 {
			t.Errorf("%d draws wait", n)
		}
		first.Close()
		all.Wait()
		if n := a.Waiting(); n != 0 {
			t.Errorf("%d draws wait at the end", n)
		}
	})
}

// A run draws once on a budget that two rules have.
func TestDrawn(t *testing.T) {
	team := budget.Shared{Name: "team", Limits: budget.Limits{USD: new(5.0)}}
	rules := []budget.Rule{{Shared: team, Pipeline: "a"}, {Shared: team, Labels: map[string]string{"team": "x"}}, {Shared: budget.Shared{Name: "rest"}, Pipeline: "b"}}
	for _, tc := range []struct {
		pipeline string
		labels   map[string]string
		want     int
	}{{"a", map[string]string{"team": "x"}, 1}, {"b", map[string]string{"team": "x"}, 2}, {"b", map[string]string{"team": ""}, 1}, {"c", nil, 0}} {
		if of := budget.Drawn(rules, tc.pipeline, tc.labels); of == nil || len(of) != tc.want {
			t.Errorf("%s %v draws on %v, want %d", tc.pipeline, tc.labels, of, tc.want)
		}
	}
}
