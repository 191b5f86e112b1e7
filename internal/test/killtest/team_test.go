//go:build unix

package killtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
)

const (
	teamSize  = 4
	teamLanes = 172 // with everything else 200 pieces of work
)

// team is processes over one database. One of them holds the run, and the others wait to take it over.
type team struct {
	*victim
	db   stores.Store // to look at the run
	live []*process
}

// newTeam starts a team, and returns when its run has started.
func newTeam(v *victim) *team {
	v.Helper()
	v.env = append(v.env, fmt.Sprint(childLanes, "=", teamLanes), childSlow+"=50ms")
	return newTeamOf(v, teamSize)
}

// newTeamOf starts a team of some size.
func newTeamOf(v *victim, size int) *team {
	v.Helper()
	m := &team{victim: v, db: v.open()}
	v.Cleanup(func() {
		if err := m.db.Close(); err != nil {
			v.Error(err)
		}
		for _, p := range v.procs {
			if v.Failed() {
				v.Logf("process %d ended with %v: %s", p.Process.Pid, p.Wait(), &p.errs)
			}
		}
	})
	m.add(starts)
	m.reach(m.live[0], 1)
	for range size - 1 {
		m.add(takesOver)
	}
	return m
}

func (m *team) add(part string) {
	m.Helper()
	m.live = append(m.live, m.start("", childServes+"="+part))
}

// work lets the team make a number of calls.
func (m *team) work(calls int) {
	m.Helper()
	before := len(m.entries("lines"))
	m.await("the team does nothing", func() bool { return len(m.entries("lines")) >= before+calls || m.done() })
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
	if _ = p.Wait(); p.spent() {
		return // before it was killed
	}
	m.live = append(m.live[:i:i], m.live[i+1:]...)
	if p.lost() || !m.end(p) {
		m.killed[p.Process.Pid] = true
	}
	m.add(takesOver)
}

// finish waits for the end of the run, and returns its trace.
func (m *team) finish() trace {
	m.Helper()
	m.await("the run has not ended", m.done)
	m.stop()
	return m.victim.finish()
}

// stop ends the processes that live. One that was slow and lost the run had ended before, with calls
// in flight.
func (m *team) stop() {
	for _, p := range m.live {
		_ = p.Process.Kill() // the last holder has ended
		if p.lost() {
			m.killed[p.Process.Pid] = true
		}
	}
}

// audit reads the ledger: a call is repeated only if it was in flight, which means not
// acknowledged, in a process that was killed.
func (v *victim) audit() {
	v.Helper()
	type call struct {
		pid  int
		path string
	}
	made, acked := map[call]int{}, map[call]bool{}
	for _, e := range v.entries("acks") {
		_, path, _ := strings.Cut(e.what, " ")
		acked[call{e.pid, path}] = true
	}
	for _, e := range v.entries("lines") {
		made[call{e.pid, e.what}]++
	}
	times, cut := map[string]int{}, map[string]int{}
	for c, n := range made {
		if times[c.path] += n; n > 1 {
			v.repeated++
			v.Errorf("process %d called %s %d times", c.pid, c.path, n)
		}
		if v.killed[c.pid] && !acked[c] {
			cut[c.path]++
		}
	}
	for path, n := range times {
		v.again += n - 1
		if n-1 > cut[path] {
			v.repeated++
			v.Errorf("%s was called %d times, of which %d were in flight in processes that were killed", path, n, cut[path])
		}
	}
}

// share is a round in which, of processes that share a database, one after the other is killed: the
// holder of the run, or one that waits to take it over.
func (v *victim) share(want trace) {
	v.Helper()
	m := newTeam(v)
	for len(m.killed) < 8 && !m.done() {
		m.kill()
		m.faults++
		m.work(rand.N(30))
	}
	m.compare(m.finish(), want, len(m.killed))
	m.audit()
}

// restart is a round in which the server of a team crashes, for longer than a lease too. That costs
// no call and no process its run.
func (v *victim) restart(want trace, server *pgtest.Server) {
	v.Helper()
	v.on(server.Database(v))
	m := newTeam(v)
	for m.faults < 3 && !m.done() {
		if err := server.Crash(); err != nil {
			m.Fatal(err)
		}
		time.Sleep(rand.N(2 * rivalLease))
		if err := server.Start(); err != nil {
			m.Fatal(err)
		}
		m.faults++
		m.work(rand.N(60))
	}
	m.compare(m.finish(), want, 0)
	m.audit()
}
