package trace

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/event"
)

// writerEnv makes this program a process that writes a trace until it is killed.
const writerEnv = "STONE_TRACE_TEST_FILE"

// writeUntilKilled prints the numbers of the written events.
func writeUntilKilled(path string) {
	f, err := event.Append(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	w := event.NewWriter(f, slog.LevelDebug)
	for lane := range 4 {
		go func() {
			for n := 0; ; n++ {
				w.Watch(context.Background(), event.Event{Data: event.Custom{Name: "note", Attrs: []slog.Attr{slog.Int("lane", lane), slog.Int("n", n), slog.String("pad", strings.Repeat("x", n%5000))}}})
				fmt.Printf("%d %d\n", lane, n)
			}
		}()
	}
	time.Sleep(time.Minute)
}

// A process that is killed loses only the line that it was writing, and the next one
// continues in the same file.
func TestKilledWriterLosesAtMostTheLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	const kills = 5
	written := 0
	for i := range kills {
		written += killWriter(t, path, time.Duration(40+23*i)*time.Millisecond)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	events, bad := 0, 0
	for _, err := range event.Read(f) {
		if err != nil {
			bad++
		} else {
			events++
		}
	}
	if events < written || bad > kills || written < kills*4 {
		t.Errorf("%d events in the file of %d that were written, %d lines cut by %d kills", events, written, bad, kills)
	}
}

// killWriter starts a writer, kills it after a duration, and returns the number of events
// that it reported as written.
func killWriter(t *testing.T, path string, after time.Duration) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+path)
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var kill sync.Once
	n := 0
	for scan := bufio.NewScanner(said); scan.Scan(); {
		lane, number, _ := strings.Cut(scan.Text(), " ")
		if _, err := strconv.Atoi(number); err == nil && lane != "" {
			n++
		}
		kill.Do(func() { time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) })
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
	return n
}

// A reader that yields noise after one event of interest, until it is stopped.
type noise struct {
	head io.Reader
	n    int
	stop bool
}

func (r *noise) Read(b []byte) (int, error) {
	if n, err := r.head.Read(b); err == nil {
		return n, nil
	}
	if r.stop {
		return 0, io.EOF
	}
	const line = `{"event":"middleware-run","timestamp":1760000000000}` + "\n"
	n := 0
	for len(b)-n >= len(line) {
		n += copy(b[n:], line)
	}
	if r.n += n; r.n > 8<<20 {
		return 0, fmt.Errorf("%d bytes were read before the first line came out", r.n)
	}
	return n, nil
}

// The first line comes out long before a long file has been read.
func TestLifecycleStreams(t *testing.T) {
	in := &noise{head: strings.NewReader(`{"event":"run-start","timestamp":1760000000000}` + "\n")}
	out := &firstLine{in: in}
	printLifecycle(bufio.NewWriterSize(out, 1), in, func(err error) { t.Error(err) })
	if !out.written {
		t.Error("nothing came out")
	}
}

type firstLine struct {
	in      *noise
	written bool
}

func (f *firstLine) Write(b []byte) (int, error) {
	f.written, f.in.stop = true, true
	return len(b), nil
}
