//go:build unix

package killtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/pgtest"
)

// victim is a run whose processes are killed.
type victim struct {
	*testing.T
	folder  string
	program string         // that processes run, these tests if empty
	server  string         // address of its database, "" for a file
	env     []string       // of every process
	kills   int            // and other ends of its processes before the run ended
	known   map[string]int // recorded steps, and how often they were worked by then
	gives   []string       // what a process may say that gives up
	procs   []*process
	killed  map[int]bool // those that were killed, or gave up, by their ids
	tally
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{T: t, folder: memdir.New(t), known: map[string]int{}, killed: map[int]bool{}}
	if err := os.Mkdir(filepath.Dir(v.database()), 0o755); err != nil {
		t.Fatal(err)
	}
	return v
}

// overServer puts the run into a database of a server.
func (v *victim) overServer() *victim {
	return v.on(pgtest.Database(v))
}

// on puts the run into the database with an address.
func (v *victim) on(address string) *victim {
	v.server = address
	v.env = append(v.env, childDB+"="+address)
	return v
}

// open opens the database of the run.
func (v *victim) open() stores.Store {
	v.Helper()
	db, err := openStore(v.folder, v.server)
	if err != nil {
		v.Fatal(err)
	}
	return db
}

func (v *victim) database() string { return filepath.Join(v.folder, "db", "stone.db") }

// process is a child, its output and its errors.
type process struct {
	*exec.Cmd
	out, errs bytes.Buffer
	ended     chan struct{}
	err       error // valid after ended
}

// Wait waits for the end of the process. It may be called several times.
func (p *process) Wait() error {
	<-p.ended
	return p.err
}

func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// lost reports whether a process ended since another one had its run, as one that was slow
// for longer than a lease, or since a newer version had migrated the database before it opened it.
func (p *process) lost() bool {
	_ = p.Wait() // the code says how it ended
	return p.ProcessState.ExitCode() == 1 && (strings.Contains(p.errs.String(), "is held by") || strings.Contains(p.errs.String(), "this program knows"))
}

// spent reports whether a process ended since the budget of its run was used.
func (p *process) spent() bool {
	return p.ProcessState.ExitCode() == 1 && strings.Contains(p.errs.String(), budget.Kind)
}

func (v *victim) start(point string, env ...string) *process {
	v.Helper()
	p := &process{Cmd: exec.Command(cmp.Or(v.program, os.Args[0])), ended: make(chan struct{})}
	// The race detector would wait for a second at the end of each process.
	p.Env = append(slices.Concat(os.Environ(), v.env, env), "GORACE=atexit_sleep_ms=0", childFolder+"="+v.folder, childPoint+"="+point)
	p.Stdout, p.Stderr = &p.out, &p.errs
	if _, err := p.StdinPipe(); err != nil { // it closes when this process ends, also by its time limit
		v.Fatal(err)
	}
	if err := p.Start(); err != nil {
		v.Fatal(err)
	}
	v.done = 1 // a round without a process has shown nothing
	go func() {
		p.err = p.Cmd.Wait()
		close(p.ended)
	}()
	v.Cleanup(func() { _ = p.Process.Kill() }) // most have ended
	v.procs = append(v.procs, p)
	return p
}

// still is how long the ledger may stay as it is before a run counts as hung.
const still = 2 * time.Minute

// await waits for a condition as long as the run makes progress, which the ledger shows.
func (v *victim) await(what string, met func() bool) {
	v.Helper()
	size := func() (sum int64) {
		for _, name := range []string{"lines", "acks", "answers"} {
			if info, err := os.Stat(filepath.Join(v.folder, name)); err == nil {
				sum += info.Size()
			}
		}
		return sum
	}
	before, since := size(), time.Now()
	for ; !met(); time.Sleep(3 * time.Millisecond) {
		if now := size(); now != before {
			before, since = now, time.Now()
		}
		if time.Since(since) < still {
			continue
		}
		v.hung++
		for _, p := range v.procs {
			if !p.over() {
				_ = p.Process.Signal(syscall.SIGQUIT) // for its goroutines
				_ = p.Wait()
				v.Logf("process %d stood still: %s", p.Process.Pid, &p.errs)
			}
		}
		v.Fatalf("no progress for %v: %s", still, what)
	}
}

// end waits for a process and reports whether it ended before it was killed. Anything
// else is an error.
func (v *victim) end(p *process) bool {
	v.Helper()
	v.await("a process does not end", p.over)
	err := p.Wait()
	if err == nil {
		return true
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		v.Fatalf("the process ended with %v: %s", err, p.errs.String())
	}
	v.kills++
	return false
}

// refused waits for a process that must end with an error of one line that contains these
// parts.
func (v *victim) refused(p *process, parts ...string) {
	v.Helper()
	v.await("a process does not end", p.over)
	err := p.Wait()
	text := strings.TrimSpace(p.errs.String())
	if p.ProcessState.ExitCode() != 1 || strings.Contains(text, "panic") {
		v.Fatalf("the process ended with %v: %s", err, text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			v.Errorf("the process ended with %q, want %q in it", text, part)
		}
	}
}

// lines counts how often each piece of work was done.
func (v *victim) lines() map[string]int { return v.count("lines") }

