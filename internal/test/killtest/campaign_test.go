//go:build unix

package killtest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stonelayer/stone/internal/test/pgtest"
)

// kind is a kind of round: a run under faults of one kind.
type kind struct {
	name   string
	rounds int  // of the whole campaign
	alone  bool // its rounds share a server that they harm
	round  func(v *victim, want func(lanes int) trace)
	after  func(t *testing.T) // may be nil
	tally
}

// tally is what rounds have shown. Only faults and again may be above zero: calls that were in
// flight in a process that was killed may be made again.
type tally struct {
	done, faults, again             int
	repeated, gone, overspent, hung int
}

func (t *tally) add(u tally) {
	t.done, t.faults, t.again = t.done+u.done, t.faults+u.faults, t.again+u.again
	t.repeated, t.gone, t.overspent, t.hung = t.repeated+u.repeated, t.gone+u.gone, t.overspent+u.overspent, t.hung+u.hung
}

// kinds returns all kinds of rounds. Those that harm a server share it.
func kinds(server func(*testing.T) *pgtest.Server) []*kind {
	single := func(name string, most int, prepare func(*victim), harm func(*victim, *process)) *kind {
		return &kind{name: name, rounds: 40, round: func(v *victim, want func(int) trace) {
			prepare(v)
			v.disturb(want(50), most, harm)
		}}
	}
	harmed := func(name string, most int, down func(*pgtest.Server) error, up func(*pgtest.Server) error) *kind {
		k := single(name, most, func(v *victim) { v.on(server(v.T).Database(v)) }, func(v *victim, _ *process) {
			if err := down(server(v.T)); err != nil {
				v.Fatal(err)
			}
			time.Sleep(rand.N(time.Second))
			if err := up(server(v.T)); err != nil {
				v.Fatal(err)
			}
		})
		k.alone = true
		return k
	}
	file, database := func(*victim) {}, func(v *victim) { v.overServer() }
	team := func(name string, round func(*victim, trace)) *kind {
		return &kind{name: name, rounds: 40, round: func(v *victim, want func(int) trace) { round(v, want(teamLanes)) }}
	}
	restarts := team("processes, server crashes", func(v *victim, want trace) { v.restart(want, server(v.T)) })
	restarts.alone = true
	return []*kind{
		single("SQLite, process killed", 6, file, (*victim).shoot),
		single("SQLite, disk full", 3, (*victim).small, func(v *victim, _ *process) { v.while(v.fill()) }),
		single("SQLite, locked", 3, file, func(v *victim, _ *process) { v.while(v.lock()) }),
		single("SQLite, clock jumps", 6, (*victim).wrongClock, (*victim).shoot),
		single("SQLite, another prompt", 6, file, (*victim).redeploy),
		single("Postgres, process killed", 6, database, (*victim).shoot),
		single("Postgres, clock jumps", 6, func(v *victim) { v.overServer().wrongClock() }, (*victim).shoot),
		single("Postgres, another prompt", 6, database, (*victim).redeploy),
		stopped(),
		harmed("Postgres, server killed", 2, func(s *pgtest.Server) error { return s.Signal(syscall.SIGKILL) }, (*pgtest.Server).Start),
		harmed("Postgres, server stopped", 2, (*pgtest.Server).Stop, (*pgtest.Server).Start),
		harmed("Postgres, server paused", 3,
			func(s *pgtest.Server) error { return s.Signal(syscall.SIGSTOP) }, func(s *pgtest.Server) error { return s.Signal(syscall.SIGCONT) }),
		{name: "Postgres, failed over", rounds: 40, round: func(v *victim, want func(int) trace) { v.failOver(want(50)) }},
		{name: "Postgres, out of connections", rounds: 40, round: func(v *victim, want func(int) trace) { v.refuse(want(50)) }},
		{name: "Postgres, disk full", rounds: 40, round: func(v *victim, want func(int) trace) { v.fillServer(want(50)) }},
		team("processes over SQLite, killed", (*victim).share),
		team("processes over Postgres, killed", func(v *victim, want trace) { v.overServer().share(want) }),
		restarts,
		{name: "budget over SQLite, killed", rounds: 40, round: func(v *victim, _ func(int) trace) { v.spend() }},
		{name: "budget over Postgres, killed", rounds: 40, round: func(v *victim, _ func(int) trace) { v.overServer().spend() }},
		{name: "sufficient budget over SQLite, killed", rounds: 40, round: func(v *victim, _ func(int) trace) { v.suffice() }},
		{name: "sufficient budget over Postgres, killed", rounds: 40, round: func(v *victim, _ func(int) trace) { v.overServer().suffice() }},
		{name: "server over SQLite, killed", rounds: 40, round: func(v *victim, _ func(int) trace) { v.serve() }},
		{name: "server over Postgres, killed", rounds: 40, round: func(v *victim, _ func(int) trace) { v.overServer().serve() }},
	}
}

