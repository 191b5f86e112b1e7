package serve_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/journal"
)

// A tenant whose runs ask too many questions starts no more runs. Others do.
func TestTenantThatAsksTooMuch(t *testing.T) {
	h := newHouse(t, tenants{})
	if _, err := h.journal.Acquire(t.Context(), "acme.old"); err != nil {
		t.Fatal(err)
	}
	if err := h.journal.Begin(t.Context(), journal.RunInfo{ID: "acme.old", Started: time.Now(), Labels: map[string]string{"tenant": "acme"}}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
	for i := range bounds.Asked {
		if _, err := h.journal.Ask(t.Context(), journal.Question{Run: "acme.old", Path: fmt.Sprint("q", i), Asked: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	for tenant, want := range map[string]int{"acme": http.StatusTooManyRequests, "globex": http.StatusCreated} {
		if status, text := h.do("PUT", "/v1/runs/new", `{"pipeline":"page","input":{"text":"slate"}}`, "X-Tenant", tenant); status != want {
			t.Errorf("a start of %q: %d %s, want %d", tenant, status, text, want)
		}
	}
}