// count counts the entries in a file of the ledger.
func (v *victim) count(file string) map[string]int {
	v.Helper()
	lines := map[string]int{}
	for _, e := range v.entries(file) {
		lines[e.what]++
	}
	return lines
}

// entry is a line in a file of the ledger.
type entry struct {
	pid  int
	at   int64 // nanoseconds
	what string
}

func (v *victim) entries(file string) (all []entry) {
	v.Helper()
	text, err := os.ReadFile(filepath.Join(v.folder, file))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		v.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		parts := append(strings.SplitN(strings.TrimSpace(line), " ", 3), "", "")
		pid, wrong := strconv.Atoi(parts[0])
		at, err := strconv.ParseInt(parts[1], 10, 64)
		if err := errors.Join(wrong, err); err != nil {
			v.Fatalf("line %q of %s: %v", line, file, err)
		}
		all = append(all, entry{pid, at, parts[2]})
	}
	return all
}

// check compares the database with the lines: every acknowledged result is recorded, no
// recorded step was repeated, and no work was done without an intent.
func (v *victim) check(want trace) {
	v.Helper()
	db := v.open()
	defer db.Close()
	steps, err := db.Steps(v.Context(), runID)
	if err != nil {
		v.Fatal(err)
	}
	lines := v.lines()
	for path, n := range v.known {
		if lines[path] != n {
			v.repeated++
			v.Errorf("%s was worked %d times, recorded after %d", path, lines[path], n)
		}
	}
	before, acks := map[string]int{}, v.count("acks")
	for _, s := range steps {
		before[s.Path] += s.Attempts // a leaf and a decision may share a path
		if s.Recorded {
			delete(acks, s.Kind+" "+s.Path)
			v.known[s.Path] = lines[s.Path]
			if want.lines[s.Path] > lines[s.Path] {
				v.Errorf("%s is recorded and was not worked", s.Path)
			}
		}
	}
	for step := range acks {
		v.gone++
		v.Errorf("%s was acknowledged and is not recorded", step)
	}
	for path, n := range lines {
		if n > before[path] {
			v.Errorf("%s was worked %d times, the journal knows of %d", path, n, before[path])
		}
	}
}

// trace is the result of a run: its lines and its nodes.
type trace struct {
	ids   string // of the nodes of its result
	nodes []string
	steps []string
	lines map[string]int
	rows  int // starts and ends of steps in the journal
	took  time.Duration
}

// finish resumes the run to its end, and returns its trace.
func (v *victim) finish() trace {
	v.Helper()
	for {
		begin := time.Now()
		p := v.start("")
		v.await("the run does not end", p.over)
		if p.lost() { // the lease of a process that was killed has not run out
			continue
		}
		if !v.end(p) {
			v.Fatal("the process was killed by somebody else")
		}
		return v.trace(p, time.Since(begin))
	}
}

func (v *victim) trace(p *process, took time.Duration) trace {
	v.Helper()
	t := trace{ids: p.out.String(), lines: v.lines(), took: took}
	db := v.open()
	defer db.Close()
	d, err := db.DAG(v.Context(), runID)
	if err != nil {
		v.Fatal(err)
	}
	for n := range d.Nodes() {
		t.nodes = append(t.nodes, n.ID().String())
	}
	steps, err := db.Steps(v.Context(), runID)
	if err != nil {
		v.Fatal(err)
	}
	for _, s := range steps {
		if !s.Recorded {
			v.Errorf("%s has no result at the end", s.Path)
		}
		t.steps = append(t.steps, s.Kind+" "+s.Path)
	}
	for _, s := range steps {
		t.rows += s.Attempts + s.Failures + 1
	}
	slices.Sort(t.nodes)
	slices.Sort(t.steps)
	return t
}

// compare compares a trace with an undisturbed run's. Each of the repeats allows each line once more.
func (v *victim) compare(got, want trace, repeats int) {
	v.Helper()
	if got.ids != want.ids {
		v.Errorf("after %d kills the result has the nodes\n%swant\n%s", v.kills, got.ids, want.ids)
	}
	if !slices.Equal(got.nodes, want.nodes) {
		v.Errorf("after %d kills the journal has the nodes\n%q\nwant\n%q", v.kills, got.nodes, want.nodes)
	}
	if !slices.Equal(got.steps, want.steps) {
		v.Errorf("after %d kills the journal has the steps\n%q\nwant\n%q", v.kills, got.steps, want.steps)
	}
	for path := range want.lines {
		if got.lines[path] == 0 {
			v.gone++
			v.Errorf("%s has no line", path)
		}
	}
	for path, n := range got.lines {
		if n > 1+repeats || want.lines[path] == 0 {
			v.Errorf("%s has %d lines after %d kills", path, n, v.kills)
		}
	}
}

// undisturbed is the trace of a run that is not killed.
func undisturbed(t *testing.T) trace {
	t.Helper()
	return undisturbedWith(t, 50)
}

func undisturbedWith(t *testing.T, lanes int) trace {
	t.Helper()
	v := newVictim(t)
	v.env = []string{fmt.Sprint(childLanes, "=", lanes)}
	want := v.finish()
	// 10 leaves, 4 rounds, the lanes, what joins them, 5 turns, 8 tool calls.
	if len(want.lines) != 28+lanes {
		t.Fatalf("the run has %d pieces of work, want %d: %v", len(want.lines), 28+lanes, want.lines)
	}
	return want
}
