package servertest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/engine/temporal"
	"github.com/stonelayer/stone/internal/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/remote"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/step"
)

// role is set in processes that the tests start: "worker", "holder", "local" or "server".
const role = "STONE_TEMPORAL_ROLE"

// setting returns a number of the environment.
func setting(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

var (
	list   = dag.NewType[[]int]("list")
	entry  = dag.NewType[int]("entry")
	result = dag.NewType[int]("result")
	total  = dag.NewType[int]("total")
)

// killed is the pipeline of the test: n leaves that take some time and write their start and
// their end to the ledger, as a service does that is called.
func killed() stone.Ashlar {
	n, took := setting("STONE_LEAVES", 300), time.Duration(setting("STONE_LEAF_MS", 500))*time.Millisecond
	call := func(ctx context.Context, i int) (int, error) {
		visit := visits.Add(1)
		if err := ledger("start", i, visit); err != nil {
			return 0, err
		}
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return 0, errors.Join(context.Cause(ctx), ledger("stop", i, visit))
		}
		return i, ledger("end", i, visit)
	}
	small := func(_ context.Context, i int) (int, error) { return i, nil }
	if took == 0 {
		call = small
	}
	return stone.Seq("killed",
		stone.Func0("make", list, func(context.Context) ([]int, error) {
			out := make([]int, n)
			for i := range out {
				out[i] = i
			}
			return out, nil
		}),
		stone.Map("each", list, entry, stone.Func("call", entry, result, call), stone.Lanes(setting("STONE_LANES", 256))),
		stone.Reduce(stone.Func("sum", dag.All(result), total, func(_ context.Context, all []int) (int, error) {
			sum := 0
			for _, i := range all {
				sum += i
			}
			return sum, nil
		})))
}

var visits atomic.Int64 // of leaves in this process

