package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stonelayer/stone/serve/api"
)

// A list of questions that changes while it is read is read once more from its start.
func TestQuestionsAnew(t *testing.T) {
	for name, tt := range map[string]struct {
		changes int
		want    string
	}{"once": {1, "a b"}, "again": {2, "conflict"}} {
		var asked []string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			from := r.URL.Query().Get("from")
			asked = append(asked, from)
			w.Header().Set("Content-Type", "application/json")
			switch {
			case from == "":
				_, _ = io.WriteString(w, `{"questions":[{"run":"a"}],"next":"x"}`)
			case strings.Count(strings.Join(asked, ""), "x") <= tt.changes:
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, `{"type":"conflict","status":409,"detail":"the list has changed"}`)
			default:
				_, _ = io.WriteString(w, `{"questions":[{"run":"b"}]}`)
			}
		}))
		all, err := (&api.Client{URL: s.URL}).Questions(t.Context(), "")
		var runs []string
		for _, q := range all {
			runs = append(runs, q.Run)
		}
		if got := strings.Join(runs, " "); err == nil && got != tt.want || err != nil && (tt.want != "conflict" || len(asked) != 4) {
			t.Errorf("%s: %q, %v after %q", name, got, err, asked)
		}
		s.Close()
	}
}
