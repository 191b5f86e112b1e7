package otlp

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what is exported into testdata")

// Each testdata/*.txtar has a trace.jsonl and the spans made from it.
func TestExport(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in testdata (%v)", err)
	}
	for _, path := range archives {
		t.Run(filepath.Base(path), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			c := &collector{}
			report, err := Export(t.Context(), bytes.NewReader(archive.Files[0].Data), Config{
				URL: "http://collector", Client: c.client(),
				Skipped: func(err error) { fmt.Fprintf(&got, "skipped: %v\n", err) },
			})
			if err != nil || report.Sent != len(c.spans) || report.Rejected != 0 {
				t.Fatalf("%+v, %v; the collector has %d spans", report, err, len(c.spans))
			}
			printSpans(&got, c.spans)
			if want := archive.Files[1].Data; *update {
				archive.Files[1].Data = got.Bytes()
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("got:\n%s\nwant:\n%s", &got, want)
			}
		})
	}
}

// printSpans prints spans as they were sent, parents by their names.
func printSpans(w io.Writer, spans []span) {
	names := map[string]string{}
	for _, sp := range spans {
		names[sp.SpanID] = sp.Name
	}
	for _, sp := range spans {
		fmt.Fprintf(w, "%s..%s %s\n", clock(sp.Start), clock(sp.Ended), sp.Name)
		if sp.Parent != "" {
			fmt.Fprintf(w, "    in %s\n", names[sp.Parent])
		}
		if sp.Kind == clientKind {
			fmt.Fprintln(w, "    client")
		}
		if sp.Status != nil {
			fmt.Fprintf(w, "    status %d %s\n", sp.Status.Code, sp.Status.Message)
		}
		printAttributes(w, "    ", sp.Attrs)
		for _, ev := range sp.Events {
			fmt.Fprintf(w, "    %s %s\n", clock(ev.Time), ev.Name)
			printAttributes(w, "        ", ev.Attrs)
		}
	}
}

func clock(n nanoseconds) string { return time.Unix(0, int64(n)).UTC().Format("05.0000") }

func printAttributes(w io.Writer, indent string, attrs attributes) {
	for _, a := range attrs {
		b, err := json.Marshal(a.Value)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "%s%s %s\n", indent, a.Key, b)
	}
}

// A collector keeps the received spans, and answers as configured.
type collector struct {
	spans  []span
	bodies [][]byte
	answer func(n int) *http.Response // to the request of this number, from 1; nil always succeeds
}

func (c *collector) client() *http.Client { return &http.Client{Transport: c} }

func (c *collector) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/json" {
		return nil, fmt.Errorf("%s %s of %s: want a POST of JSON to /v1/traces", req.Method, req.URL, req.Header.Get("Content-Type"))
	}
	z, err := gzip.NewReader(req.Body)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	c.bodies = append(c.bodies, body)
	if c.answer != nil {
		if res := c.answer(len(c.bodies)); res != nil {
			return res, nil
		}
	}
	var request struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []span }
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	for _, rs := range request.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	return response(200, "", `{"partialSuccess":{}}`), nil
}

func response(status int, retryAfter, body string) *http.Response {
	h := http.Header{}
	if retryAfter != "" {
		h.Set("Retry-After", retryAfter)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func (n *nanoseconds) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(string(b), `"%d"`, (*int64)(n))
	return err
}
