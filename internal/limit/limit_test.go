package limit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/internal/limit"
)

// enter fails the test if there is no place.
func enter(t *testing.T, l *limit.Limiter, tokens int) *limit.Place {
	t.Helper()
	p, err := l.Enter(t.Context(), limit.Request{Tokens: tokens})
	if err != nil {
		t.Error(err)
	}
	return p
}

// starts enters with each number of tokens, in this order, and returns the seconds at which they started.
func starts(t *testing.T, l *limit.Limiter, tokens ...int) string {
	t.Helper()
	begin, at := time.Now(), make([]string, len(tokens))
	var all sync.WaitGroup
	for i, n := range tokens {
		all.Go(func() {
			p := enter(t, l, n)
			at[i] = fmt.Sprint(time.Since(begin).Seconds())
			p.Leave(-1)
		})
		synctest.Wait()
	}
	all.Wait()
	return strings.Join(at, " ")
}

func TestRate(t *testing.T) {
	for name, test := range map[string]struct {
		limits limit.Limits
		tokens []int
		want   string
	}{
		"none":     {limit.Limits{}, []int{1e9, 1e9, 1e9}, "0 0 0"},
		"requests": {limit.Limits{RequestsPerMinute: 2}, []int{0, 0, 0, 0, 0}, "0 0 60 60 120"},
		"tokens":   {limit.Limits{TokensPerMinute: 100}, []int{40, 40, 40, 60, 40}, "0 0 60 60 120"},
		"in order": {limit.Limits{TokensPerMinute: 100}, []int{90, 90, 5}, "0 60 60"},
		"too many": {limit.Limits{TokensPerMinute: 100}, []int{1, 1000, 1}, "0 60 120"},
		"both":     {limit.Limits{TokensPerMinute: 100, RequestsPerMinute: 3}, []int{100, 1, 1, 1, 1}, "0 60 60 60 120"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := starts(t, limit.New(test.limits), test.tokens...); got != test.want {
					t.Errorf("started at %s, want %s", got, test.want)
				}
			})
		})
	}
}

// TestAnyMinute starts requests at odd times: no minute has more than the limit.
func TestAnyMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Limits{RequestsPerMinute: 7})
		var at []time.Time
		for i := range 100 {
			enter(t, l, 0).Leave(0)
			at = append(at, time.Now())
			time.Sleep(time.Duration(i*i%13) * 777 * time.Millisecond)
		}
		for i := 7; i < len(at); i++ {
			if d := at[i].Sub(at[i-7]); d < time.Minute {
				t.Fatalf("requests %d to %d started within %v", i-7, i, d)
			}
		}
	})
}

func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Limits{TokensPerMinute: 100})
		enter(t, l, 100).Leave(10) // 90 are given back
		if got := starts(t, l, 90, 1); got != "0 60" {
			t.Errorf("after an estimate that was too high: started at %s", got)
		}
		time.Sleep(2 * time.Minute)
		p := enter(t, l, 10)
		time.Sleep(time.Minute)
		p.Leave(95) // 85 more, counted now
		p.Leave(0)  // which changes nothing
		if got := starts(t, l, 15, 1); got != "0 60" {
			t.Errorf("after an estimate that was too low: started at %s", got)
		}
	})
}

func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Limits{Concurrency: 3})
		var mu sync.Mutex
		open, most := 0, 0
		begin := time.Now()
		var all sync.WaitGroup
		for range 9 {
			all.Go(func() {
				p := enter(t, l, 0)
				mu.Lock()
				open++
				most = max(most, open)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				open--
				mu.Unlock()
				p.Leave(0)
			})
		}
		all.Wait()
		if d := time.Since(begin); most != 3 || d != 3*time.Second {
			t.Errorf("%d at once, for %v: want 3 for 3 s", most, d)
		}
	})
}

