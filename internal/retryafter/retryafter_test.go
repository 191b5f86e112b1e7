package retryafter

import (
	"net/http"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "NaN": 0, "soon": 0,
		"1e300": Most, "Inf": Most,
		"Mon, 02 Jan 2006 15:04:05 GMT": 0,
		"Sun, 22 Nov 2026 12:01:30 GMT": 90 * time.Second,
		"Wed, 25 Nov 2026 12:00:00 GMT": Most,
	} {
		if got := Read(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("Retry-After: %q is %s, want %s", value, got, want)
		}
	}
	if got := Read(http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"1"}}, now); got != 250*time.Millisecond {
		t.Errorf("Retry-After-Ms: 250 is %s", got)
	}
}

func TestReadBody(t *testing.T) {
	const google = `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
		{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]},
		{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"47.5s"}]}}`
	for body, want := range map[string]time.Duration{
		google: 47500 * time.Millisecond, " [" + google + "]\n": 47500 * time.Millisecond,
		`{"error":{"details":[{"retryDelay":"-3s"}]}}`: 0, `{"error":{"details":[{"retryDelay":"90000s"}]}}`: Most,
		"": 0, "null": 0, `{"error":"slow down"}`: 0, `{"error":{"message":"slow down"}}`: 0,
	} {
		if got := ReadBody([]byte(body)); got != want {
			t.Errorf("%s is %s, want %s", body, got, want)
		}
	}
}
