// Package year creates journals with many runs, and reads them in the same way as lists, filters, searches and servers do, for
// benchmarks.
package year

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/journal"
)

// Sizes returns the numbers of runs for which a benchmark is run. STONE_RUNS sets the largest number.
func Sizes() []int {
	if n, err := strconv.Atoi(os.Getenv("STONE_RUNS")); err == nil {
		return []int{10_000, n}
	}
	return []int{10_000, 100_000}
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns the time when the i-th of n runs started. The runs are spread over a year.
func at(i, n int) time.Time {
	return start.Add(time.Duration(float64(i) / float64(n) * float64(365*24*time.Hour)))
}

// Fill adds the n runs of a year. Of 10,000 runs, 400 have failed, 90 were canceled, and one is waiting for a person. There are 50
// pipelines, 1,000 tenants and 100 accounts. One run of the year has a label, a failure and a cost that no other run has.
func Fill(ctx context.Context, j journal.Journal, n int) error {
	var group sync.WaitGroup
	const workers = 64
	errs := make([]error, workers)
	for w := range workers {
		group.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = run(ctx, j, i, n)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func run(ctx context.Context, j journal.Journal, i, n int) error {
	info := journal.RunInfo{
		ID: fmt.Sprintf("%08x-%d", uint32(i)*2654435761, i), Pipeline: fmt.Sprint("pipeline-", i%50), Started: at(i, n),
		Labels: map[string]string{"tenant": fmt.Sprint("t", i%1000)}, Account: fmt.Sprint("account-", i%100),
	}
	out := journal.Outcome{State: journal.Done, Ended: info.Started.Add(time.Minute), Steps: 20, Usage: budget.Total{Usage: budget.Usage{USD: float64(i%997) / 1e5, InputTokens: 1000}}}
	failure := fmt.Sprintf("server %d answers status 500", i%20)
	switch k := i % 10_000; {
	case i == n/3:
		info.Labels["once"], failure, out.Usage.USD = "yes", "the only one: xylophone", 1000
		fallthrough
	case k < 400:
		out.State, out.Failure = journal.Failed, &journal.Failure{Kind: "runtime/unavailable", Path: "seq/ask", Reason: failure}
	case k < 490:
		out.State = journal.Canceled
	case k == 490:
		out.State = journal.Waiting
	}
	_, err := j.Acquire(ctx, info.ID)
	if err = errors.Join(err, j.Begin(ctx, info, dag.DAG{})); err != nil {
		return err
	}
	if out.State == journal.Waiting {
		if _, err := j.Ask(ctx, journal.Question{Run: info.ID, Path: "seq/approve", Name: "approve", Text: "Ship it?", Asked: info.Started}); err != nil {
			return err
		}
	}
	return errors.Join(j.End(ctx, info.ID, out), j.Release(info.ID))
}

// Reads returns the queries to measure, by name. Each query returns the number of runs that it has found.
func Reads(n int) map[string]func(context.Context, journal.Journal) (int, error) {
	list := func(q journal.Query) func(context.Context, journal.Journal) (int, error) {
		q.Limit = 50
		return func(ctx context.Context, j journal.Journal) (int, error) {
			runs, err := j.Runs(ctx, q)
			return len(runs), err
		}
	}
	id := func(i int) string { return fmt.Sprintf("%08x-%d", uint32(i)*2654435761, i) }
	failed := []journal.State{journal.Failed}
	return map[string]func(context.Context, journal.Journal) (int, error){
		"newest":                list(journal.Query{}),
		"deep":                  list(journal.Query{Before: id(n / 2)}),
		"failed":                list(journal.Query{States: failed}),
		"pipeline":              list(journal.Query{Pipeline: "pipeline-7"}),
		"pipeline failed":       list(journal.Query{Pipeline: "pipeline-7", States: failed}),
		"pipeline never failed": list(journal.Query{Pipeline: "pipeline-48", States: []journal.State{journal.Refused}}),
		"tenant":                list(journal.Query{Labels: map[string]string{"tenant": "t7"}}),
		"tenant failed":         list(journal.Query{Labels: map[string]string{"tenant": "t7"}, States: failed}),
		"tenant pipeline":       list(journal.Query{Labels: map[string]string{"tenant": "t7"}, Pipeline: "pipeline-7"}),
		"label once":            list(journal.Query{Labels: map[string]string{"once": "yes"}}),
		"day":                   list(journal.Query{Since: at(n/2, n), Until: at(n/2, n).Add(24 * time.Hour)}),
		"last day failed":       list(journal.Query{Since: at(n, n).Add(-24 * time.Hour), States: failed}),
		"ended last hour":       list(journal.Query{Ended: at(n, n).Add(-time.Hour)}),
		"failure common":        list(journal.Query{Text: "status 500"}),
		"failure once":          list(journal.Query{Text: "xylophone"}),
		"failure never":         list(journal.Query{Text: "no such failure"}),
		"cost once":             list(journal.Query{MinCost: 999}),
		"waiting":               list(journal.Query{States: []journal.State{journal.Waiting}}),
		"resumable": func(ctx context.Context, j journal.Journal) (int, error) {
			runs, err := journal.Resumable(ctx, j)
			return len(runs), err
		},
		"open questions": func(ctx context.Context, j journal.Journal) (int, error) {
			open := 0
			for _, err := range j.EachQuestion(ctx, journal.QuestionQuery{Open: true}) {
				if open++; err != nil {
					return open, err
				}
			}
			return open, nil
		},
		"find": func(ctx context.Context, j journal.Journal) (int, error) {
			_, err := j.Find(ctx, id(n / 2)[:9])
			return 1, err
		},
		"spent": func(ctx context.Context, j journal.Journal) (int, error) {
			_, err := j.Balance(ctx, budget.Shared{Name: "account-7", Per: budget.Day, Payer: true}, start.AddDate(0, 6, 0))
			return 1, err
		},
	}
}

// Bench measures the CPU time that this process needs for the Reads of a journal with n runs.
func Bench(b *testing.B, j journal.Journal, n int) {
	for name, read := range Reads(n) {
		b.Run(name, func(b *testing.B) {
			found := 0
			used := cputime.Used()
			for range b.N {
				var err error
				if found, err = read(b.Context(), j); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cputime.Used()-used).Microseconds())/float64(b.N), "cpu-µs/op")
			b.ReportMetric(float64(found), "found")
		})
	}
}
