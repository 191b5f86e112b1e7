//go:build unix

package serve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/step"
)

// The tests run this binary again as a server. Its environment names the journal.
const servedJournal = "STONE_TEST_JOURNAL"

func TestMain(m *testing.M) {
	if at := os.Getenv(servedJournal); at != "" {
		if err := serveJournal(at); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// kept is a journal that can be closed.
type kept interface {
	journal.Journal
	Close() error
}

func openJournal(at string, lease time.Duration) (kept, error) {
	if strings.HasPrefix(at, "postgres:") {
		return postgres.Open(context.Background(), at, postgres.Options{Lease: lease})
	}
	return sqlite.Open(at, sqlite.Options{Lease: lease})
}

// serveJournal serves a journal until SIGTERM. It prints its address first, and its memory
// when it gets SIGUSR1.
func serveJournal(at string) error {
	lease, _ := time.ParseDuration(os.Getenv(servedLease)) // zero, the usual one, without it
	j, err := openJournal(at, lease)
	if err != nil {
		return err
	}
	s, err := serve.New(serve.Config{Journal: newMortal(j), Pipelines: []serve.Pipeline{{Name: "logged", Ashlar: logged()}}})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	memory := make(chan os.Signal, 1)
	signal.Notify(memory, syscall.SIGUSR1)
	fmt.Println(l.Addr())
	go func() {
		for range memory {
			debug.FreeOSMemory()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			fmt.Println(m.HeapAlloc, m.StackInuse)
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	s.Run(ctx)
	over, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(over), j.Close())
}

// served is a server in a process of its own.
type served struct {
	cmd *exec.Cmd
	out *bufio.Reader
	url string
}

func startServer(t *testing.T, at string, env ...string) *served {
	t.Helper()
	s := &served{cmd: exec.Command(os.Args[0])}
	s.cmd.Env = append(append(os.Environ(), servedJournal+"="+at), env...)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	line, err := s.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + strings.TrimSpace(line)
	t.Cleanup(s.stop)
	return s
}

// stop ends the server; it may be called twice.
func (s *served) stop() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
	}
}

// memory returns the bytes of the heap with the stacks, and the whole process's bytes.
func (s *served) memory(t *testing.T) (heap, resident int) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	var stacks int
	if _, err := fmt.Fscanln(s.out, &heap, &stacks); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))
	if err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			resident, err = strconv.Atoi(fields[1])
		}
	}
	if err != nil {
		t.Log(err) // there is no such file on this system
	}
	return heap + stacks, resident * os.Getpagesize()
}

// recording records steps of the run "a" in this process, which takes it.
type recording struct {
	*testing.T
	journal kept
	mu      sync.Mutex
	ended   map[string]time.Time // by path, when the commit was known
}

func (r *recording) step(i int) {
	path := fmt.Sprintf("all/each[%d]/work", i)
	key := step.Key{RunID: "a", Path: path, Kind: "leaf", Name: "work", Digest: dag.ID{byte(i), byte(i >> 8), 1}}
	_, err := r.journal.Do(context.WithoutCancel(r.Context()), key, func(context.Context) (step.Record, error) {
		return step.Record{Content: []byte(`1`)}, nil
	})
	at := time.Now()
	if err != nil {
		r.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[path] = at
}

func newRecording(t *testing.T, at string) *recording {
	t.Helper()
	j, err := openJournal(at, 0)
	if err == nil {
		_, err = j.Acquire(t.Context(), "a")
	}
	if err == nil {
		err = j.Begin(t.Context(), journal.RunInfo{ID: "a", Started: time.Now()}, dag.DAG{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return &recording{T: t, journal: j, ended: map[string]time.Time{}}
}

func (r *recording) end() {
	if err := errors.Join(r.journal.End(context.Background(), "a", journal.Outcome{State: journal.Done, Ended: time.Now()}), r.journal.Release("a")); err != nil {
		r.Error(err)
	}
}

// journals returns the address of an empty journal in each store.
func journals(t *testing.T, run func(t *testing.T, at string)) {
	t.Run("sqlite", func(t *testing.T) { run(t, filepath.Join(t.TempDir(), "stone.db")) })
	t.Run("postgres", func(t *testing.T) { run(t, pgtest.Database(t)) })
}

// A client of a server gets the events of a run in another process. STONE_DELAYS is the
// number of steps; the delays between commit and event are logged.
func TestOtherProcess(t *testing.T) {
	steps := 20
	if n, err := strconv.Atoi(os.Getenv("STONE_DELAYS")); err == nil {
		steps = n
	}
	journals(t, func(t *testing.T, at string) {
		r := newRecording(t, at)
		s := startServer(t, at)
		resp, err := http.Get(s.url + "/v1/runs/a/events")
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		defer resp.Body.Close()
		seen := map[string]time.Time{}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if _, rest, ok := strings.Cut(lines.Text(), `"path":"`); ok && strings.Contains(rest, `"ended":true`) {
					path, _, _ := strings.Cut(rest, `"`)
					seen[path] = time.Now()
				}
			}
		}()
		for i := range steps {
			r.step(i)
			time.Sleep(time.Duration(20+i*37%60) * time.Millisecond)
		}
		r.end()
		<-ended
		var delays []time.Duration
		for path, at := range r.ended {
			if seen[path].IsZero() {
				t.Errorf("the event of %s is lost", path)
			}
			delays = append(delays, max(seen[path].Sub(at), 0))
		}
		slices.Sort(delays)
		t.Logf("from commit to event: median %v, p95 %v, most %v", delays[len(delays)/2], delays[len(delays)*95/100], delays[len(delays)-1])
	})
}

// The streams of many clients over a server in a process of its own, which restarts twice,
// lose nothing and repeat nothing. STONE_CROWD is the number of clients; the memory of the
// server for each is logged.
func TestCrowdProcess(t *testing.T) {
	clients, cuts, steps := 40, 6, 60
	if n, err := strconv.Atoi(os.Getenv("STONE_CROWD")); err == nil {
		clients, cuts, steps = n, 20, 300
	}
	at := filepath.Join(t.TempDir(), "stone.db")
	r := newRecording(t, at)
	s := startServer(t, at)
	c := &crowd{T: t}
	c.url.Store(&s.url)
	heap, resident := s.memory(t)
	got := make([][]string, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { got[i] = c.client(i, cuts) })
	}
	done := 0
	record := func(n int) {
		for range n {
			r.step(done)
			time.Sleep(time.Duration(1+clients/40) * time.Millisecond)
			done++
		}
	}
	for range 2 {
		record(steps / 3)
		h, rss := s.memory(t)
		t.Logf("the server has %d KB of heap and stacks and %d KB in all for each client", (h-heap)/1024/clients, (rss-resident)/1024/clients)
		s.stop()
		s = startServer(t, at)
		c.url.Store(&s.url)
	}
	record(steps - done)
	r.end()
	all.Wait()
	var want []string
	for row, err := range r.journal.Follow(t.Context(), "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, strconv.FormatInt(row.Seq, 10))
	}
	for i, ids := range got {
		steps := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return strings.Contains(id, "-") })
		if !slices.Equal(steps, want) {
			t.Fatalf("client %d has %v\nwant %v", i, steps, want)
		}
	}
	t.Logf("%d streams of %d clients, %d events each", c.opened.Load(), clients, len(want))
}
