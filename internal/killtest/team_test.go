package killtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/pgtest"
	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/journal"
)

const (
	teamSize  = 4
	teamLanes = 972 // with everything else 1,000 pieces of work
)

// team is processes over one database. One of them holds the run, and all of them do its
// leaves.
type team struct {
	*victim
	db     stores.Store // to look at the run
	live   []*process
	all    []*process
	killed map[int]bool
}

// newTeam starts a team, and returns when its run has begun.
func newTeam(v *victim) *team {
	v.Helper()
	v.env = append(v.env, fmt.Sprint(childLanes, "=", teamLanes), childSlow+"=50ms")
	return newTeamOf(v, teamSize)
}

// newTeamOf starts a team of some size.
func newTeamOf(v *victim, size int) *team {
	v.Helper()
	m := &team{victim: v, db: v.open(), killed: map[int]bool{}}
	v.Cleanup(func() {
		if err := m.db.Close(); err != nil {
			v.Error(err)
		}
		for _, p := range m.all {
			if v.Failed() {
				v.Logf("process %d ended with %v: %s", p.Process.Pid, p.Wait(), &p.errs)
			}
		}
	})
	m.add(starts)
	m.wait("the run has not begun", func() bool { return len(v.lines()) > 0 })
	for range size - 1 {
		m.add(takesOver)
	}
	return m
}

func (m *team) add(part string) {
	m.Helper()
	p := m.start("", childServes+"="+part+inTeam)
	m.Cleanup(func() { _ = p.Process.Kill() }) // most have ended
	m.live, m.all = append(m.live, p), append(m.all, p)
}

// wait waits for a condition, at most for a few minutes.
func (m *team) wait(what string, met func() bool) {
	m.Helper()
	for limit := time.Now().Add(3 * time.Minute); !met(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			m.Fatalf("after 3 minutes: %s", what)
		}
	}
}

// work lets the team make a number of calls, or work for a while.
func (m *team) work(calls int, most time.Duration) {
	m.Helper()
	limit, before := time.Now().Add(most), len(m.entries("lines"))
	for len(m.entries("lines")) < before+calls && time.Now().Before(limit) {
		time.Sleep(10 * time.Millisecond)
	}
}

func (m *team) done() bool {
	m.Helper()
	run, err := m.db.Find(m.Context(), runID)
	if err != nil || run.State == journal.Failed {
		m.Fatalf("the run is %s: %v", run.State, err)
	}
	return run.State == journal.Done
}

// kill kills a process, and starts another one in its place.
func (m *team) kill() {
	m.Helper()
	i := rand.N(len(m.live))
	p := m.live[i]
	_ = p.Process.Kill() // it may have ended
	m.live = append(m.live[:i:i], m.live[i+1:]...)
	if p.lost() || !m.end(p) {
		m.killed[p.Process.Pid] = true
	}
	m.add(takesOver)
}

// finish waits for the end of the run, and returns its trace.
func (m *team) finish() trace {
	m.Helper()
	m.wait("the run has not ended", m.done)
	for _, p := range m.live {
		_ = p.Process.Kill() // the last holder has ended
		_ = p.Wait()
	}
	return m.victim.finish()
}

// calls is what a ledger says about the calls of a run.
type calls struct{ made, repeated, inFlight int }

// audit reads the ledger: a call is repeated only if it was in flight, which means not
// acknowledged, in a process that was killed.
func (m *team) audit() (sum calls) {
	m.Helper()
	type call struct {
		pid  int
		path string
	}
	made, acked := map[call]int{}, map[call]bool{}
	for _, e := range m.entries("acks") {
		_, path, _ := strings.Cut(e.what, " ")
		acked[call{e.pid, path}] = true
	}
	for _, e := range m.entries("lines") {
		made[call{e.pid, e.what}]++
	}
	times, cut := map[string]int{}, map[string]int{}
	for c, n := range made {
		sum.made += n
		if times[c.path] += n; n > 1 {
			m.Errorf("process %d called %s %d times", c.pid, c.path, n)
		}
		if m.killed[c.pid] && !acked[c] {
			cut[c.path]++
			sum.inFlight++
		}
	}
	for path, n := range times {
		sum.repeated += n - 1
		if n-1 > cut[path] {
			m.Errorf("%s was called %d times, of which %d were in flight in processes that were killed", path, n, cut[path])
		}
	}
	return sum
}

func (c *calls) add(d calls) {
	c.made, c.repeated, c.inFlight = c.made+d.made, c.repeated+d.repeated, c.inFlight+d.inFlight
}

// Of processes that share runs of 1,000 calls, one after the other is killed: the holder, or
// one that does its leaves.
func TestKillTeam(t *testing.T)       { killTeam(t, func(v *victim) *victim { return v }) }
func TestKillTeamServer(t *testing.T) { killTeam(t, (*victim).overServer) }

func killTeam(t *testing.T, over func(*victim) *victim) {
	t.Helper()
	want, kills := undisturbedWith(t, teamLanes), share(t, 500)
	var sum calls
	runs := 0
	for done := 0; done < kills && !t.Failed(); runs++ {
		m := newTeam(over(newVictim(t)))
		for len(m.killed) < kills-done && !m.done() {
			m.kill()
			m.work(rand.N(100), rand.N(4*time.Second))
		}
		m.compare(m.finish(), want, len(m.killed))
		sum.add(m.audit())
		done += len(m.killed)
	}
	t.Logf("%d kills in %d runs: %d calls, %d in flight in a process that was killed, %d repeated", kills, runs, sum.made, sum.inFlight, sum.repeated)
}

// A server that crashes, for longer than a lease too, costs no call and no process its run.
func TestRestarts(t *testing.T) {
	want, restarts := undisturbedWith(t, teamLanes), share(t, 20)
	server := pgtest.New(t, "fsync=off", "full_page_writes=off") // the machine does not crash
	var sum calls
	runs := 0
	for done := 0; done < restarts && !t.Failed(); runs++ {
		v := newVictim(t)
		v.server = server.Database(t)
		v.env = append(v.env, childDB+"="+v.server)
		m := newTeam(v)
		for ; done < restarts && !m.done(); done++ {
			if err := server.Crash(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(2 * rivalLease))
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			m.work(rand.N(300), 3*time.Second)
		}
		m.compare(m.finish(), want, 0)
		sum.add(m.audit())
	}
	t.Logf("%d restarts in %d runs: %d calls, %d repeated", restarts, runs, sum.made, sum.repeated)
}