// Runs meet every kind of fault. The ledger of what they have done, and their ends, equal the ledger and the ends of undisturbed
// runs.
func TestFaults(t *testing.T) {
	percent, err := strconv.Atoi(cmp.Or(os.Getenv("STONE_FAULTS"), "4"))
	if err != nil || percent < 1 {
		t.Fatalf("STONE_FAULTS=%q: want a percentage", os.Getenv("STONE_FAULTS"))
	}
	traces := map[int]trace{50: undisturbed(t), teamLanes: undisturbedWith(t, teamLanes)}
	want := func(lanes int) trace { return traces[lanes] }
	var own *pgtest.Server
	whole := t
	once := sync.OnceFunc(func() { own = pgtest.New(whole, "fsync=off", "full_page_writes=off") }) // the machine does not crash
	all := kinds(func(*testing.T) *pgtest.Server { once(); return own })
	var mu sync.Mutex
	round := func(k *kind) func(t *testing.T) {
		return func(t *testing.T) {
			if !k.alone {
				t.Parallel()
			}
			v := newVictim(t)
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				k.add(v.tally)
			}()
			k.round(v, want)
		}
	}
	t.Run("rounds", func(t *testing.T) {
		t.Run("server", func(t *testing.T) {
			t.Parallel()
			for _, k := range all {
				for n := range k.share(percent) {
					if k.alone {
						t.Run(fmt.Sprint(k.name, " ", n+1), round(k))
					}
				}
			}
		})
		for n := range 100 * percent { // one round of each kind after the other
			for _, k := range all {
				if !k.alone && n < k.share(percent) {
					t.Run(fmt.Sprint(k.name, " ", n+1), round(k))
				}
			}
		}
	})
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "kind\trounds\tfaults\tcalls in flight made again\trecorded steps repeated\tsteps lost\toverspent\thung")
	sum := kind{name: "all"}
	for _, k := range all {
		sum.add(k.tally)
		if k.after != nil && k.done > 0 {
			k.after(t)
		}
	}
	for _, k := range append(all, &sum) {
		fmt.Fprintln(table, strings.Join([]string{k.name, fmt.Sprint(k.done), fmt.Sprint(k.faults), fmt.Sprint(k.again),
			fmt.Sprint(k.repeated), fmt.Sprint(k.gone), fmt.Sprint(k.overspent), fmt.Sprint(k.hung)}, "\t"))
	}
	_ = table.Flush() // to a builder
	t.Logf("\n%s", &text)
}

// share is the number of rounds that STONE_FAULTS asks for.
func (k *kind) share(percent int) int { return max(k.rounds*percent/100, 1) }

