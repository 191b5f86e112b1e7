package limit_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/internal/limit"
)

// Requests wait while one runs, and then start one by one. The names say in which order.
func TestRank(t *testing.T) {
	for _, c := range []struct{ arrive, want string }{
		{"a a a b c", "a b c a a"},                             // tenants take turns
		{"a a a a b b", "a b a b a a"},                         //
		{"a a b+1 b+1 c", "b+1 b+1 a c a"},                     // priority goes first
		{"a b+1 b+1 b+1 b+1 b+1 c", "b+1 b+1 b+1 a b+1 b+1 c"}, // and one of four to who waits longest
		{"a-1 b a-1 b", "b b a-1 a-1"},
		{"a a a a a", "a a a a a"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := limit.New(limit.Limits{Concurrency: 1})
			first := enter(t, l, 0)
			var all sync.WaitGroup
			var went []string
			for name := range strings.FieldsSeq(c.arrive) {
				r := limit.Rank{Tenant: name[:1]}
				if len(name) > 1 {
					fmt.Sscan(name[1:], &r.Priority)
				}
				all.Go(func() {
					p, err := l.Enter(limit.Ranked(t.Context(), r), limit.Request{})
					if err != nil {
						t.Error(err)
					}
					went = append(went, name) // one at a time
					time.Sleep(time.Second)
					p.Leave(0)
				})
				synctest.Wait()
			}
			first.Leave(0)
			all.Wait()
			if got := strings.Join(went, " "); got != c.want {
				t.Errorf("%s: %s, want %s", c.arrive, got, c.want)
			}
		})
	}
}

// Nobody starves: among a hundred tenants whose requests never end, each is served, also the one with the
// lowest priority.
func TestRankNoStarvation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Limits{Concurrency: 1})
		const tenants = 100
		var mu sync.Mutex
		served := map[string]int{}
		stop := make(chan struct{})
		var all sync.WaitGroup
		for i := range tenants {
			r := limit.Rank{Tenant: fmt.Sprint(i), Priority: 1}
			if i == 0 {
				r.Priority = -1
			}
			for range 1 + i%3 { // some have more that waits
				all.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						p, err := l.Enter(limit.Ranked(t.Context(), r), limit.Request{})
						if err != nil {
							return
						}
						time.Sleep(time.Millisecond)
						mu.Lock()
						served[r.Tenant]++
						mu.Unlock()
						p.Leave(0)
					}
				})
			}
		}
		time.Sleep(10 * tenants * 4 * time.Millisecond)
		mu.Lock()
		for i := range tenants {
			want := 20
			if i == 0 {
				want = 3
			}
			if n := served[fmt.Sprint(i)]; n < want {
				t.Errorf("tenant %d was served %d times in forty rounds, want %d", i, n, want)
			}
		}
		mu.Unlock()
		close(stop)
		all.Wait()
	})
}