// TestPriority counts which requests start while both kinds wait. Requests that start at the same
// time are in no order.
func TestPriority(t *testing.T) {
	const perMinute = 4
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Limits{RequestsPerMinute: perMinute})
		started := map[string][]time.Time{}
		var mu sync.Mutex
		var all sync.WaitGroup
		add := func(name string, ctx context.Context, n int) {
			for range n {
				all.Go(func() {
					p, err := l.Enter(ctx, limit.Request{})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					started[name] = append(started[name], time.Now())
					mu.Unlock()
					p.Leave(0)
				})
			}
			synctest.Wait()
		}
		starts(t, l, make([]int, perMinute)...) // use up the minute
		begin := time.Now()
		add("batch", t.Context(), 40)
		add("person", limit.Ranked(t.Context(), limit.Rank{Interactive: true}), 30)
		all.Wait()
		within := begin.Add(40 / perMinute * time.Minute) // of the first 40 places
		for name, want := range map[string]int{"batch": 10, "person": 30} {
			slices.SortFunc(started[name], time.Time.Compare)
			if n, _ := slices.BinarySearchFunc(started[name], within.Add(time.Second), time.Time.Compare); n != want {
				t.Errorf("%d of the first 40 places went to %s, want %d", n, name, want)
			}
		}
		clear(started)
		add("batch", t.Context(), 8)
		add("person", limit.Ranked(t.Context(), limit.Rank{Interactive: true}), 1)
		all.Wait()
		before := 0
		for _, at := range started["batch"] {
			if at.Before(started["person"][0]) {
				before++
			}
		}
		if before > perMinute {
			t.Errorf("%d requests of a batch started before that of a person, want at most those of one minute", before)
		}
	})
}

// TestServer pauses all requests when the server says so.
func TestServer(t *testing.T) {
	at := func(s int) time.Time { return time.Now().Add(time.Duration(s) * time.Second) }
	for name, test := range map[string]struct {
		said   func() limit.Answer
		tokens []int
		want   string
	}{
		"nothing":            {func() limit.Answer { return limit.Answer{} }, []int{5, 5, 5}, "0 0 0"},
		"no requests left":   {func() limit.Answer { return limit.Answer{Requests: limit.Quota{Left: 0, Until: at(7)}} }, []int{5, 5}, "7 7"},
		"no tokens left":     {func() limit.Answer { return limit.Answer{Tokens: limit.Quota{Left: 0, Until: at(7)}} }, []int{0, 5}, "7 7"},
		"some requests left": {func() limit.Answer { return limit.Answer{Requests: limit.Quota{Left: 2, Until: at(7)}} }, []int{5, 5, 5}, "0 0 7"},
		"some tokens left":   {func() limit.Answer { return limit.Answer{Tokens: limit.Quota{Left: 11, Until: at(7)}} }, []int{5, 5, 5}, "0 0 7"},
		"a large request":    {func() limit.Answer { return limit.Answer{Tokens: limit.Quota{Left: 11, Until: at(7)}} }, []int{12}, "7"},
		"in the past":        {func() limit.Answer { return limit.Answer{Requests: limit.Quota{Left: 0, Until: at(-7)}} }, []int{5}, "0"},
		"refused":            {func() limit.Answer { return limit.Answer{Refused: true, Pause: 3 * time.Second} }, []int{5, 5, 5}, "3 3 3"},
		"refused for ever":   {func() limit.Answer { return limit.Answer{Refused: true, Pause: 1 << 62} }, []int{5}, "86400"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l limit.Limiter
				p := enter(t, &l, 0)
				p.Heard(test.said())
				p.Leave(0)
				if got := starts(t, &l, test.tokens...); got != test.want {
					t.Errorf("started at %s, want %s", got, test.want)
				}
			})
		})
	}
}

// TestRefused lets one request go first after a refusal, and counts how many are refused.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limit.Limiter
		begin, refused, accepted := time.Now(), 0, 0
		var mu sync.Mutex
		ask := func() {
			for {
				p := enter(t, &l, 0)
				time.Sleep(100 * time.Millisecond)
				mu.Lock()
				no := time.Since(begin) < 10*time.Second
				if no {
					refused++
				} else {
					accepted++
				}
				mu.Unlock()
				p.Heard(limit.Answer{Refused: no, Pause: time.Second})
				p.Leave(0)
				if !no {
					return
				}
			}
		}
		var all sync.WaitGroup
		all.Go(ask)
		time.Sleep(200 * time.Millisecond)
		for range 999 {
			all.Go(ask)
		}
		all.Wait()
		if refused > 10 || accepted != 1000 {
			t.Errorf("%d requests were refused and %d accepted, want at most one a second refused", refused, accepted)
		}
	})
}

