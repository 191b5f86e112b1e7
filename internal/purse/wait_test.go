package purse_test

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

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/purse"
	"github.com/stonelayer/stone/limit"
)

// bank is a budget of some dollars in one process.
type bank struct {
	purse.Lines
	mu   sync.Mutex
	has  budget.Balance
	asks int
	paid []string
}

func newBank(usd, held float64) *bank {
	return &bank{has: budget.Balance{Shared: budget.Shared{Name: "all", Limits: budget.Limits{USD: usd}}, Held: budget.Amount{USD: held}}}
}

// take waits until it has reserved some dollars.
func (b *bank) take(ctx context.Context, name string, usd float64) error {
	most := budget.Fixed(budget.Amount{USD: usd})
	ctx = declared.Claim(declared.With(ctx, most.Most), most)
	return b.Wait(ctx, func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asks++
		if err := b.has.Pays(most); err != nil {
			return err
		}
		b.has.Held.USD += usd
		b.paid = append(b.paid, name)
		return nil
	})
}

// give returns what was reserved. Its process may tell the others.
func (b *bank) give(usd float64, told bool) {
	b.mu.Lock()
	b.has.Held.USD -= usd
	b.mu.Unlock()
	if told {
		b.Returned()
	}
}

// sleep lets time pass, and everybody do what is due then.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A thousand steps that wait ask about once a second together, and not each. What another process returns reaches
// them within about a second, what their own process returns at once.
func TestWaitAsksLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const steps = 1000
		b := newBank(steps, steps)
		var all sync.WaitGroup
		for i := range steps {
			all.Go(func() {
				if err := b.take(t.Context(), fmt.Sprint(i), 1); err != nil {
					t.Error(err)
				}
			})
		}
		sleep(50 * time.Second)
		if b.asks > steps+70 {
			t.Errorf("%d asks of %d steps in 50 seconds", b.asks, steps)
		}
		b.asks = 0
		b.give(100, true)
		synctest.Wait()
		if len(b.paid) != 100 || b.asks > 300 {
			t.Errorf("%d steps were paid at once, after %d asks, want 100", len(b.paid), b.asks)
		}
		b.give(100, false)
		if sleep(1500 * time.Millisecond); len(b.paid) != 200 {
			t.Errorf("%d steps were paid, want 200", len(b.paid))
		}
		b.give(800, true)
		all.Wait()
	})
}

// A step for which a person waits is paid first, then those of a higher priority, then those that came first. One
// that fits passes one that does not.
func TestWaitOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(10, 10)
		var all sync.WaitGroup
		for _, s := range []struct {
			name string
			usd  float64
			rank limit.Rank
		}{
			{"a", 2, limit.Rank{}}, {"b", 2, limit.Rank{}}, {"low", 2, limit.Rank{Priority: -1}}, {"high", 2, limit.Rank{Priority: 5}},
			{"person", 2, limit.Rank{Interactive: true, Priority: -9}}, {"large", 6, limit.Rank{Priority: 9}},
		} {
			all.Go(func() {
				if err := b.take(limit.Ranked(t.Context(), s.rank), s.name, s.usd); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range 5 {
			b.give(2, true)
			synctest.Wait()
		}
		b.give(10, true)
		all.Wait()
		if want := "person high a b low large"; strings.Join(b.paid, " ") != want {
			t.Errorf("paid %v, want %s", b.paid, want)
		}
	})
}

// Steps give up a minute after the last change of their budget, and not before. One that is canceled leaves the line to
// the next, and one that can never be paid learns so.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(10, 10)
		var mu sync.Mutex
		var ends []string
		start := time.Now()
		take := func(ctx context.Context, name string, usd float64) {
			go func() {
				err := b.take(ctx, name, usd)
				mu.Lock()
				defer mu.Unlock()
				spent, refused := errors.AsType[*budget.ExhaustedError](err)
				ends = append(ends, fmt.Sprintf("%s %v %t %t", name, time.Since(start).Round(5*time.Second), refused && spent.Later, errors.Is(err, context.Canceled)))
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		take(ctx, "canceled", 1)
		take(t.Context(), "never", 9)
		take(t.Context(), "patient", 1)
		time.Sleep(30 * time.Second)
		cancel()
		synctest.Wait()
		b.mu.Lock()
		b.has.Used.USD, b.has.Held.USD = 2, 8 // by another process
		b.mu.Unlock()
		take(t.Context(), "late", 1)
		sleep(70 * time.Second)
		slices.Sort(ends)
		if want := "[canceled 30s false true late 1m30s true false never 30s false false patient 1m30s true false]"; fmt.Sprint(ends) != want {
			t.Errorf("got %v, want %s", ends, want)
		}
	})
}
