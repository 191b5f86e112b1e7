//go:build unix

package killtest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
)

// previous is the commit of the version with the previous schema of the journal, which wrote testdata/0.1.0.
const previous = "e644464f7248a5ded6e13d4253d20a35cf39a0ae"

// previousBinary builds these tests as that version has them. Their processes keep the same ledger.
func previousBinary(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := exec.CommandContext(t.Context(), "git", "cat-file", "-e", previous+":go.mod").Run(); err != nil {
		t.Skipf("the clone has no commit %.12s: git fetch --unshallow", previous)
	}
	binary := filepath.Join(folder, "previous.test")
	build := exec.CommandContext(t.Context(), "sh", "-c", "git archive "+previous+` . | tar -x -C "$0" && cd "$0" && exec go test -c -o "$1" ./internal/test/killtest`, folder, binary)
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build of %.12s: %v\n%s", previous, err, out)
	}
	return binary
}

// Processes of the previous version hold a run and do its leaves when the first process of this version opens the database and
// migrates it. They work until they are killed. Later ones are refused, and say why. Processes that are started later send another prompt, and
// the last ones have other steps. No recorded step is lost or repeated.
// STONE_FAULTS is the percentage of 100 rounds over each kind of database; at least one is done.
func TestRollingUpgrade(t *testing.T) {
	need.Time(t)
	percent, err := strconv.Atoi(os.Getenv("STONE_FAULTS"))
	if err != nil {
		percent = 1
	}
	old := previousBinary(t)
	want := undisturbedWith(t, teamLanes)
	server := pgtest.New(t, "fsync=off", "full_page_writes=off")
	var mu sync.Mutex
	var sum tally
	t.Run("rounds", func(t *testing.T) {
		for n := range max(percent, 1) {
			for _, over := range []string{"SQLite", "Postgres"} {
				t.Run(fmt.Sprint(over, " ", n+1), func(t *testing.T) {
					t.Parallel()
					v := newVictim(t)
					if over == "Postgres" {
						v.on(server.Database(v))
					}
					v.upgrade(old, want)
					mu.Lock()
					defer mu.Unlock()
					v.done = 1
					sum.add(v.tally)
				})
			}
		}
	})
	t.Logf("%d rounds, %d kills, %d calls in flight made again, %d recorded steps repeated, %d steps lost, %d hung",
		sum.done, sum.faults, sum.again, sum.repeated, sum.gone, sum.hung)
}

// upgrade is a round in which a team of the previous version is replaced by one of this version, process by process.
func (v *victim) upgrade(old string, want trace) {
	v.Helper()
	v.env = append(v.env, fmt.Sprint(childLanes, "=", teamLanes), childSlow+"=50ms")
	v.program = old
	var live []*process
	for _, part := range []string{starts, takesOver, takesOver} {
		live = append(live, v.start("", childServes+"="+part+inTeam))
		v.reach(live[0], 1) // the database is there
	}
	v.reach(live[0], rand.N(60))
	v.program = ""
	if v.server != "" {
		refused := v.start("", childServes+"="+takesOver+inTeam)
		v.refused(refused, "has schema 3, this program needs ", ": run stone db migrate")
		if from, to, err := postgres.Migrate(v.Context(), v.server); err != nil || from != 3 || to <= from {
			v.Fatalf("migrated from schema %d to %d, %v", from, to, err)
		}
	}
	m := &team{victim: v, live: live}
	for m.db == nil { // a file is migrated now, when the others leave it alone for a moment
		db, err := openStore(v.folder, v.server)
		if err != nil && !errors.Is(err, journal.ErrUnavailable) {
			v.Fatal(err)
		}
		if err == nil {
			m.db = db
		}
	}
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
	m.add(takesOver) // beside those of the previous version
	v.program = old
	late := v.start("", childServes+"="+takesOver+inTeam)
	v.program = ""
	v.env = append(v.env, childText+"=You write other lines.") // the new version has another prompt, too
	for len(m.killed) < 6 && !m.done() {
		m.kill()
		m.faults++
		m.work(rand.N(25))
	}
	v.refused(late, "use", "newer")
	if text := late.errs.String(); !strings.Contains(text, ", this program knows 5") && !strings.Contains(text, ", this program knows 3") {
		v.Errorf("a late process of the previous version says %q", text)
	}
	m.compare(m.finish(), want, len(m.killed))
	m.audit()
	v.reshape()
}

// reshape starts the run with pipelines of other structures. Each is refused before anything is done, with the difference. By
// force only what is new is done.
func (v *victim) reshape() {
	v.Helper()
	before := v.lines()
	for shape, says := range map[string]string{
		"added": "all/last was added", "removed": "all/leaf-9 was removed", "renamed": "all/leaf-9 is now called all/leaf-nine", "moved": "order",
	} {
		v.refused(v.start("", childShape+"="+shape), "was started with another pipeline or input", says)
	}
	if now := v.lines(); !maps.Equal(before, now) {
		v.Errorf("a refused pipeline has done work: %v, then %v", before, now)
	}
	p := v.start("", childShape+"=added", childForce+"=yes")
	v.await("a process does not end", p.over)
	if err := p.Wait(); err != nil {
		v.Errorf("the longer pipeline, by force: %v: %s", err, &p.errs)
	}
	before["all/last"]++
	if now := v.lines(); !maps.Equal(before, now) {
		v.Errorf("the longer pipeline did %v, want only its last step after %v", now, before)
	}
}