// TestProbeLost ends the first request after a refusal without an answer.
func TestProbeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limit.Limiter
		p := enter(t, &l, 0)
		p.Heard(limit.Answer{Refused: true, Pause: time.Second})
		p.Leave(0)
		enter(t, &l, 0).Leave(-1)
		if got := starts(t, &l, 0, 0); got != "0 0" {
			t.Errorf("started at %s", got)
		}
	})
}

// TestSlowProbe has the first request after a refusal answered late.
func TestSlowProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limit.Limiter
		p := enter(t, &l, 0)
		p.Heard(limit.Answer{Refused: true, Pause: time.Second})
		p.Leave(0)
		slow := enter(t, &l, 0)
		if got := starts(t, &l, 0, 0); got != "5 5" {
			t.Errorf("started at %s", got)
		}
		slow.Leave(0)
	})
}

func TestTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limit.Limiter
		fails := func(ctx context.Context, r limit.Request, want string) {
			t.Helper()
			begin := time.Now()
			_, err := l.Enter(ctx, r)
			if late := (*limit.TooLateError)(nil); !errors.As(err, &late) || err.Error() != want || time.Since(begin) != 0 {
				t.Errorf("got %v after %v, want %s", err, time.Since(begin), want)
			}
		}
		p := enter(t, &l, 0)
		waits := make(chan error)
		go func() {
			time.Sleep(time.Second)
			_, err := l.Enter(t.Context(), limit.Request{Patience: time.Minute})
			waits <- err
		}()
		p.Heard(limit.Answer{Requests: limit.Quota{Left: 0, Until: time.Now().Add(time.Minute)}})
		time.Sleep(2 * time.Second)
		p.Heard(limit.Answer{Requests: limit.Quota{Left: 0, Until: time.Now().Add(time.Hour)}})
		if err := <-waits; err == nil {
			t.Error("a waiting request has more patience than it said")
		}
		fails(t.Context(), limit.Request{Patience: time.Minute}, "no request may be sent for 1h0m0s, beyond the longest wait of 1m0s: the server accepts no more requests")
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		fails(soon, limit.Request{}, "no request may be sent for 1h0m0s, beyond its deadline: the server accepts no more requests")
	})
}

// TestCancel ends waits at once, and leaves no place taken.
// What running requests have reserved is not a time: requests wait until those have settled, or until
// their deadline.
func TestReservationIsNoTime(t *testing.T) {
	for name, c := range map[string]struct {
		limits limit.Limits
		said   limit.Quota
	}{
		"own limit": {limits: limit.Limits{TokensPerMinute: 40_000}},
		"server":    {said: limit.Quota{Left: 40_000}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limit.New(c.limits)
				if c.said.Left > 0 {
					p, err := l.Enter(t.Context(), limit.Request{})
					if err != nil {
						t.Fatal(err)
					}
					c.said.Until = time.Now().Add(time.Minute)
					p.Heard(limit.Answer{Tokens: c.said})
					p.Leave(0)
				}
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
				defer cancel()
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						p, err := l.Enter(ctx, limit.Request{Tokens: 17_000})
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(10 * time.Millisecond)
						if c.said.Left > 0 {
							p.Heard(limit.Answer{Tokens: limit.Quota{Left: 38_000, Until: c.said.Until}})
						}
						p.Leave(1010)
					})
				}
				all.Wait()
				if took := time.Since(begin); took > time.Second {
					t.Errorf("4 requests took %v", took)
				}
				// What the server said last counts, less 17,000 where a request that was sent before was
				// answered after it.
				p, err := l.Enter(ctx, limit.Request{Tokens: 20_000})
				if err != nil {
					t.Fatal(err)
				}
				defer p.Leave(20_000)
				if _, err := l.Enter(ctx, limit.Request{Tokens: 20_000}); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) < 40*time.Second {
					t.Errorf("beside a request that does not end: %v after %v, want the end of the deadline", err, time.Since(begin))
				}
			})
		})
	}
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Limits{Concurrency: 1, RequestsPerMinute: 2})
		first := enter(t, l, 0)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		for range 100 {
			go func() {
				_, err := l.Enter(ctx, limit.Request{})
				ended <- err
			}()
		}
		synctest.Wait()
		begin := time.Now()
		cancel(gone)
		for range 100 {
			if err := <-ended; err != gone {
				t.Errorf("ended with %v", err)
			}
		}
		first.Leave(0)
		enter(t, l, 0).Leave(0)
		if time.Since(begin) != 0 {
			t.Error("what was cancelled has taken a place")
		}
		if _, err := l.Enter(ctx, limit.Request{}); err != gone {
			t.Errorf("a cancelled context waits: %v", err)
		}
	})
}

