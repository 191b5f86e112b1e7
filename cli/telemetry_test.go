package cli

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/x/otlp"
)

var watchedText = dag.NewType[string]("text")

// A live export is sent when the environment or a trusted configuration names a collector.
func TestTelemetry(t *testing.T) {
	var mu sync.Mutex
	var got []string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(z)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		spans := "other"
		if s := string(body); strings.Contains(s, "invoke_workflow hello") && strings.Contains(s, "greet") {
			spans = "spans"
		}
		for _, service := range []string{"svc", "team", "stone"} {
			if strings.Contains(string(body), service) {
				spans = service + " " + spans
				break
			}
		}
		got = append(got, r.URL.Path+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("Api-Key")+" "+spans)
	}))
	defer collector.Close()
	const protobuf = "application/x-protobuf"
	for _, test := range []struct {
		name, conf string
		env        map[string]string
		want       string // the request
		code       int
		says       string
		without    bool // the part
	}{
		{"nothing", `{}`, nil, "", 0, "", false},
		{"the environment", `{}`, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=k%20y", "OTEL_SERVICE_NAME": "svc"},
			"/v1/traces " + protobuf + " k y svc spans", 0, "", false},
		{"the environment, for traces", `{:telemetry {:url "http://127.0.0.1:9"}}`, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.URL + "/mine",
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json", "STONE_TRUST": "1"}, "/mine application/json  stone spans", 0, "", false},
		{"a protocol that is not spoken", `{}`, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", 0,
			`telemetry: nothing is sent: OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": want http/protobuf or http/json`, false},
		{"nobody listens", `{}`, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, "", 0, `telemetry: 2 of 2 spans were dropped: the collector at http://127.0.0.1:9/v1/traces cannot be reached`, false},
		{"the configuration, which is not trusted", `{:telemetry {:url "` + collector.URL + `"}}`, nil, "", 2,
			"is not trusted: telemetry sends the events of runs to " + collector.URL + ": read its files, then run stone trust ", false},
		{"the configuration", `{:telemetry {:url "` + collector.URL + `" :service "team" :headers {:env "MY_HEADERS"}}}`,
			map[string]string{"STONE_TRUST": "1", "MY_HEADERS": "api-key=s3cret"}, "/v1/traces " + protobuf + " s3cret team spans", 0, "", false},
		{name: "the environment, without the part", conf: `{}`, env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}, without: true},
		{name: "the configuration, without the part", conf: `{:telemetry {:url "` + collector.URL + `"}}`, env: map[string]string{"STONE_TRUST": "1"}, without: true, code: 2,
			says: `stone.edn:1:13: telemetry: "telemetry" is not linked into this program: pass cli.Main the part of package github.com/stonelayer/stone/x/otlp, or `},
	} {
		t.Run(test.name, func(t *testing.T) {
			got = nil
			dir := t.TempDir()
			t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			if err := os.Mkdir(filepath.Join(dir, ".stone"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, ".stone", "stone.edn"), []byte(test.conf), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			greet := stone.Func0("greet", watchedText, func(context.Context) (string, error) { return "hi", nil })
			var out, said strings.Builder
			events := 0
			parts := []Part{otlp.Part}
			if test.without {
				parts = nil
			}
			code := Run(t.Context(), Config{
				Parts: parts, Pipeline: stone.Seq("hello", greet), Name: "stone", Args: []string{"run", "--no-db", "--quiet"}, Stdout: &out, Stderr: &said,
				Watch: func(of journal.RunInfo) event.Watcher {
					if of.Pipeline != "hello" {
						t.Errorf("the run is %+v", of)
					}
					return event.Func(event.LevelDelta, func(event.Event) { events++ })
				},
			})
			if code != test.code || !strings.Contains(said.String(), test.says) || test.says == "" && said.Len() > 0 {
				t.Errorf("code %d, said %q, want %d and %q", code, said.String(), test.code, test.says)
			}
			if code == 0 && (out.String() != "hi\n" || events == 0) {
				t.Errorf("%q after %d events", out.String(), events)
			}
			if strings.Join(got, "\n") != test.want {
				t.Errorf("the collector got %q, want %q", got, test.want)
			}
		})
	}
}
