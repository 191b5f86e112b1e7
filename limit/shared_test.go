package limit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/limit"
)

// table is a Store in memory.
type table struct {
	mu    sync.Mutex
	state []byte
	asked int
	fails bool
}

func (s *table) ShareRate(_ context.Context, _ string, change func([]byte, time.Time) []byte) error {
	time.Sleep(3 * time.Millisecond) // as a transaction takes
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return errors.New("no answer")
	}
	s.asked++
	s.state = change(s.state, time.Now())
	return nil
}

// sharing returns limiters as of several processes.
func sharing(s limit.Store, n int, l limit.Limits) (all []*limit.Limiter) {
	for range n {
		one := limit.New(l)
		one.Share(s, "provider")
		all = append(all, one)
	}
	return all
}

// A provider counts what arrives in any minute, by its own clock.
type provider struct {
	mu               sync.Mutex
	at               []time.Time
	tokens           []int
	running, highest int
}

func (p *provider) arrive(tokens int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.tokens = append(p.at, time.Now()), append(p.tokens, tokens)
	p.running++
	p.highest = max(p.highest, p.running)
}

func (p *provider) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
}

// most returns the most requests and tokens in any window, and the requests and tokens in the last one.
func (p *provider) most(window time.Duration) (requests, tokens int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, sum := 0, 0
	for i, at := range p.at {
		sum += p.tokens[i]
		for at.Sub(p.at[first]) >= window {
			sum -= p.tokens[first]
			first++
		}
		requests, tokens = max(requests, i-first+1), max(tokens, sum)
	}
	return requests, tokens
}

// Four processes share a minute. Whatever they ask, the provider gets no more than the limit in any minute, and
// gets 85 % of it while all have enough to send. The store is not asked for each request.
func TestShared(t *testing.T) {
	for name, c := range map[string]struct {
		limits limit.Limits
		tokens func() int // estimated
		use    func(int) int
	}{
		"requests":    {limit.Limits{RequestsPerMinute: 600}, func() int { return 0 }, func(n int) int { return n }},
		"few":         {limit.Limits{RequestsPerMinute: 20}, func() int { return 0 }, func(n int) int { return n }},
		"tokens":      {limit.Limits{TokensPerMinute: 100_000}, func() int { return 100 + rand.N(900) }, func(n int) int { return n }},
		"estimates":   {limit.Limits{TokensPerMinute: 100_000, RequestsPerMinute: 1000}, func() int { return 1000 }, func(n int) int { return 100 + rand.N(n-100) }},
		"concurrency": {limit.Limits{Concurrency: 6}, func() int { return 0 }, func(n int) int { return n }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const minutes = 10
				var p provider
				var s table
				ctx, cancel := context.WithTimeout(t.Context(), minutes*time.Minute)
				defer cancel()
				var all sync.WaitGroup
				for _, l := range sharing(&s, 4, c.limits) {
					for range 20 {
						all.Go(func() {
							for ctx.Err() == nil {
								estimate := c.tokens()
								place, err := l.Enter(ctx, limit.Request{Tokens: estimate})
								if err != nil {
									return
								}
								used := c.use(estimate)
								p.arrive(used)
								time.Sleep(time.Second + rand.N(time.Second))
								p.leave()
								place.Leave(used)
							}
						})
					}
				}
				all.Wait()
				requests, tokens := p.most(time.Minute)
				sum := 0
				for _, n := range p.tokens {
					sum += n
				}
				check := func(what string, limit, most, got int) {
					if limit > 0 && most > limit {
						t.Errorf("%d %s within a minute, limit %d", most, what, limit)
					}
					if limit > 0 && got < limit*minutes*85/100 {
						t.Errorf("%d %s in %d minutes: less than 85 %% of %d a minute", got, what, minutes, limit)
					}
				}
				if c.limits.TokensPerMinute == 0 || c.limits.RequestsPerMinute == 0 { // otherwise one is not reached
					check("requests", c.limits.RequestsPerMinute, requests, len(p.at))
				}
				check("tokens", c.limits.TokensPerMinute, tokens, sum)
				if most := c.limits.Concurrency; most > 0 && (p.highest > most || len(p.at) < most*minutes*60*85/100*2/3) {
					t.Errorf("%d requests at once, %d in all; limit %d", p.highest, len(p.at), most)
				}
				s.mu.Lock()
				asked := s.asked
				s.mu.Unlock()
				t.Logf("%d requests, %d tokens, %d questions to the store; at most %d and %d in a minute, %d at once", len(p.at), sum, asked, requests, tokens, p.highest)
				if asked > 3*4*60*minutes {
					t.Errorf("the store was asked %d times in %d minutes by 4 processes: more than three times a second each", asked, minutes)
				}
			})
		})
	}
}

// A refusal that one process hears stops the others within about a second, and the rate of a process that died
// comes back.
func TestSharedPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s table
		all := sharing(&s, 2, limit.Limits{RequestsPerMinute: 600})
		enter(t, all[1], 0).Leave(0)
		enter(t, all[0], 0).Heard(limit.Answer{Refused: true, Pause: 30 * time.Second})
		time.Sleep(1300 * time.Millisecond)
		began := time.Now()
		place := enter(t, all[1], 0)
		if wait := time.Since(began).Round(time.Second); wait != 29*time.Second {
			t.Errorf("another process waited %v, want 29 s", wait)
		}
		place.Leave(0)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
	})
}

