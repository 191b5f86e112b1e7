package serve_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
)

// A mount gets requests of callers that were let in, and acts as them.
func TestMount(t *testing.T) {
	s, err := serve.New(serve.Config{Journal: memdb.New(t), Access: tenants{}, Mounts: map[string]serve.Mount{
		"GET /other": func(s *serve.Server) (serve.Handler, error) {
			return func(w http.ResponseWriter, r *http.Request, who serve.Principal) {
				inner := httptest.NewRequestWithContext(r.Context(), r.URL.Query().Get("method"), "/v1/runs/a", nil)
				s.As(who).ServeHTTP(w, inner)
			}, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tenant, host, method string
		want                 int
	}{
		{"", "localhost", "GET", 401}, {"acme", "evil.example", "GET", 421}, {"acme", "localhost", "GET", 404},
		{"reader", "localhost", "GET", 404}, {"reader", "localhost", "DELETE", 403}, {"reader", "localhost", "PATCH", 405},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/other?method="+tt.method, nil)
		r.Host = tt.host
		r.Header.Set("X-Tenant", tt.tenant)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%+v: %d %s", tt, w.Code, w.Body)
		}
	}
	_, err = serve.New(serve.Config{Journal: memdb.New(t), Mounts: map[string]serve.Mount{
		"/other": func(*serve.Server) (serve.Handler, error) { return nil, fmt.Errorf("no") },
	}})
	if err == nil || err.Error() != "no" {
		t.Errorf("got %v, want the error of the mount", err)
	}
}
