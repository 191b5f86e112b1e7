package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
)

// A sink is a client that reads everything and keeps nothing.
type sink struct {
	header http.Header
	status atomic.Int32
	bytes  atomic.Int64
}

func (s *sink) Header() http.Header    { return s.header }
func (s *sink) WriteHeader(status int) { s.status.Store(int32(status)) }
func (s *sink) Flush()                 {}

func (s *sink) Write(text []byte) (int, error) {
	s.status.CompareAndSwap(0, http.StatusOK)
	s.bytes.Add(int64(len(text)))
	return len(text), nil
}

// BenchmarkNeighbour reports how much slower runs of one tenant start while another one, with 60 runs
// of the largest labels, tries to watch 1,000 different lists. The goal is a ratio of at most 1.5.
func BenchmarkNeighbour(b *testing.B) {
	const largest, lists, starts = 60, 1000, 200
	db, err := sqlite.Open(filepath.Join(b.TempDir(), "stone.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() }) // after the server has stopped
	steps := servetest.NewSteps()
	s := serveAll(b, serve.Config{Journal: db, Scan: 5 * time.Second, Pipelines: []serve.Pipeline{{Name: "draft", Ashlar: steps.Write()}}})
	send := func(ctx context.Context, tenant, method, path, body string, w *sink) {
		req, err := http.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		s.As(serve.Principal{Name: tenant, Tenant: tenant}).ServeHTTP(w, req)
	}
	start := func(tenant, id, labels string) time.Duration {
		at := time.Now()
		w := &sink{header: http.Header{}}
		send(b.Context(), tenant, http.MethodPut, "/v1/runs/"+id, `{"pipeline":"draft","input":{"text":"x"},"labels":{`+labels+`}}`, w)
		if w.status.Load() != http.StatusCreated {
			b.Fatalf("start: %d", w.status.Load())
		}
		return time.Since(at)
	}
	next := 0
	median := func() float64 {
		var all []time.Duration
		for range starts {
			next++
			all = append(all, start("beta", fmt.Sprint("r", next), ""))
		}
		slices.Sort(all)
		return all[starts/2].Seconds() * 1000
	}
	var large []string
	for i := range 16 {
		large = append(large, fmt.Sprintf(`"%064d":"%s"`, i, strings.Repeat("x", 512)))
	}
	for i := range largest {
		start("acme", fmt.Sprint("large", i), strings.Join(large, ","))
	}
	for b.Loop() {
		before := median()
		ctx, cancel := context.WithCancel(b.Context())
		var watching sync.WaitGroup
		watchers := make([]sink, lists)
		for i := range watchers {
			watchers[i].header = http.Header{}
			watching.Go(func() { send(ctx, "acme", http.MethodGet, fmt.Sprint("/v1/runs?limit=", i+1), "", &watchers[i]) })
		}
		refused := 0
		for i := range watchers { // each watches or was refused before the first start is measured
			for watchers[i].status.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			if watchers[i].status.Load() == http.StatusTooManyRequests {
				refused++
			}
		}
		during := median()
		cancel()
		watching.Wait()
		after := median()
		b.ReportMetric(before, "before-ms")
		b.ReportMetric(during, "during-ms")
		b.ReportMetric(after, "after-ms")
		b.ReportMetric(during/((before+after)/2), "ratio")
		b.ReportMetric(float64(refused), "refused")
	}
}
