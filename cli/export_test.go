//go:build unix

package cli_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli"
)

// Without the part, the error names it.
func TestTraceExportWithoutPart(t *testing.T) {
	var stderr bytes.Buffer
	code := cli.Run(t.Context(), cli.Config{Pipeline: cli.FromArgument, Name: "stone", Args: []string{"export", "--as", "otlp", "t.jsonl"}, Stderr: &stderr})
	if want := "Error: this program sends no spans: pass cli.Main the part of package github.com/stonelayer/stone/x/otlp\n"; code != cli.Usage || stderr.String() != want {
		t.Errorf("code %d, %q, want %q", code, &stderr, want)
	}
}

// A trace goes to a collector, with the headers of the environment, whose values
// show nowhere.
func TestTraceExport(t *testing.T) {
	var body, key string
	status, answer := 200, `{}`
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Error(err)
		}
		body, key = string(b), r.Header.Get("Api-Key")
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	defer collector.Close()

	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"run-start","timestamp":1760000000000,"trace-id":"r","span-id":"s","ashlar-name":"p"}
garbage
{"event":"run-end","timestamp":1760000000002,"trace-id":"r","span-id":"s","ashlar-name":"p","data":{"ok":true}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name           string
		args           []string
		headers        string
		status         int
		answer         string
		code           int
		stdout, stderr string
	}{
		{"sent", []string{path, "--to", collector.URL}, "api-key=s3cret-s3cret", 200, `{}`, 0, "spans sent: 1\n",
			path + ":2: not JSON (invalid character 'g' looking for beginning of value, at byte 1); line skipped\n"},
		{"refused", []string{path, "--to", collector.URL}, "api-key=s3cret-s3cret", 401, `no s3cret-s3cret`, 1, "",
			"Error: the collector at " + collector.URL + "/v1/traces answered with status 401 Unauthorized: no [redacted]\n"},
		{"headers that are none", []string{path, "--to", collector.URL}, "s3cret-s3cret", 200, ``, 2, "",
			"Error: OTEL_EXPORTER_OTLP_HEADERS: header 1: want key=value, with a comma before the next\n"},
		{"no file", []string{path + "x", "--to", collector.URL}, "", 200, ``, 1, "", "no such file or directory\n"},
		{"no collector", []string{path}, "", 200, ``, 2, "",
			"Error: --to is missing: want the URL of a collector, such as http://127.0.0.1:4318\n"},
		{"no URL", []string{path, "--to", "c:4318"}, "", 200, ``, 1, "",
			"Error: \"c:4318\" is not the URL of a collector: want the URL of a collector, such as http://127.0.0.1:4318\n"},
		{"no trace", []string{"--to", collector.URL}, "", 200, ``, 2, "",
			"Error: RUN|FILE is missing: want stone export RUN|FILE [NODE|PATH] [flags]\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", test.headers)
			t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "")
			status, answer, body, key = test.status, test.answer, "", ""
			var stdout, stderr bytes.Buffer
			code := cli.Run(t.Context(), cli.Config{
				Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: append([]string{"export", "--as", "otlp"}, test.args...),
				Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
			})
			if code != test.code || stdout.String() != test.stdout || !strings.HasSuffix(stderr.String(), test.stderr) {
				t.Errorf("code %d, stdout %q, stderr %q", code, &stdout, &stderr)
			}
			if strings.Contains(stdout.String()+stderr.String(), "s3cret-s3cret") {
				t.Error("the key is shown")
			}
			if test.code == 0 && (key != "s3cret-s3cret" || !strings.Contains(body, "invoke_workflow p")) {
				t.Errorf("key %q, body %s", key, body)
			}
		})
	}
}
