package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// The benchmarks are the same as in journal/sqlite. Their server writes to the disk at each commit.

const callers = 32

var kilobyte = strings.Repeat("lorem ipsum ", 85)

// inGoroutines calls do with the numbers from 0 to n-1 in 32 goroutines.
func inGoroutines(n int, do func(i int) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, callers)
	for c := range callers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[c] == nil; i = int(next.Add(1)) - 1 {
				errs[c] = do(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// BenchmarkStep has 32 concurrent callers, each of whose steps has a content of 1 KB.
func BenchmarkStep(b *testing.B) {
	server := pgtest.New(b)
	var commits atomic.Int64
	reached.Call(func(point string) {
		if point == "after commit" {
			commits.Add(1)
		}
	})
	b.Cleanup(func() { reached.Call(nil) })
	db := open(b, server.Database(b), Options{})
	b.ResetTimer()
	used, served := cputime.Used(), server.CPU()
	err := inGoroutines(b.N, func(i int) error {
		var number [8]byte
		binary.BigEndian.PutUint64(number[:], uint64(i))
		key := step.Key{RunID: "bench", Path: fmt.Sprintf("review/lane[%d]/draft", i), Kind: "leaf", Name: "draft", Digest: sha256.Sum256(number[:])}
		_, err := db.Do(context.Background(), key, func(context.Context) (step.Record, error) {
			n, err := dag.NewNode(dag.Spec{Type: "draft", Content: kilobyte, Time: time.Unix(1_800_000_000, 123_456_789)})
			if err != nil {
				return step.Record{}, err
			}
			return step.Record{Node: n, Type: n.Type(), Content: n.Content(), Time: n.Time()}, nil
		})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
	b.ReportMetric(float64((cputime.Used()-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64((server.CPU()-served).Nanoseconds())/float64(b.N), "server-cpu-ns/op")
	b.ReportMetric(float64(b.N)/float64(commits.Load()), "op/commit")
}

// BenchmarkResume resumes a run of 100,000 recorded steps that then does a new one.
func BenchmarkResume(b *testing.B) {
	const n = 100_000
	for _, c := range []struct{ name, value string }{{"small", "x"}, {"1 KB", kilobyte}} {
		b.Run(c.name, func(b *testing.B) {
			address := pgtest.New(b).Database(b)
			draft := dag.NewType[string]("draft")
			for i := -1; i == -1 || b.Loop(); i++ {
				started := time.Now()
				db := open(b, address, Options{})
				body := func(ctx context.Context, _ dag.DAG) (string, error) {
					do := func(name string) error {
						_, err := stone.Step(ctx, name, nil, func(context.Context, any) (string, error) { return c.value, nil })
						return err
					}
					err := inGoroutines(n, func(i int) error { return do("step-" + strconv.Itoa(i)) })
					return "", errors.Join(err, do("extra-"+strconv.Itoa(i)), kind.Waiting)
				}
				_, err := stone.Run(b.Context(), stone.New("many", draft, body), stone.Config{RunID: "r", Recorder: db})
				if !errors.Is(err, kind.Waiting) {
					b.Fatal(err)
				}
				if i >= 0 {
					b.ReportMetric(time.Since(started).Seconds(), "s-to-new-step")
				}
				db.Close()
			}
		})
	}
}

// BenchmarkRuns lists the newest of 100,000 runs, and the failed ones, of which there is
// one in a thousand.
func BenchmarkRuns(b *testing.B) {
	address := pgtest.New(b).Database(b)
	db := open(b, address, Options{Lease: time.Minute})
	const n = 100_000
	err := inGoroutines(n, func(i int) error {
		info, o := journal.RunInfo{ID: fmt.Sprint("run-", i), Pipeline: fmt.Sprint("p", i%7), Started: time.Unix(1_800_000_000, 0)}, journal.Outcome{State: journal.Done}
		if i%1000 == 0 {
			o = journal.Outcome{State: journal.Failed, Failure: &journal.Failure{Kind: "broken", Reason: "it broke"}}
		}
		ctx := context.Background()
		_, err := db.Acquire(ctx, info.ID)
		return errors.Join(err, db.Begin(ctx, info, dag.DAG{}), db.End(ctx, info.ID, o), db.Release(info.ID))
	})
	if err != nil {
		b.Fatal(err)
	}
	pgtest.Exec(b, address, "VACUUM ANALYZE")
	for name, q := range map[string]journal.Query{
		"newest":   {Limit: 21},
		"oldest":   {Limit: 21, Before: "run-100"},
		"failed":   {Limit: 21, States: []journal.State{journal.Failed}},
		"running":  {Limit: 21, States: []journal.State{journal.Running}},
		"pipeline": {Limit: 21, Pipeline: "p3"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := db.Runs(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