// disturb does the run in one process after the other. Each meets faults at random moments, at most
// a number of them in all.
func (v *victim) disturb(want trace, most int, harm func(*victim, *process)) {
	v.Helper()
	ended := false
	for !ended && v.faults < most {
		p := v.start("")
		for !p.over() && v.faults < most && v.began(p, len(v.entries("lines"))+rand.N(25)) {
			time.Sleep(rand.N(20 * time.Millisecond))
			harm(v, p)
			v.faults++
		}
		ended = v.finished(p)
		if v.check(want); ended {
			v.compare(v.trace(p, 0), want, v.kills)
		}
	}
	v.compare(v.finish(), want, v.kills)
	for _, n := range v.lines() {
		v.again += n - 1
	}
}

// finished waits for a process, and reports false if it was killed, lost its run or gave up.
func (v *victim) finished(p *process) bool {
	v.Helper()
	v.await("a process does not end", p.over)
	gaveUp := p.lost()
	for _, text := range v.gives {
		gaveUp = gaveUp || p.ProcessState.ExitCode() == 1 && strings.Contains(p.errs.String(), text)
	}
	if gaveUp {
		v.kills++
		return false
	}
	return v.end(p)
}

// shoot kills a process.
func (v *victim) shoot(p *process) {
	_ = p.Process.Kill() // it may have ended
	_ = p.Wait()
}

// redeploy kills a process. The next one has another prompt.
func (v *victim) redeploy(p *process) {
	v.shoot(p)
	v.env = append(v.env, fmt.Sprintf("%s=You write lines since %v.", childText, time.Now()))
}

func (v *victim) wrongClock() { v.env = append(v.env, childClock+"=jumps") }

// while lets a fault last for a moment, that may be longer than the patience of a process.
func (v *victim) while(undo func()) {
	v.gives = []string{"is locked", "has no space left"}
	time.Sleep(rand.N(2 * retry))
	undo()
}

// failOver is a round in which the server dies, and its synchronous standby takes its place.
func (v *victim) failOver(want trace) {
	v.Helper()
	primary := pgtest.New(v, "fsync=off", "wal_level=replica", "max_wal_senders=4")
	address := primary.Database(v)
	standby := primary.Standby(v, "fsync=off")
	pgtest.Exec(v, address, "ALTER SYSTEM SET synchronous_standby_names = 'standby'")
	pgtest.Exec(v, address, "SELECT pg_reload_conf()")
	v.on(pgtest.On(v, address, primary, standby))
	v.disturb(want, 1, func(v *victim, _ *process) {
		if err := errors.Join(primary.Crash(), standby.Promote()); err != nil {
			v.Fatal(err)
		}
	})
}

// refuse is a round in which the server ends all connections, and accepts none for a moment.
func (v *victim) refuse(want trace) {
	v.Helper()
	address, refuse := pgtest.Limited(v)
	v.on(address)
	v.disturb(want, 3, func(v *victim, p *process) {
		// A process that is refused when it begins gives up, and says so. Here one is at work.
		if !v.began(p, len(v.entries("lines"))+1) {
			return
		}
		undo, err := refuse()
		if err != nil {
			v.Fatal(err)
		}
		time.Sleep(rand.N(time.Second))
		if err := undo(); err != nil {
			v.Fatal(err)
		}
	})
}

// fillServer is a round in which the disk of the tables is full for a moment.
func (v *victim) fillServer(want trace) {
	v.Helper()
	const size = 16 << 20
	address, folder := pgtest.Small(v, size)
	v.on(address)
	v.gives = []string{"could not write init file"} // a server that cannot begin a connection
	v.disturb(want, 3, func(v *victim, p *process) {
		// A process that finds the disk full when it begins gives up, and says so. Here one is at work.
		if !v.began(p, len(v.entries("lines"))+1) {
			return
		}
		name := filepath.Join(folder, "filling")
		if err := os.WriteFile(name, make([]byte, size), 0o600); !errors.Is(err, syscall.ENOSPC) {
			v.Fatalf("the disk is not full: %v", err)
		}
		time.Sleep(rand.N(time.Second))
		if err := os.Remove(name); err != nil {
			v.Fatal(err)
		}
	})
}
