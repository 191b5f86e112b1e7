package batch

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/owed"
)

// After a lost reply the batch of a run is found by its answers: batches of other runs may be as large and as young.
func TestFindAnthropic(t *testing.T) {
	const ended = `{"id":"ID","processing_status":"ended","created_at":"2026-03-01T10:00:00Z","request_counts":{"succeeded":2}}`
	of := func(key string) string {
		return `{"custom_id":"` + key + `","result":{"type":"succeeded","message":{}}}` + "\n"
	}
	pages := map[string]string{
		"/v1/messages/batches?limit=100":      `{"data":[` + strings.ReplaceAll(ended, "ID", "theirs") + `],"has_more":true,"last_id":"theirs"}`,
		"/v1/messages/batches/theirs/results": of("x") + of("y"),
		"/v1/messages/batches/ours/results":   of("a") + of("b"),
	}
	next := roundTrip(func(r *http.Request) (*http.Response, error) {
		body, ok := pages[r.URL.RequestURI()]
		if !ok {
			t.Errorf("%s is asked for", r.URL.RequestURI())
		}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})
	to := endpoint{provider: anthropic{}, url: "https://api.anthropic.com/v1/messages", header: http.Header{}, next: next}
	lost := &made{Batch: owed.Batch{Keys: []string{"a", "b"}, Noted: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}}
	for name, c := range map[string]struct {
		second string
		id     string
		sure   bool
	}{
		"it is on the second page":  {strings.ReplaceAll(ended, "ID", "ours"), "ours", true},
		"none":                      {"", "", true},
		"one that has not ended":    {strings.NewReplacer("ID", "working", "ended", "in_progress").Replace(ended), "", false},
		"one that was there before": {strings.NewReplacer("ID", "ours", "03-01", "02-01").Replace(ended), "", true},
		"one with other numbers":    {strings.NewReplacer("ID", "ours", `"succeeded":2`, `"succeeded":3`).Replace(ended), "", true},
		"one that is known":         {strings.ReplaceAll(ended, "ID", "known"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			pages["/v1/messages/batches?limit=100&after_id=theirs"] = `{"data":[` + c.second + `],"has_more":false}`
			id, sure, err := anthropic{}.find(t.Context(), to, lost, map[string]bool{"known": true})
			if id != c.id || sure != c.sure || err != nil {
				t.Errorf("it is %q, sure %t, %v; want %q, %t", id, sure, err, c.id, c.sure)
			}
		})
	}
}
