//go:build unix

package serve_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
)

// searched is a journal that counts the searches for a run.
type searched struct {
	journal.Journal
	n atomic.Int64
}

func (s *searched) Find(ctx context.Context, id string) (journal.RunInfo, error) {
	s.n.Add(1)
	return s.Journal.Find(ctx, id)
}

// A start looks once whether the run exists, and a request for a result once for the run. What this process then tells the journal is
// not read again.
func TestRunsAreReadOnce(t *testing.T) {
	j := &searched{Journal: memdb.New(t)}
	goOn := make(chan struct{}, 1)
	upper := func(ctx context.Context, q string) (string, error) {
		<-goOn
		return strings.ToUpper(q), nil
	}
	s := serveAll(t, serve.Config{Journal: j, Scan: time.Hour, Pipelines: []serve.Pipeline{{Name: "upper", Ashlar: stone.Func("upper", question, page, upper)}}})
	before := j.n.Load()
	request(t, "PUT", s.URL+"/v1/runs/r", `{"pipeline":"upper","input":"x"}`)
	if n := j.n.Load() - before; n != 1 {
		t.Errorf("a start reads the run %d times, want 1", n)
	}
	before = j.n.Load()
	time.AfterFunc(20*time.Millisecond, func() { goOn <- struct{}{} })
	request(t, "GET", s.URL+"/v1/runs/r/result?wait=10s", "")
	if n := j.n.Load() - before; n != 1 {
		t.Errorf("a request for a result and the end of the run read it %d times, want 1", n)
	}
}
