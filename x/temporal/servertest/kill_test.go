package servertest

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
)

// setting returns a number of the environment.
func setting(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

// crew builds the program of workers and starters, once for all tests.
var crew = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "stone-crew-")
	if err != nil {
		return "", err
	}
	crewDir = dir
	build := exec.Command("go", "build", "-o", dir, "./internal/crew")
	build.Dir = ".." // the module without a server
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return filepath.Join(dir, "crew"), nil
})

var crewDir string // directory of the program, once it is built

// process is a process of a test, which is killed at its end.
type process struct {
	*exec.Cmd
	out   strings.Builder
	ended chan struct{} // closed when err is set
	err   error
}

// launch starts a worker, a starter of runs or a server.
func launch(t *testing.T, as string, env []string) *process {
	t.Helper()
	program, err := os.Args[0], error(nil) // this test program links the server
	if as == "server" {
		env = append([]string{serving + "=1"}, env...)
	} else if program, err = crew(); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(program, as), ended: make(chan struct{})}
	p.Env = append(os.Environ(), env...)
	p.Stdout, p.Stderr = &p.out, os.Stderr
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(20 * time.Second):
			t.Errorf("%s does not end after SIGTERM", as)
			_ = p.Process.Kill()
			<-p.ended
		}
		t.Logf("%s %d: %v CPU", as, p.Process.Pid, p.ProcessState.UserTime()+p.ProcessState.SystemTime())
	})
	return p
}

// A run has its work done by children. Workers, among them the one that holds the run, and the server are killed at
// random moments, in STONE_ROUNDS rounds. The run ends with the result of one that nobody killed; only
// calls that were in flight in a killed worker are made again, and all calls are within the budget.
func TestKills(t *testing.T) {
	for n := range setting("STONE_ROUNDS", 1) {
		t.Run(fmt.Sprint("round ", n+1), func(t *testing.T) { testKills(t, pgtest.Database(t)) })
	}
}

