package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asService is set in the processes of the test that run the service.
const asService = "STONE_TEST_SERVICE"

func TestMain(m *testing.M) {
	if os.Getenv(asService) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a running service.
type process struct {
	*testing.T
	cmd   *exec.Cmd
	url   string
	mu    sync.Mutex
	lines []string // its log
	ended chan error
}

func start(t *testing.T, db string, pause time.Duration) *process {
	t.Helper()
	p := &process{T: t, cmd: exec.Command(os.Args[0], "-address", "127.0.0.1:0", "-db", db, "-pause", pause.String()), ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), asService+"=yes")
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // usually it has ended
	up := make(chan string, 1)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			p.mu.Unlock()
			if _, rest, ok := strings.Cut(s.Text(), "listening on "); ok {
				address, _, _ := strings.Cut(rest, ",")
				up <- "http://" + address
			}
		}
		p.ended <- p.cmd.Wait()
	}()
	select {
	case p.url = <-up:
	case err := <-p.ended:
		t.Fatalf("the service ended with %v: %s", err, p.log())
	}
	return p
}

// end signals the service and returns its log after it has ended.
func (p *process) end(signal syscall.Signal) (log string, err error) {
	p.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.Fatal(err)
	}
	err = <-p.ended
	return p.log(), err
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

func (p *process) post(path string, form url.Values) string {
	p.Helper()
	return p.body(http.PostForm(p.url+path, form))
}

func (p *process) body(r *http.Response, err error) string {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		p.Fatalf("%s: %s, %v", r.Status, text, err)
	}
	return strings.TrimSpace(string(text))
}

// await polls a run until it is in a state.
func (p *process) await(id, state string) {
	p.Helper()
	want := fmt.Sprintf("%q:%q", "state", state)
	for last := ""; ; time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.Context().Done():
			p.Fatalf("run %s is not %s: %s", id, state, last)
		default:
		}
		if last = p.body(http.Get(p.url + "/runs/" + id)); strings.Contains(last, want) {
			return
		}
	}
}

// The service is killed while one run waits for an answer and one writes; then it is
// stopped by SIGTERM. Nothing is written again that was recorded, nothing is lost.
func TestService(t *testing.T) {
	db := filepath.Join(t.TempDir(), "service.db")
	first := start(t, db, 0)
	waiting := first.post("/runs", url.Values{"text": {"marble"}})
	first.await(waiting, "waiting")
	if log, err := first.end(syscall.SIGTERM); err != nil {
		t.Fatalf("SIGTERM while nothing happens: %v\n%s", err, log)
	}

	slow := start(t, db, time.Minute)
	writing := slow.post("/runs", url.Values{"text": {"granite"}})
	slow.await(writing, "running")
	if log, err := slow.end(syscall.SIGKILL); err == nil || strings.Contains(log, "marble") {
		t.Fatalf("killed: %v\n%s", err, log)
	}

	third := start(t, db, 0) // which takes the run over
	third.await(writing, "waiting")
	third.post("/runs/"+waiting+"/answer", url.Values{"question": {"approve"}, "text": {"yes"}})
	third.await(waiting, "done")
	log, err := third.end(syscall.SIGTERM)
	if err != nil || strings.Contains(log, "writing marble") || strings.Count(log, "writing granite") != 1 || !strings.Contains(log, waiting+" yes: A draft: marble <nil>") {
		t.Errorf("after the kill: %v\n%s", err, log)
	}

	drained := start(t, db, time.Second)
	last := drained.post("/runs", url.Values{"text": {"slate"}})
	for !strings.Contains(drained.log(), "writing slate") {
		time.Sleep(time.Millisecond)
	}
	log, err = drained.end(syscall.SIGTERM)
	if err != nil || !strings.Contains(log, "stopped before its end") {
		t.Errorf("SIGTERM while a step runs: %v\n%s", err, log)
	}
	again := start(t, db, time.Minute) // the step was recorded: nothing is written
	again.await(last, "waiting")
	if log, err = again.end(syscall.SIGTERM); err != nil || strings.Contains(log, "writing") {
		t.Errorf("after the drain: %v\n%s", err, log)
	}
}
