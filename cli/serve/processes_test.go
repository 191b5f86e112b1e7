package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/pgtest"
)

// ledgerVar names the file in which each step of the pipeline counted writes a line.
const ledgerVar = "STONE_TEST_LEDGER"

const countedSteps = 40

// counted is a pipeline of steps that take a while, and leave a trace outside the journal.
func counted(ledger string) stone.Ashlar {
	part := dag.NewType[int]("part")
	var steps []stone.Ashlar
	for i := range countedSteps {
		steps = append(steps, stone.Func0(fmt.Sprint("part-", i), part, func(context.Context) (int, error) {
			f, err := os.OpenFile(ledger, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return 0, err
			}
			defer f.Close()
			_, err = fmt.Fprintf(f, "%d %d\n", i, os.Getpid())
			time.Sleep(200 * time.Millisecond)
			return i, err
		}))
	}
	return stone.Seq("counted", steps...)
}

// process is a server of the deployment.
type process struct {
	*exec.Cmd
	url, token string
}

func startProcess(t *testing.T, database, ledger string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "serve", "--address", "127.0.0.1:0", "--db", database, "--tokens", filepath.Join(t.TempDir(), "tokens.json"), "--grace", "20s")
	cmd.Env = append(os.Environ(), commandVar+"=1", ledgerVar+"="+ledger)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p := &process{Cmd: cmd}
	lines := bufio.NewScanner(said)
	for p.url == "" && lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "http://"); ok {
			at, _, _ = strings.Cut(at, " ")
			at, p.token, _ = strings.Cut(at, "/?token=")
			p.url = "http://" + at
		}
	}
	if p.url == "" {
		t.Fatal("a server did not start")
	}
	go func() {
		for lines.Scan() {
			t.Log(cmd.Process.Pid, lines.Text())
		}
	}()
	return p
}

// worked returns how often each part was done, and by which process the last one.
func worked(t *testing.T, ledger string) (parts map[string]int, last int) {
	t.Helper()
	text, err := os.ReadFile(ledger)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	parts = map[string]int{}
	for line := range strings.Lines(string(text)) {
		var part string
		if n, _ := fmt.Sscan(line, &part, &last); n == 2 {
			parts[part]++
		}
	}
	return parts, last
}

// The processes of deploy/compose.yaml, without containers: three servers of one PostgreSQL. The one that
// runs a run is killed, the one that continues it is drained as at a rollout, and the third ends it. Only
// the step in flight at the kill is done twice.
func TestDeployment(t *testing.T) {
	need.Time(t)
	database, ledger := pgtest.Database(t), filepath.Join(t.TempDir(), "ledger")
	all := map[int]*process{}
	var first *process
	for range 3 {
		p := startProcess(t, database, ledger)
		all[p.Process.Pid] = p
		if first == nil {
			first = p
		}
	}
	if status, text := request(t, "PUT", first.url+"/v1/runs/r", `{"pipeline":"counted"}`, first.token); status != 201 {
		t.Fatalf("%d %s", status, text)
	}
	// holder returns the process that has done the last part, once that is none of the given and has done n parts more.
	holder := func(n int, not ...int) *process {
		t.Helper()
		before, _ := worked(t, ledger)
		for range 600 {
			time.Sleep(50 * time.Millisecond)
			parts, pid := worked(t, ledger)
			is := all[pid] != nil && len(parts) >= len(before)+n
			for _, other := range not {
				is = is && pid != other
			}
			if is {
				return all[pid]
			}
		}
		t.Fatal("no process continues the run")
		return nil
	}
	killed := holder(3)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed
	next := holder(3, killed.Process.Pid)
	if err := next.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := next.Wait(); err != nil {
		t.Errorf("a drained server ends with %v, want exit code 0", err)
	}
	drained, _ := worked(t, ledger)
	var third *process
	for pid, p := range all {
		if pid != killed.Process.Pid && pid != next.Process.Pid {
			third = p
		}
	}
	status, text := request(t, "GET", third.url+"/v1/runs/r/result?wait=50s", "", third.token)
	if status != 200 || !strings.Contains(text, `"state":"done"`) {
		t.Errorf("%d %s", status, text)
	}
	parts, last := worked(t, ledger)
	twice := 0
	for _, n := range parts {
		twice += n - 1
	}
	if len(parts) != countedSteps || twice > 1 || last != third.Process.Pid || len(drained) == countedSteps {
		t.Errorf("%d parts, %d of them again, %d after the drain, the last by %d; want %d, at most 1, some, %d", len(parts), twice, countedSteps-len(drained), last, countedSteps, third.Process.Pid)
	}
	if err := third.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := third.Wait(); err != nil {
		t.Errorf("the last server ends with %v", err)
	}
}
