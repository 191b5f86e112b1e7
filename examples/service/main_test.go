package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
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
				up <- "http://" + rest
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

// client calls the service.
func (p *process) client() *api.Client { return &api.Client{URL: p.url} }

// write starts a run that writes about a text, whose id is the text.
func (p *process) write(text string) {
	p.Helper()
	if _, err := p.client().Start(p.Context(), text, api.Start{Pipeline: "page", Input: fmt.Appendf(nil, "%q", text)}); err != nil {
		p.Fatal(err)
	}
}

// await waits until a run has stopped.
func (p *process) await(id string, state journal.State) {
	p.Helper()
	if run, err := p.client().Result(p.Context(), id); err != nil || run.State != state {
		p.Fatalf("run %s is %s, %v: want %s", id, run.State, err, state)
	}
}

// writing waits until a run writes.
func (p *process) writing(text string) {
	for !strings.Contains(p.log(), "writing "+text) {
		time.Sleep(time.Millisecond)
	}
}

// The service is killed while one run waits for an answer and one writes; then it is
// stopped by SIGTERM. Nothing is written again that was recorded, nothing is lost.
func TestService(t *testing.T) {
	db := filepath.Join(t.TempDir(), "service.db")
	first := start(t, db, 0)
	first.write("marble")
	first.await("marble", journal.Waiting)
	if log, err := first.end(syscall.SIGTERM); err != nil {
		t.Fatalf("SIGTERM while nothing happens: %v\n%s", err, log)
	}

	slow := start(t, db, time.Minute)
	slow.write("granite")
	slow.writing("granite")
	if log, err := slow.end(syscall.SIGKILL); err == nil || strings.Contains(log, "writing marble") {
		t.Fatalf("killed: %v\n%s", err, log)
	}

	third := start(t, db, 0) // which takes the run over
	third.await("granite", journal.Waiting)
	if _, err := third.client().Answer(t.Context(), "marble", api.Answer{Question: "page/approve", Response: "yes"}); err != nil {
		t.Fatal(err)
	}
	third.await("marble", journal.Done)
	if run, err := third.client().Result(t.Context(), "marble"); err != nil || string(run.Result.Content) != `"yes: A draft: marble"` {
		t.Errorf("the page is %+v, %v", run.Result, err)
	}
	log, err := third.end(syscall.SIGTERM)
	if err != nil || strings.Contains(log, "writing marble") || strings.Count(log, "writing granite") != 1 {
		t.Errorf("after the kill: %v\n%s", err, log)
	}

	drained := start(t, db, time.Second)
	drained.write("slate")
	drained.writing("slate")
	if log, err = drained.end(syscall.SIGTERM); err != nil {
		t.Errorf("SIGTERM while a step runs: %v\n%s", err, log)
	}
	again := start(t, db, time.Minute) // the step was recorded: nothing is written
	again.await("slate", journal.Waiting)
	if log, err = again.end(syscall.SIGTERM); err != nil || strings.Contains(log, "writing") {
		t.Errorf("after the drain: %v\n%s", err, log)
	}
}
