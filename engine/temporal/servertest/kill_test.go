package servertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/engine/temporal"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
	"github.com/stonelayer/stone/journal/sqlite"
)

// role is set in processes that the tests start: "worker" or "holder".
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
	n, took := setting("STONE_LEAVES", 60), time.Duration(setting("STONE_LEAF_MS", 500))*time.Millisecond
	call := func(ctx context.Context, i int) (int, error) {
		if err := ledger("start", i); err != nil {
			return 0, err
		}
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		return i, ledger("end", i)
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

func ledger(what string, i int) error {
	f, err := os.OpenFile(os.Getenv("STONE_LEDGER"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %d %d %d\n", what, i, os.Getpid(), time.Now().UnixMilli())
	return errors.Join(err, f.Close())
}

// play plays the role of a process.
func play(role string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := client.NewLazyClient(client.Options{HostPort: os.Getenv("STONE_SERVER"), Namespace: os.Getenv("STONE_NAMESPACE"), Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	db, err := sqlite.Open(os.Getenv("STONE_DB_FILE"), sqlite.Options{Lease: 2 * time.Second})
	if err != nil {
		return err
	}
	defer db.Close()
	if role == "worker" {
		return temporal.Worker{Client: c, Journal: db, Pool: "killed", Pipelines: []stone.Ashlar{killed()}, Log: slog.New(slog.DiscardHandler)}.Run(ctx)
	}
	_, err = stone.Run(ctx, killed(), stone.Config{RunID: "killed", Recorder: journal.Keep(db, journal.Options{}),
		Executor: remote.New(remote.Config{Journal: db, Carrier: temporal.Carrier(c, temporal.Options{Heartbeat: 5 * time.Second}),
			Routes: []remote.Route{{Leaf: "call", Pool: "killed", Batch: setting("STONE_BATCH", 1)}}, Again: 10 * time.Second})})
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

// process is a process of a test, which is killed at its end.
type process struct {
	*exec.Cmd
	out   strings.Builder
	ended chan error
}

func launch(t *testing.T, as string, env []string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0]), ended: make(chan error, 1)}
	p.Env = append(append(os.Environ(), env...), role+"="+as)
	p.Stdout, p.Stderr = &p.out, os.Stderr
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.Wait() }()
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// Workers and holders are killed at random moments. The run ends with the result of a run that
// nobody killed; only leaves that were running in a killed worker run again.
func TestKills(t *testing.T) {
	const workers = 4
	dir := t.TempDir()
	env := []string{
		"STONE_SERVER=" + server().GetFrontendHostPort(), "STONE_NAMESPACE=" + server().GetDefaultNamespace(),
		"STONE_DB_FILE=" + filepath.Join(dir, "stone.db"), "STONE_LEDGER=" + filepath.Join(dir, "ledger"),
	}
	n, took := setting("STONE_LEAVES", 60), setting("STONE_LEAF_MS", 500)
	kills := map[string]int{"worker": setting("STONE_WORKER_KILLS", 3), "holder": setting("STONE_HOLDER_KILLS", 2)}
	began := time.Now()
	var mu sync.Mutex
	deaths := map[int]int64{} // pid → Unix milliseconds
	crew := make([]*process, workers)
	for i := range crew {
		crew[i] = launch(t, "worker", env)
	}
	holder := launch(t, "holder", env)
	estimate := time.Duration(n*took/64+3000) * time.Millisecond
	random := rand.New(rand.NewPCG(1, uint64(began.UnixNano())))
	every := estimate / time.Duration(kills["worker"]+kills["holder"]+1)
	for kills["worker"]+kills["holder"] > 0 {
		pause := time.NewTimer(every/2 + time.Duration(random.Int64N(int64(every)+1)))
		select {
		case err := <-holder.ended:
			pause.Stop()
			t.Logf("the run has ended before %v: %v", kills, err)
			holder.ended <- err
			clear(kills)
			continue
		case <-pause.C:
		}
		victim, as := &holder, "holder"
		if kills["holder"] == 0 || kills["worker"] > 0 && random.IntN(3) > 0 {
			victim, as = &crew[random.IntN(workers)], "worker"
		}
		kills[as]--
		_ = (*victim).Process.Kill()
		<-(*victim).ended
		mu.Lock()
		deaths[(*victim).Process.Pid] = time.Now().UnixMilli()
		mu.Unlock()
		*victim = launch(t, as, env)
	}
	select {
	case err := <-holder.ended:
		if err != nil {
			t.Fatalf("the holder ended with %v", err)
		}
	case <-time.After(10 * time.Minute):
		t.Fatal("the run has not ended")
	}
	t.Logf("%d leaves of %d ms in %v; %s", n, took, time.Since(began).Round(time.Millisecond), strings.TrimSpace(holder.out.String()))
	db, err := sqlite.Open(filepath.Join(dir, "stone.db"), sqlite.Options{})
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

// audit checks the ledger against the deaths of processes.
func audit(t *testing.T, name string, n int, deaths map[int]int64) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type visit struct {
		pid        int
		start, end int64
	}
	visits := map[int][]*visit{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var what string
		var i, pid int
		var at int64
		if _, err := fmt.Sscan(lines.Text(), &what, &i, &pid, &at); err != nil {
			t.Fatal(err)
		}
		if what == "start" {
			visits[i] = append(visits[i], &visit{pid: pid, start: at})
			continue
		}
		for _, v := range visits[i] {
			if v.pid == pid && v.end == 0 {
				v.end = at
			}
		}
	}
	started, repeats, lost, takeovers, longest, together := 0, 0, 0, 0, int64(0), 0
	for i := range n {
		if len(visits[i]) == 0 {
			t.Errorf("leaf %d was never called", i)
		}
		started += len(visits[i])
		for k, v := range visits[i] {
			if k == 0 {
				continue
			}
			repeats++
			before := visits[i][k-1]
			death := deaths[before.pid]
			switch {
			case death == 0:
				t.Errorf("leaf %d was called again though the worker lived: %+v after %+v", i, *v, *before)
			case before.end > 0 && death-before.end > 1000:
				t.Errorf("leaf %d was called again %d ms after its end", i, v.start-before.end)
			case before.end > 0: // its worker was killed before the result was durable
				lost++
			}
			if v.start < death {
				together++
			} else {
				takeovers, longest = takeovers+1, max(longest, v.start-death)
			}
		}
	}
	t.Logf("%d calls of %d leaves: %d repeats, of them %d had ended within the second before the kill, %d while another worker was alive; takeover at most %d ms", started, n, repeats, lost, together, longest)
	if together > 0 {
		t.Error("two workers had one leaf")
	}
}