// A request for which a person waits goes before one of another process, whatever its priority.
func TestSharedInteractive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s table
		all := sharing(&s, 3, limit.Limits{RequestsPerMinute: 1})
		enter(t, all[0], 0).Leave(0)
		time.Sleep(50 * time.Second)
		var order []string
		var wait sync.WaitGroup
		var mu sync.Mutex
		for i, r := range []limit.Rank{{Priority: 100}, {Interactive: true}} {
			wait.Go(func() {
				place, err := all[i+1].Enter(limit.Ranked(t.Context(), r), limit.Request{})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, fmt.Sprint(r.Interactive))
				mu.Unlock()
				place.Leave(0)
			})
			time.Sleep(2 * time.Second)
		}
		wait.Wait()
		if fmt.Sprint(order) != "[true false]" {
			t.Errorf("interactive requests went in the order %v", order)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
	})
}

// Concurrent requests of a process that died are free after a lease. A store that fails lets nothing start, and says why.
func TestSharedDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s table
		dead := sharing(&s, 1, limit.Limits{Concurrency: 2})[0]
		enter(t, dead, 0)
		s.mu.Lock()
		kept := append([]byte(nil), s.state...)
		s.mu.Unlock()
		alive := sharing(&s, 1, limit.Limits{Concurrency: 2})[0]
		enter(t, alive, 0)
		s.mu.Lock()
		s.fails = true
		s.mu.Unlock()
		said := ""
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		if _, err := alive.Enter(ctx, limit.Request{Every: time.Second, Waiting: func(w limit.Wait) { said = w.Reason }}); err == nil {
			t.Error("a request started without the store")
		}
		cancel()
		if said != "the rate that processes share cannot be read: no answer" {
			t.Errorf("it waits for %q", said)
		}
		s.mu.Lock()
		s.fails = false
		s.state = kept // the dead process says nothing from here on
		s.mu.Unlock()
		began := time.Now()
		third := sharing(&s, 1, limit.Limits{Concurrency: 2})[0]
		enter(t, third, 0).Leave(0)
		if wait := time.Since(began); wait > 16*time.Second {
			t.Errorf("it took %v", wait)
		}
	})
}

// TestMain is one of the processes of TestSharedProcesses, if the environment says so.
func TestMain(m *testing.M) {
	if file := os.Getenv("LIMIT_FILE"); file != "" {
		if err := process(file, os.Getenv("LIMIT_URL")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// short is the window of the processes.
const short = 6 * time.Second

var processLimits = limit.Limits{RequestsPerMinute: 120, Concurrency: 16}

func process(file, url string) error {
	var db limit.Store
	var err error
	if strings.Contains(file, "://") {
		db, err = postgres.Open(context.Background(), file, postgres.Options{})
	} else {
		db, err = sqlite.Open(file, sqlite.Options{})
	}
	if err != nil {
		return err
	}
	l := limit.New(processLimits)
	l.Share(db, "provider")
	l.SetWindow(short)
	for range 12 {
		go func() {
			for {
				place, err := l.Enter(context.Background(), limit.Request{})
				if err != nil {
					return
				}
				if resp, err := http.Get(url); err == nil {
					resp.Body.Close()
				}
				place.Leave(0)
			}
		}()
	}
	_, err = bufio.NewReader(os.Stdin).ReadByte() // until it is killed
	return err
}

// Four processes over one database, of which one after the other is killed and started again, keep the limit of a
// server that counts by its own clock.
func TestSharedProcesses(t *testing.T) {
	need.Time(t)
	for name, file := range map[string]string{"sqlite": filepath.Join(memdir.New(t), "stone.db"), "postgres": pgtest.Database(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testProcesses(t, file)
		})
	}
}

func testProcesses(t *testing.T, file string) {
	var p provider
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		p.arrive(0)
		time.Sleep(50 * time.Millisecond)
		p.leave()
	}))
	defer server.Close()
	start := func() (stop func()) { return peer.Again(t, "LIMIT_FILE="+file, "LIMIT_URL="+server.URL) }
	var stops [4]func()
	for i := range stops {
		stops[i] = start()
	}
	began := time.Now()
	for i := range 6 {
		time.Sleep(2*time.Second + rand.N(2*time.Second))
		stops[i%4]()
		stops[i%4] = start()
	}
	arrived := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.at)
	}
	// How fast they are depends on the machine, and is tested with a clock of its own. They must not get stuck.
	for wanted := 2 * processLimits.RequestsPerMinute; arrived() < wanted && time.Since(began) < 2*time.Minute; {
		time.Sleep(100 * time.Millisecond)
	}
	windows := time.Since(began).Seconds() / short.Seconds()
	for _, stop := range stops {
		stop()
	}
	requests, _ := p.most(short)
	t.Logf("%d requests in %.1f windows, at most %d in one of %d", len(p.at), windows, requests, processLimits.RequestsPerMinute)
	if n, want := len(p.at), 2*processLimits.RequestsPerMinute; n < want {
		t.Errorf("%d requests in %.1f windows, want %d", n, windows, want)
	}
	if requests > processLimits.RequestsPerMinute {
		t.Errorf("%d requests within a window, limit %d", requests, processLimits.RequestsPerMinute)
	}
	if p.highest > processLimits.Concurrency {
		t.Errorf("%d requests at once, limit %d", p.highest, processLimits.Concurrency)
	}
}