func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Limits{RequestsPerMinute: 1})
		var said []string
		hear := limit.Request{Every: 25 * time.Second, Waiting: func(w limit.Wait) { said = append(said, w.String()) }}
		enter(t, l, 0).Leave(0)
		go enter(t, l, 0)
		synctest.Wait()
		if _, err := l.Enter(t.Context(), hear); err != nil {
			t.Error(err)
		}
		got := strings.Join(said, "\n")
		if want := "waiting for 25s: at most 1 requests a minute; 1 requests are ahead of it\n" +
			"waiting for 50s: at most 1 requests a minute; 1 requests are ahead of it\n" +
			"waiting for 1m15s: at most 1 requests a minute\n" +
			"waiting for 1m40s: at most 1 requests a minute"; got != want {
			t.Errorf("said\n%s\nwant\n%s", got, want)
		}
	})
}

// TestTimeout has requests that wait longer than the timeout of their work.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Limits{RequestsPerMinute: 1})
		slow := errors.New("slow")
		outer, end := limit.WithTimeout(t.Context(), 10*time.Second, errors.New("the outer one"))
		defer end()
		ctx, cancel := limit.WithTimeout(outer, 2*time.Second, slow)
		defer cancel()
		for range 2 {
			p, err := l.Enter(ctx, limit.Request{})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(900 * time.Millisecond)
			p.Leave(0)
		}
		if ctx.Err() != nil {
			t.Fatalf("the wait counts: %v", context.Cause(ctx))
		}
		begin := time.Now()
		<-ctx.Done()
		if d := time.Since(begin); d != 200*time.Millisecond || context.Cause(ctx) != slow {
			t.Errorf("ended after %v with %v, want 200ms", d, context.Cause(ctx))
		}
		begin = time.Now()
		<-outer.Done()
		if d := time.Since(begin); d != 8*time.Second {
			t.Errorf("the outer timeout came after %v, want 8s", d)
		}
		done, cancel := limit.WithTimeout(t.Context(), time.Second, slow)
		cancel()
		if context.Cause(done) != context.Canceled {
			t.Errorf("cancelled: %v", context.Cause(done))
		}
	})
}

// TestRefusedLeavesNoTimer refuses a request at the head of the queue, for which the timer was set. The
// one behind it starts when its own minute is over.
func TestRefusedLeavesNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begin := limit.New(limit.Limits{TokensPerMinute: 100}), time.Now()
		enter(t, l, 50).Leave(50)
		time.Sleep(30 * time.Second)
		enter(t, l, 50).Leave(50)
		time.Sleep(time.Second)
		done := make(chan time.Duration)
		go func() {
			enter(t, l, 50).Leave(50)
			done <- time.Since(begin)
		}()
		synctest.Wait()
		soon, cancel := context.WithTimeout(limit.Ranked(t.Context(), limit.Rank{Interactive: true}), 10*time.Second)
		defer cancel()
		if _, err := l.Enter(soon, limit.Request{Tokens: 100}); !errors.As(err, new(*limit.TooLateError)) {
			t.Errorf("the request that would be too late: %v", err)
		}
		if at := <-done; at != time.Minute {
			t.Errorf("the other request started after %v, want 1m0s", at)
		}
	})
}
