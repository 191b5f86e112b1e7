package config_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestRetries counts the requests to a server that is always busy.
func TestRetries(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for retry, want := range map[string]int{
		`:wait-ms 1`:        4,
		`:wait-ms 1 :max 1`: 2,
		`:max 0`:            1,
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		c := mustLoad(t, fmt.Sprintf(`
			{:providers {:local {:protocol :openai :url %q :retry {%s}}}
			 :capabilities {:m {:cap/kind :llm :provider :local :model "m" :cap/intents #{:say}}}
			 :policy {:default {:retry {:same-cap-max 0}}}}`, server.URL, retry))
		act(t, c, "say", `{"text":"hi"}`)
		server.Close()
		if asked != want {
			t.Errorf("{%s}: asked %d times, want %d", retry, asked, want)
		}
	}
}
