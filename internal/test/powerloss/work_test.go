package powerloss_test

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3/vfs"
	driver "modernc.org/sqlite"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/powerloss"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/step"
)

// The folder of a database selects its disk, and how SQLite syncs it: "/17/FULL". All other settings equal journal/sqlite's,
// except that checkpoints are so frequent that a small file covers many.
func init() {
	driver.Source = func(file string, query url.Values) {
		disk, level := path.Split(path.Dir(file))
		query.Set("vfs", disk)
		query.Add("_pragma", "wal_autocheckpoint(40)")
		if level != "FULL" { // which is not said, so that journal/sqlite has to
			query.Add("_pragma", fmt.Sprintf("synchronous(%s)", level))
		}
	}
}

var disks atomic.Int64

// mount returns the name of a database on the disk.
func mount(d *powerloss.Disk, level string) (file string, unmount func()) {
	name := fmt.Sprintf("/%d/", disks.Add(1))
	vfs.Register(name, d)
	return name + level + "/stone.db", func() { vfs.Unregister(name) }
}

// The notes of a test: the work of a step has started, its result was acknowledged, a run
// started or continued, its end was acknowledged.
type (
	began struct{ run, step string }
	acked struct {
		run, step string
		node      dag.ID // zero if the step made none
	}
	resumed struct{ run string } // or is about to be
	ended   struct{ run string }
)

// witness is a journal that takes notes.
type witness struct {
	*sqlite.DB
	note   func(any)
	queued *queued
}

// queued has the results that are not acknowledged yet.
type queued struct {
	mu      sync.Mutex
	results []acked
}

// settled notes the results that are durable now.
func (w witness) settled(run string) {
	w.queued.mu.Lock()
	defer w.queued.mu.Unlock()
	if w.Settled(run) != nil {
		return
	}
	for _, a := range w.queued.results {
		w.note(a)
	}
	w.queued.results = nil
}

func (w witness) Begin(ctx context.Context, info journal.RunInfo, input dag.DAG) error {
	w.note(resumed{info.ID})
	return w.DB.Begin(ctx, info, input)
}

func (w witness) End(ctx context.Context, run string, o journal.Outcome) error {
	err := w.DB.End(ctx, run, o)
	if err == nil {
		w.settled(run)
		w.note(ended{run})
	}
	return err
}

func (w witness) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	does := key.Kind + " " + key.Path
	rec, err := w.DB.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
		w.settled(key.RunID)
		w.note(began{key.RunID, does})
		return work(ctx)
	})
	if err == nil && !rec.Replayed {
		a := acked{run: key.RunID, step: does}
		if rec.Node != nil {
			a.node = rec.Node.ID()
		}
		w.queued.mu.Lock()
		w.queued.results = append(w.queued.results, a)
		w.queued.mu.Unlock()
		w.settled(key.RunID)
	}
	return rec, err
}

var runs = []string{"first", "second", "third"}

// work does all runs, each with the file opened and closed, and returns the ids of
// their nodes.
func work(file string, note func(any)) (map[string]string, error) {
	ids := map[string]string{}
	for _, run := range runs {
		db, err := sqlite.Open(file, sqlite.Options{Lease: 20 * time.Millisecond})
		if err != nil {
			return nil, err
		}
		result, err := stone.Run(context.Background(), pipeline(), stone.Config{RunID: run, Now: stopped, Recorder: journal.Keep(witness{db, note, new(queued)}, journal.Options{})})
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
		if err := db.Close(); err != nil {
			return nil, err
		}
		var all strings.Builder
		for n := range result.DAG.Nodes() {
			fmt.Fprintln(&all, n.ID())
		}
		ids[run] = all.String()
	}
	return ids, nil
}

func stopped() time.Time { return time.Unix(1_800_000_000, 0) }

var (
	plan   = dag.NewType[[]int]("plan")
	item   = dag.NewType[int]("item")
	draft  = dag.NewType[string]("draft")
	round  = dag.NewType[int]("round")
	joined = dag.NewType[string]("joined")
)

// pipeline has steps inside of a leaf, a loop and a fan-out. Its texts have very
// different lengths, since SQLite spreads long ones over separate pages.
func pipeline() stone.Ashlar {
	first := stone.New("first", plan, func(ctx context.Context, _ dag.DAG) ([]int, error) {
		var items []int
		for i := range 30 {
			text, err := stone.Step(ctx, fmt.Sprint("call-", i), nil, func(context.Context, any) (string, error) { return words(i), nil })
			if err != nil {
				return nil, err
			}
			items = append(items, len(text))
		}
		return items, nil
	})
	again := stone.New("again", round, func(_ context.Context, d dag.DAG) (int, error) {
		before, err := dag.All(round).From(d)
		return len(before), err
	}, stone.Queries(dag.Maybe(dag.All(round))))
	lane := stone.Func("lane", item, draft, func(_ context.Context, n int) (string, error) { return words(n % 11), nil })
	join := stone.Func("join", dag.All(draft), joined, func(_ context.Context, all []string) (string, error) {
		return strings.Join(all, ", "), nil
	})
	return stone.Seq("all", first,
		stone.Loop("loop", again, stone.Until(round, func(n int) bool { return n == 3 }), 9),
		stone.Map("fan", plan, item, lane, stone.Lanes(4)),
		stone.Reduce(join),
	)
}

func words(n int) string { return strings.Repeat("lorem ipsum ", 1<<n%12) }

// recorded is a disk on which all runs have finished.
func recorded(t *testing.T, d *powerloss.Disk, level string) map[string]string {
	t.Helper()
	file, unmount := mount(d, level)
	defer unmount()
	ids, err := work(file, d.Note)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
