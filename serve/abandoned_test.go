package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
)

// mourner is a journal that finds the runs of dead processes.
type mourner struct {
	*sqlite.DB
	dead chan journal.RunInfo
}

func (m mourner) Abandoned(ctx context.Context) iter.Seq2[journal.RunInfo, error] {
	return func(yield func(journal.RunInfo, error) bool) {
		for {
			select {
			case info := <-m.dead:
				if !yield(info, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// A server takes a run over as soon as the journal finds that its process died, and does not
// wait for the next search.
func TestAbandoned(t *testing.T) {
	j := mourner{memdb.New(t), make(chan journal.RunInfo)}
	work := stone.Func0("work", draft, func(context.Context) (string, error) { return "done", nil })
	serveAll(t, serve.Config{Journal: j, Scan: time.Hour, Pipelines: []serve.Pipeline{{Name: "work", Ashlar: work}}})
	ctx := t.Context()
	// A process that died has left a run behind.
	left := journal.RunInfo{ID: "a", Pipeline: "work", Source: json.RawMessage(`{"published":"work"}`), Fingerprint: work.Fingerprint(), Started: time.Now()}
	if _, err := j.Acquire(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Begin(ctx, left, dag.DAG{}), j.Release("a")); err != nil {
		t.Fatal(err)
	}
	j.dead <- left
	for {
		info, err := j.Find(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		if info.State == journal.Done {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
