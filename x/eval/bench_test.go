//go:build unix

package eval_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/step"
	"github.com/stonelayer/stone/x/eval"
)

// stepsPerCase counts the steps of a case of shout: draft, reply, answer and one score.
const stepsPerCase = 4

// BenchmarkCases reports the processor time per step. "fan-out" records as many steps of a plain
// Map. "floor" writes the same rows without an evaluation, which is the share of the journal.
func BenchmarkCases(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkCases(b, func(*testing.B) step.Recorder { return nil }) })
	b.Run("sqlite", func(b *testing.B) { benchmarkCases(b, keepSQLite) })
	b.Run("fan-out", benchmarkFanOut)
	b.Run("floor", benchmarkFloor)
}

func keepSQLite(b *testing.B) step.Recorder {
	return journal.Keep(openSQLite(b, filepath.Join(b.TempDir(), "stone.db")), journal.Options{})
}

func benchmarkFanOut(b *testing.B) {
	items := dag.ReaderFunc(func(dag.DAG) (all []question, err error) {
		for i := range b.N {
			all = append(all, question{Text: fmt.Sprint("question ", i)})
		}
		return all, nil
	})
	exact := dag.NewType[string]("exact")
	same := func(_ context.Context, s string) (string, error) { return s, nil }
	p := stone.Seq("plain",
		stone.Map("each", items, asked, stone.Seq("case", shout(new(atomic.Int32)),
			stone.Func("answer", reply, dag.NewType[string]("answer"), same), stone.Func("exact", reply, exact, same)),
			stone.AllLanes(), stone.Lanes(64)),
		stone.Reduce(stone.Func("count", dag.All(exact), dag.NewType[int]("count"), func(_ context.Context, all []string) (int, error) { return len(all), nil })))
	r := keepSQLite(b)
	b.ResetTimer()
	before := cputime.Used()
	if _, err := stone.Run(b.Context(), p, stone.Config{RunID: "r", Recorder: r}); err != nil {
		b.Fatal(err)
	}
	reportSteps(b, cputime.Used()-before)
}

func benchmarkCases(b *testing.B, recorder func(*testing.B) step.Recorder) {
	cfg, r := manyCases(b, b.N), recorder(b)
	b.ResetTimer()
	before := cputime.Used()
	if _, err := eval.Run(b.Context(), cfg, stone.Config{RunID: "r", Recorder: r}); err != nil {
		b.Fatal(err)
	}
	reportSteps(b, cputime.Used()-before)
}

func reportSteps(b *testing.B, used time.Duration) {
	b.ReportMetric(float64(used.Microseconds())/float64(b.N)/stepsPerCase, "cpu-µs/step")
	b.ReportMetric(0, "ns/op")
}

// written records the steps of an evaluation by group.
type written struct {
	mu     sync.Mutex
	groups map[string][]writtenStep
}

type writtenStep struct {
	key step.Key
	rec step.Record
}

func (w *written) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	rec, err := work(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	group, _, _ := strings.Cut(key.Path, "]")
	w.groups[group] = append(w.groups[group], writtenStep{key, rec})
	return rec, err
}

// benchmarkFloor writes the steps of an evaluation with one caller per lane.
func benchmarkFloor(b *testing.B) {
	w := &written{groups: map[string][]writtenStep{}}
	if _, err := eval.Run(b.Context(), manyCases(b, b.N), stone.Config{RunID: "r", Recorder: w}); err != nil {
		b.Fatal(err)
	}
	db := openSQLite(b, filepath.Join(b.TempDir(), "stone.db"))
	b.ResetTimer()
	before := cputime.Used()
	groups := make(chan []writtenStep)
	var lanes sync.WaitGroup
	for range 64 {
		lanes.Go(func() {
			for steps := range groups {
				for _, s := range steps {
					if _, err := db.Do(b.Context(), s.key, func(context.Context) (step.Record, error) { return s.rec, nil }); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	for _, steps := range w.groups {
		groups <- steps
	}
	close(groups)
	lanes.Wait()
	reportSteps(b, cputime.Used()-before)
}

func manyCases(tb testing.TB, n int) eval.Config {
	file := filepath.Join(tb.TempDir(), "cases.jsonl")
	var text bytes.Buffer
	for i := range n {
		fmt.Fprintf(&text, `{"text":"question %d","expected":"QUESTION %d"}`+"\n", i, i)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
	return eval.Config{Pipeline: shout(new(atomic.Int32)), Data: eval.Data{File: file}, Scorers: scorers(tb, "exact")}
}

func openSQLite(tb testing.TB, file string) *sqlite.DB {
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

// BenchmarkResume records an evaluation and reports the elapsed time, processor time and memory
// of another process that resumes it. The limits are 10 s and 300 MB for 200,000 cases
// (-benchtime=200000x). STONE_RESUME names a file in which the evaluation is recorded once and
// then kept.
func BenchmarkResume(b *testing.B) {
	file := os.Getenv("STONE_RESUME")
	if file == "" || b.N == 1 { // a benchmark runs once before it runs N times
		file = filepath.Join(b.TempDir(), "stone.db")
	}
	process := func() (time.Duration, *os.ProcessState) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestResumed$")
		cmd.Env = append(os.Environ(), "STONE_RESUMED="+file, fmt.Sprint("STONE_CASES=", b.N))
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return time.Since(start), cmd.ProcessState
	}
	if _, err := os.Stat(file); err != nil {
		process()
	}
	b.ResetTimer()
	elapsed, p := process()
	b.ReportMetric(elapsed.Seconds(), "s")
	b.ReportMetric((p.UserTime() + p.SystemTime()).Seconds(), "cpu-s")
	b.ReportMetric(float64(p.SysUsage().(*syscall.Rusage).Maxrss)/1e3, "MB")
	b.ReportMetric(0, "ns/op")
}

// TestResumed is the process of BenchmarkResume.
func TestResumed(t *testing.T) {
	file := os.Getenv("STONE_RESUMED")
	if file == "" {
		return // BenchmarkResume starts it
	}
	var n int
	if _, err := fmt.Sscan(os.Getenv("STONE_CASES"), &n); err != nil {
		t.Fatal(err)
	}
	if _, err := eval.Run(context.Background(), manyCases(t, n), stone.Config{RunID: "r", Recorder: journal.Keep(openSQLite(t, file), journal.Options{})}); err != nil {
		t.Fatal(err)
	}
}
