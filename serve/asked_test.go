package serve_test

import (
	"encoding/base64"
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

// A page of questions starts after a question of a run. The run may be gone.
func TestQuestionsFrom(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/waits", `{"pipeline":"page","input":{"text":"slate"}}`, 201, "")
	for after, want := range map[string]int{"waits\npage": 200, "gone\npage": 409, "waits": 400, "waits\n": 400, "waits\n\x00": 400, "waits\n\xff": 400} {
		if status, text := h.do("GET", "/v1/questions?from="+base64.RawURLEncoding.EncodeToString([]byte(after)), ""); status != want {
			t.Errorf("from %q: %d %s, want %d", after, status, text, want)
		}
	}
	for _, question := range []string{"%00", "%ff"} {
		if status, text := h.do("POST", "/runs/waits/answers", "question="+question+"&response=x", "Content-Type", "application/x-www-form-urlencoded", "Origin", h.URL); status != 400 {
			t.Errorf("the form with the question %s: %d %s", question, status, text)
		}
	}
}
