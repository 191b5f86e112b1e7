package page_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/internal/page"
)

// Equal requests that arrive at once cancel a run once, but not another tenant's run with the same id.
func TestEqualRequestsAreOne(t *testing.T) {
	kept := memdb.New(t)
	p := stone.Ask("ask", dag.NewType[string]("topic"), dag.NewType[stone.Answer]("reply"), func(string) string { return "Well?" })
	cfg := stone.Config{RunID: "a", Recorder: journal.Keep(kept, journal.Options{}), Input: dag.Of(dag.NewType[string]("topic").With("marble"))}
	if _, err := stone.Run(context.Background(), p, cfg); err == nil {
		t.Fatal("the run does not wait")
	}
	synctest.Test(t, func(t *testing.T) {
		canceled := map[string]*atomic.Int32{"acme": {}, "globex": {}}
		goOn := make(chan struct{})
		pages := page.Handler(page.Config{View: func(r *http.Request) page.View {
			tenant := r.Header.Get("Tenant")
			return page.View{Journal: kept, Tenant: tenant, Cancel: func(context.Context, string) error {
				canceled[tenant].Add(1)
				<-goOn
				return nil
			}}
		}})
		for i := range 20 {
			go func() {
				r := httptest.NewRequest("POST", "/runs/a/cancel", nil)
				r.Header.Set("Tenant", []string{"acme", "globex"}[i%2])
				w := httptest.NewRecorder()
				pages.ServeHTTP(w, r)
				if w.Code != http.StatusSeeOther {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}()
		}
		synctest.Wait() // all have started
		for tenant, n := range canceled {
			if n.Load() != 1 {
				t.Errorf("the run of %s was canceled %d times", tenant, n.Load())
			}
		}
		close(goOn)
	})
}
