package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

const callers = 32

var kilobyte = strings.Repeat("lorem ipsum ", 85)

// benchKey is the key of the i-th step; digests are spread as real ones are.
func benchKey(i int) step.Key {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(i))
	return step.Key{RunID: "bench", Path: fmt.Sprintf("review/lane[%d]/draft", i), Kind: "leaf", Name: "draft", Digest: sha256.Sum256(number[:])}
}

// BenchmarkStep and BenchmarkRawRow are to be compared: 32 concurrent callers, each
// operation with a content of 1 KB, in shared commits. A raw row has a UNIQUE id, as a
// step has.
func BenchmarkStep(b *testing.B) {
	for _, before := range []int{0, 100_000} {
		b.Run(fmt.Sprint("after ", before), func(b *testing.B) {
			db := open(b, filepath.Join(b.TempDir(), "stone.db"), Options{})
			steps(b, db, 0, before)
			measure(b, func() { steps(b, db, before, b.N) })
			size(b, db.file.name, before+b.N)
		})
	}
}

func steps(b *testing.B, db *DB, from, n int) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if _, err := db.Do(context.Background(), benchKey(from+i), benchWork); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func benchWork(context.Context) (step.Record, error) {
	now := time.Unix(1_800_000_000, 123_456_789)
	n, err := dag.NewNode(dag.Spec{Type: "draft", Content: kilobyte, Time: now})
	if err != nil {
		return step.Record{}, err
	}
	return step.Record{Node: n, Type: n.Type(), Content: n.Content(), Time: n.Time()}, nil
}

func BenchmarkRawRow(b *testing.B) {
	for _, before := range []int{0, 100_000} {
		b.Run(fmt.Sprint("after ", before), func(b *testing.B) {
			raw := filepath.Join(b.TempDir(), "raw.db")
			db, err := sql.Open("sqlite", (&file{path: raw, retry: time.Second}).source())
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(walMode + "; CREATE TABLE raw (seq INTEGER PRIMARY KEY, id BLOB UNIQUE, path TEXT, content BLOB)"); err != nil {
				b.Fatal(err)
			}
			rawRows(b, db, 0, before)
			measure(b, func() { rawRows(b, db, before, b.N) })
			size(b, raw, before+b.N)
		})
	}
}

// rawRows has 32 callers, each of which waits until its row is on the disk.
func rawRows(b *testing.B, db *sql.DB, from, n int) {
	type row struct {
		key  step.Key
		rec  step.Record
		done chan struct{}
	}
	queue := make(chan row, callers)
	var next atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				rec, err := benchWork(context.Background())
				if err != nil {
					b.Error(err)
				}
				r := row{benchKey(from + i), rec, make(chan struct{})}
				queue <- r
				<-r.done
			}
		})
	}
	go func() {
		group.Wait()
		close(queue)
	}()
	for first := range queue {
		runtime.Gosched()
		rows := []row{first}
		for len(queue) > 0 {
			rows = append(rows, <-queue)
		}
		tx, err := db.Begin()
		if err != nil {
			b.Fatal(err)
		}
		insert, err := tx.Prepare("INSERT INTO raw (id, path, content) VALUES (?, ?, ?)")
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			if _, err := insert.Exec(r.key.Digest[:], r.key.Path, []byte(r.rec.Content)); err != nil {
				b.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			close(r.done)
		}
	}
}

func measure(b *testing.B, f func()) {
	b.ResetTimer()
	used := cputime.Used()
	f()
	used = cputime.Used() - used
	b.StopTimer()
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
}

func size(b *testing.B, file string, n int) {
	execute(b, file, "PRAGMA wal_checkpoint(TRUNCATE)")
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/float64(n)-float64(len(kilobyte)), "file-B/op")
}

// BenchmarkResume resumes a run of 100,000 recorded steps that then does a new one.
func BenchmarkResume(b *testing.B) {
	const n = 100_000
	for _, c := range []struct{ name, value string }{{"small", "x"}, {"1 KB", kilobyte}} {
		b.Run(c.name, func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "stone.db")
			for i := -1; i == -1 || b.Loop(); i++ {
				begin, used := time.Now(), cputime.Used()
				db := open(b, file, Options{})
				body := func(ctx context.Context, _ dag.DAG) (string, error) { return manySteps(ctx, n, i, c.value) }
				_, err := stone.Run(b.Context(), stone.New("many", draft, body), stone.Config{RunID: "r", Recorder: db})
				if !errors.Is(err, kind.Waiting) {
					b.Fatal(err)
				}
				if i >= 0 {
					b.ReportMetric(time.Since(begin).Seconds(), "s-to-new-step")
					b.ReportMetric((cputime.Used() - used).Seconds(), "cpu-s-to-new-step")
				}
				db.Close()
			}
		})
	}
}

// manySteps does n steps in 32 goroutines, and then a new one. It returns an error, so
// that it is not recorded itself.
func manySteps(ctx context.Context, n, extra int, value string) (string, error) {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, callers+1)
	step := func(name string) error {
		_, err := stone.Step(ctx, name, nil, func(context.Context, any) (string, error) { return value, nil })
		return err
	}
	for c := range callers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[c] == nil; i = int(next.Add(1)) - 1 {
				errs[c] = step("step-" + strconv.Itoa(i))
			}
		})
	}
	group.Wait()
	errs[callers] = step("extra-" + strconv.Itoa(extra))
	return "", errors.Join(append(errs, kind.Waiting)...)
}

// BenchmarkRead measures the CPU time for reading a run of 50,000 records.
func BenchmarkRead(b *testing.B) {
	const n = 25_000
	db := open(b, filepath.Join(b.TempDir(), "stone.db"), Options{})
	steps(b, db, 0, n)
	for _, c := range []struct {
		name string
		read func() error
	}{
		{"steps", func() error {
			found, err := db.Steps(b.Context(), "bench")
			if err == nil && len(found) != n {
				err = fmt.Errorf("%d steps", len(found))
			}
			return err
		}},
		{"follow", func() error {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			rows := 0
			for _, err := range db.Follow(ctx, "bench", 0) {
				if rows++; err != nil || rows == 2*n {
					return err
				}
			}
			return errors.New("too few rows")
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			measure(b, func() {
				for range b.N {
					if err := c.read(); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkResumable looks for unfinished runs among 100,000 finished ones, as a server
// does when it starts and every few seconds.
func BenchmarkResumable(b *testing.B) {
	file := filepath.Join(b.TempDir(), "stone.db")
	db := open(b, file, Options{})
	ctx := b.Context()
	for _, id := range []string{"r", "open"} {
		_, err := db.Acquire(ctx, id)
		if err = errors.Join(err, db.Begin(ctx, journal.RunInfo{ID: id, Pipeline: "p"}, dag.DAG{})); err == nil && id == "r" {
			err = db.End(ctx, id, journal.Outcome{State: journal.Done})
		}
		if err = errors.Join(err, db.Release(id)); err != nil {
			b.Fatal(err)
		}
	}
	execute(b, file, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
		INSERT INTO runs (id, owner, beat, lease, rows, state, seal, info, outcome, shape)
		SELECT 'r' || i, owner, beat, lease, rows, state, seal, info, outcome, shape FROM runs, n WHERE id = 'r'`)
	measure(b, func() {
		for range b.N {
			if found, err := journal.Resumable(ctx, db); err != nil || len(found) != 1 {
				b.Fatalf("%d runs, %v; want 1", len(found), err)
			}
		}
	})
}
