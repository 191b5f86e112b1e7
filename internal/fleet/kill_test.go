package fleet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
)

// TestMain is one of the processes of TestKills, if the environment says so.
func TestMain(m *testing.M) {
	if store := os.Getenv("FLIGHT_STORE"); store != "" {
		if err := process(store, os.Getenv("FLIGHT_LEDGER")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const (
	processes = 4
	atOnce    = 3 // runs of a process
	runs      = 24
	lanes     = 4
	most      = 1.0  // USD that a step may cost
	total     = 60.0 // of all runs
)

var project = budget.Shared{Name: "project", Limits: budget.Limits{USD: new(total)}}

type store interface {
	journal.Journal
	Close() error
}

func open(name string) (store, error) {
	if strings.Contains(name, "://") {
		return postgres.Open(context.Background(), name, postgres.Options{Lease: time.Second})
	}
	return sqlite.Open(name, sqlite.Options{Lease: time.Second})
}

type answer struct {
	Usage budget.Usage `json:"usage"`
}

var (
	text = dag.NewType[string]("text")
	want = budget.Quote{Least: budget.Amount{Roundtrips: 1, USD: 0.01}, Most: budget.Amount{Roundtrips: 1, USD: most}}
)

// pipeline has lanes that pay what the ledger then has.
func pipeline(run, ledger string) stone.Ashlar {
	var steps []stone.Ashlar
	for i := range lanes {
		steps = append(steps, stone.Func0(fmt.Sprint("lane-", i), text, func(ctx context.Context) (string, error) {
			draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), "ask", want)
			if err != nil {
				return "", err
			}
			defer draw.Close()
			got, err := stone.Step(draw.Context(ctx), "ask", nil, func(context.Context, any) (answer, error) {
				if err := draw.Begin(); err != nil {
					return answer{}, err
				}
				h := fnv.New32()
				fmt.Fprint(h, run, i)
				usd := 0.2 + float64(h.Sum32()%80)/100
				f, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err == nil {
					_, err = fmt.Fprintf(f, "%v\n", usd)
					f.Close()
				}
				time.Sleep(30 * time.Millisecond)
				return answer{budget.Usage{USD: usd}}, err
			})
			draw.End(got.Usage)
			return "ok", err
		}))
	}
	return stone.Flow("all", steps...)
}

// one starts or resumes a run.
func one(j journal.Journal, id, ledger string, of []budget.Shared) error {
	_, err := stone.Run(context.Background(), pipeline(id, ledger), stone.Config{RunID: id, Recorder: journal.Keep(j, journal.Options{Budgets: of})})
	return err
}

// process starts and resumes runs in any order, some at a time, until its input ends.
func process(name, ledger string) error {
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}()
	j, err := open(name)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for {
				err := one(j, fmt.Sprint("run-", rand.N(runs)), ledger, []budget.Shared{project})
				if err != nil && !errors.As(err, new(*budget.ExhaustedError)) && !errors.As(err, new(*journal.HeldError)) && !errors.Is(err, journal.ErrUnavailable) {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		})
	}
	all.Wait()
	return nil
}

// billed sums up the ledger.
func billed(t *testing.T, ledger string) (sum float64, calls int) {
	t.Helper()
	data, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		usd, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum, calls = sum+usd, calls+1
	}
	return sum, calls
}

// Four processes do runs that cost more than their budget, and are killed at random moments. A ledger outside has at most what
// the budget allows, what the other processes have in flight, and what was in flight at the kills. With more money all
// runs end, and what was recorded covers what was billed.
func TestKills(t *testing.T) {
	need.Time(t)
	t.Run("sqlite", func(t *testing.T) { testKills(t, filepath.Join(memdir.New(t), "stone.db"), 10) })
	t.Run("postgres", func(t *testing.T) { testKills(t, pgtest.Database(t), 10) })
}

// Without kills the limit is passed by what the other processes have in flight at most.
func TestOvershoot(t *testing.T) {
	testKills(t, filepath.Join(memdir.New(t), "stone.db"), 0)
}

func testKills(t *testing.T, name string, kills int) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	start := func() (stop func()) { return peer.Again(t, "FLIGHT_STORE="+name, "FLIGHT_LEDGER="+ledger) }
	j, err := open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	used := func() float64 {
		t.Helper()
		b, err := j.Balance(t.Context(), project, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return b.Used.USD
	}
	var stops [processes]func()
	for i := range stops {
		stops[i] = start()
	}
	for i := range kills {
		time.Sleep(time.Duration(100+rand.N(400)) * time.Millisecond)
		stops[i%processes]()
		stops[i%processes] = start()
	}
	for deadline := time.Now().Add(2 * time.Minute); total-used() >= most; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("used %v of %v, and no more is spent", used(), total)
		}
	}
	time.Sleep(200 * time.Millisecond) // steps that have started end
	for _, stop := range stops {
		stop()
	}
	sum, calls := billed(t, ledger)
	t.Logf("%d calls were billed %.2f of %v, recorded is %.2f", calls, sum, total, used())
	if beyond := float64((processes-1+kills)*atOnce*lanes) * most; sum > total+beyond {
		t.Errorf("billed %v of %v, want at most %v more", sum, total, beyond)
	}
	more := project
	more.Limits.USD = new(1000.0)
	for i := range runs {
		id := fmt.Sprint("run-", i)
		err := one(j, id, ledger, []budget.Shared{more})
		for held := time.Now(); errors.As(err, new(*journal.HeldError)) && time.Since(held) < 20*time.Second; {
			err = one(j, id, ledger, []budget.Shared{more})
		}
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
	sum, calls = billed(t, ledger)
	t.Logf("in the end %d calls were billed %.2f, recorded is %.2f", calls, sum, used())
	if got := used(); got < sum-1e-6 || got > sum+float64(calls)*most {
		t.Errorf("recorded %v, billed %v", got, sum)
	}
}