func ledger(what string, i int, visit int64) error {
	f, err := os.OpenFile(os.Getenv("STONE_LEDGER"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %d %d %d %d\n", what, i, visit, os.Getpid(), time.Now().UnixMilli())
	return errors.Join(err, f.Close())
}

// play plays the role of a process.
func play(role string) error {
	if role == "server" {
		port, err := strconv.Atoi(os.Getenv("STONE_SERVER_PORT"))
		if err != nil {
			return err
		}
		return serve(os.Getenv("STONE_SERVER_DB"), port)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if name := os.Getenv("STONE_PROFILE"); name != "" {
		f, err := os.Create(fmt.Sprintf("%s.%s.%d", name, role, os.Getpid()))
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	c, err := client.NewLazyClient(client.Options{HostPort: os.Getenv("STONE_SERVER"), Namespace: os.Getenv("STONE_NAMESPACE"), Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	db, err := openStore(ctx, os.Getenv("STONE_STORE"))
	if err != nil {
		return err
	}
	defer db.Close()
	if role == "worker" {
		return temporal.Worker{Client: c, Journal: db, Pool: "killed", Pipelines: []stone.Ashlar{killed()}, Log: slog.New(slog.DiscardHandler)}.Run(ctx)
	}
	var executor step.Executor // of this process, for comparison
	if role == "holder" {
		executor = remote.New(remote.Config{Journal: db, Carrier: temporal.Carrier(c, temporal.Options{Heartbeat: 5 * time.Second}),
			Routes: []remote.Route{{Leaf: "call", Pool: "killed", Batch: setting("STONE_BATCH", 1)}}, Again: 10 * time.Second})
	}
	_, err = stone.Run(ctx, killed(), stone.Config{RunID: "killed", Recorder: journal.Keep(db, journal.Options{}), Executor: executor})
	if err == nil {
		status, _ := os.ReadFile("/proc/self/status") // for the log only
		for line := range strings.Lines(string(status)) {
			if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				fmt.Println("peak memory of the holder:", strings.TrimSpace(peak))
			}
		}
	}
	return err
}

type store interface {
	journal.Journal
	Close() error
}

// openStore opens a file, or a database of a server.
func openStore(ctx context.Context, name string) (store, error) {
	if strings.Contains(name, "://") {
		return postgres.Open(ctx, name, postgres.Options{Lease: 2 * time.Second})
	}
	return sqlite.Open(name, sqlite.Options{Lease: 2 * time.Second})
}

// process is a process of a test, which is killed at its end.
type process struct {
	*exec.Cmd
	out   strings.Builder
	ended chan struct{} // closed when err is set
	err   error
}

func launch(t *testing.T, as string, env []string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.Env = append(append(os.Environ(), env...), role+"="+as)
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

// Workers, holders and the server are killed at random moments. The run ends with the result of a run that
// nobody killed; only leaves that were running in a killed worker run again.
func TestKills(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testKills(t, filepath.Join(t.TempDir(), "stone.db")) })
	t.Run("postgres", func(t *testing.T) { testKills(t, pgtest.Database(t)) })
}

func testKills(t *testing.T, name string) {
	const workers = 4
	dir := t.TempDir()
	port := freePorts(t, 8)
	env := []string{
		fmt.Sprintf("STONE_SERVER=127.0.0.1:%d", port), "STONE_NAMESPACE=" + serverNamespace,
		"STONE_SERVER_PORT=" + strconv.Itoa(port), "STONE_SERVER_DB=" + filepath.Join(dir, "temporal.db"),
		"STONE_STORE=" + name, "STONE_LEDGER=" + filepath.Join(dir, "ledger"),
	}
	n, took := setting("STONE_LEAVES", 300), setting("STONE_LEAF_MS", 500)
	kills := map[string]int{"worker": setting("STONE_WORKER_KILLS", 3), "holder": setting("STONE_HOLDER_KILLS", 2), "server": setting("STONE_SERVER_KILLS", 1)}
	service := launchServer(t, env, port)
	began := time.Now()
	var mu sync.Mutex
	deaths := map[int]int64{} // pid → Unix milliseconds
	crew := make([]*process, workers)
	for i := range crew {
		crew[i] = launch(t, "worker", env)
	}
	holder := launch(t, "holder", env)
	random := rand.New(rand.NewPCG(1, uint64(began.UnixNano())))
	left := func() int { return kills["worker"] + kills["holder"] + kills["server"] }
	for all := left(); left() > 0; {
		// The kills are spread over the progress of the run, however fast the machine is.
		if at := (all-left())*n/(all+1) + 1 + random.IntN(max(n/(all+1), 1)); !reaches(filepath.Join(dir, "ledger"), at, holder) {
			t.Errorf("the run has ended before all kills: %v are left", kills)
			break
		}
		var victim **process
		as := "worker"
		switch n := random.IntN(left()); {
		case n < kills["worker"]:
			victim = &crew[random.IntN(workers)]
		case n < kills["worker"]+kills["holder"]:
			victim, as = &holder, "holder"
		default:
			victim, as = &service, "server"
		}
		kills[as]--
		_ = (*victim).Process.Kill()
		<-(*victim).ended
		mu.Lock()
		deaths[(*victim).Process.Pid] = time.Now().UnixMilli()
		mu.Unlock()
		if as == "server" {
			*victim = launchServer(t, env, port)
		} else {
			*victim = launch(t, as, env)
		}
	}
	select {
	case <-holder.ended:
		if holder.err != nil {
			t.Fatalf("the holder ended with %v", holder.err)
		}
	case <-time.After(10 * time.Minute):
		t.Fatal("the run has not ended")
	}
	t.Logf("%d leaves of %d ms in %v; %s", n, took, time.Since(began).Round(time.Millisecond), strings.TrimSpace(holder.out.String()))
	db, err := openStore(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d, err := db.DAG(t.Context(), "killed")
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := total.From(d); err != nil || sum != n*(n-1)/2 {
		t.Errorf("the sum is %d, %v", sum, err)
	}
	if took > 0 {
		audit(t, filepath.Join(dir, "ledger"), n, deaths)
	}
}

// reaches waits until so many leaves have ended. It returns false if the holder ends before.
func reaches(ledger string, ends int, holder *process) bool {
	for {
		raw, err := os.ReadFile(ledger)
		if err == nil && strings.Count(string(raw), "end ") >= ends {
			return true
		}
		select {
		case <-holder.ended:
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
// its end, unless its process was killed before the result can have been durable.
func audit(t *testing.T, name string, n int, deaths map[int]int64) {
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