func testKills(t *testing.T, name string) {
	const workers = 4
	dir := t.TempDir()
	port := freePorts(t, 8)
	n, took := setting("STONE_LEAVES", 300), setting("STONE_LEAF_MS", 300)
	usd := setting("STONE_BUDGET", 2*n)
	env := []string{
		fmt.Sprintf("STONE_SERVER=127.0.0.1:%d", port), "STONE_NAMESPACE=" + serverNamespace,
		"STONE_SERVER_PORT=" + strconv.Itoa(port), "STONE_SERVER_DB=" + filepath.Join(dir, "temporal.db"),
		"STONE_STORE=" + name, "STONE_LEDGER=" + filepath.Join(dir, "ledger"),
		fmt.Sprint("STONE_LEAF_MS=", took), fmt.Sprint("STONE_BUDGET=", usd),
	}
	kills := map[string]int{"worker": setting("STONE_WORKER_KILLS", 3), "holder": setting("STONE_HOLDER_KILLS", 2), "server": setting("STONE_SERVER_KILLS", 1)}
	service := launchServer(t, env, port)
	began := time.Now()
	deaths := map[int]int64{} // pid → Unix milliseconds
	crew := make([]*process, workers)
	for i := range crew {
		crew[i] = launch(t, "worker", env)
	}
	db, err := postgres.Open(t.Context(), name, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	starter := launch(t, "start", env)
	random := rand.New(rand.NewPCG(1, uint64(began.UnixNano())))
	left := func() int { return kills["worker"] + kills["holder"] + kills["server"] }
	for all := left(); left() > 0; {
		// The kills are spread over the progress of the run, however fast the machine is.
		if at := (all-left())*n/(all+1) + 1 + random.IntN(max(n/(all+1), 1)); !reaches(filepath.Join(dir, "ledger"), at, starter) {
			t.Errorf("the run has ended before all kills: %v are left", kills)
			break
		}
		victim, as := &crew[random.IntN(workers)], "worker"
		switch n := random.IntN(left()); {
		case n < kills["worker"]:
		case n < kills["worker"]+kills["holder"]:
			victim, as = holder(t, db, crew), "holder"
		default:
			victim, as = &service, "server"
		}
		kills[as]--
		_ = (*victim).Process.Kill()
		<-(*victim).ended
		deaths[(*victim).Process.Pid] = time.Now().UnixMilli()
		if as == "server" {
			*victim = launchServer(t, env, port)
		} else {
			*victim = launch(t, "worker", env)
		}
	}
	select {
	case <-starter.ended:
		if starter.err != nil || strings.TrimSpace(starter.out.String()) != strconv.Itoa(n*(n-1)/2) {
			t.Errorf("the total is %q, %v", starter.out.String(), starter.err)
		}
	case <-time.After(10 * time.Minute):
		t.Fatal("the run hangs")
	}
	t.Logf("%d items of %d ms in %v", n, took, time.Since(began).Round(time.Millisecond))
	if took > 0 {
		if made := audit(t, filepath.Join(dir, "ledger"), n, deaths); made > usd {
			t.Errorf("%d calls of a dollar with a budget of %d", made, usd)
		}
	}
	info, err := db.Find(t.Context(), "killed")
	if err != nil {
		t.Fatal(err)
	}
	children, err := journal.Children(t.Context(), db, "killed")
	if want := (n + setting("STONE_CHUNK", 25) - 1) / setting("STONE_CHUNK", 25); err != nil || len(children) != want {
		t.Errorf("%d children, %v, want %d", len(children), err, want)
	}
	for _, c := range children {
		if c.State != journal.Done {
			t.Errorf("child %s is %s", c.ID, c.State)
		}
		info.Usage.USD -= c.Usage.USD + c.Usage.Possible.USD
	}
	if math.Abs(info.Usage.USD) > 1e-6 || info.Usage.Possible.Attempts > 0 {
		t.Errorf("the run counts %v USD more than its children, and %+v", info.Usage.USD, info.Usage.Possible)
	}
}

// holder returns the process that holds the run, or else any.
func holder(t *testing.T, db journal.Journal, crew []*process) **process {
	info, err := db.Find(t.Context(), "killed")
	if err != nil {
		t.Fatal(err)
	}
	for i := range crew {
		if strings.Contains(info.Owner, fmt.Sprintf("/%d/", crew[i].Process.Pid)) {
			return &crew[i]
		}
	}
	return &crew[0]
}

// reaches waits until so many leaves have ended. It returns false if the starter ends before.
func reaches(ledger string, ends int, starter *process) bool {
	for {
		raw, err := os.ReadFile(ledger)
		if err == nil && strings.Count(string(raw), "end ") >= ends {
			return true
		}
		select {
		case <-starter.ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// visit is a call of a leaf.
type visit struct {
	leaf, number, pid int
	start             int64
	end               int64 // 0 if it did not end
	stop              int64 // when it was cancelled, or its process killed
}

// audit checks the ledger against the deaths of processes: a leaf must not be called again after
// its end, unless its process was killed before the result can have been durable. It returns the number of calls.
func audit(t *testing.T, name string, n int, deaths map[int]int64) (made int) {
	t.Helper()
	calls := map[int][]*visit{}
	count := 0
	for v := range read(t, name, deaths) {
		calls[v.leaf], count = append(calls[v.leaf], v), count+1
	}
	killed, overtaken, lost, together, slowest := 0, 0, 0, 0, int64(0)
	for i := range n {
		if len(calls[i]) == 0 {
			t.Errorf("leaf %d was never called", i)
		}
		for k := 1; k < len(calls[i]); k++ {
			before, v := calls[i][k-1], calls[i][k]
			death := deaths[before.pid]
			switch {
			case before.end > 0 && before.end < v.start && (death == 0 || death-before.end > 1000):
				t.Errorf("leaf %d was called again after its end: %+v, %+v", i, *before, *v)
			case before.end > 0 && before.end < v.start:
				lost++
			case death == 0:
				overtaken++
			default:
				killed, slowest = killed+1, max(slowest, v.start-death)
			}
			if v.start < max(before.end, before.stop) {
				together++
			}
		}
	}
	t.Logf("%d calls of %d leaves. Repeats: %d in flight in a killed worker, taken over after at most %d ms; %d whose result was not durable yet; "+
		"%d whose live worker missed its heartbeat. %d calls overlapped", count, n, killed, slowest, lost, overtaken, together)
	return count
}

// read yields the visits of a ledger in the order of their starts.
func read(t *testing.T, name string, deaths map[int]int64) iter.Seq[*visit] {
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []*visit
	open := map[[2]int]*visit{}
	for line := range strings.Lines(string(raw)) {
		var what string
		var v visit
		if _, err := fmt.Sscan(line, &what, &v.leaf, &v.number, &v.pid, &v.start); err != nil {
			t.Fatal(err)
		}
		at := [2]int{v.pid, v.number}
		switch what {
		case "start":
			v.stop = deaths[v.pid]
			open[at], all = &v, append(all, &v)
		case "end":
			open[at].end = v.start
		case "stop":
			open[at].stop = v.start
		}
	}
	return slices.Values(all)
}
