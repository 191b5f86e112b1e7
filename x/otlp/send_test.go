package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const one = `{"event":"cache-hit","custom":true,"level":"info","timestamp":1760000000000,"trace-id":"r","data":{}}`

// A sequence of a collector's answers, and its result.
func TestAnswers(t *testing.T) {
	tests := []struct {
		name     string
		answers  []string // status, Retry-After, body
		requests int
		waited   time.Duration // 0 is none, else exact if there is a Retry-After
		sent     int
		err      string
	}{
		{"taken", []string{`200||{}`}, 1, 0, 1, ``},
		{"taken without a word", []string{`200||`}, 1, 0, 1, ``},
		{"accepted", []string{`202||{"partialSuccess":null}`}, 1, 0, 1, ``},
		{"busy for 7 s", []string{`429|7|`, `200||{}`}, 2, 7 * time.Second, 1, ``},
		{"busy until a date", []string{`503|Sat, 01 Jan 2000 00:00:20 GMT|`, `200||{}`}, 2, 20 * time.Second, 1, ``},
		{"busy twice", []string{`502|1|`, `504|2|`, `200||{}`}, 3, 3 * time.Second, 1, ``},
		{"busy too long", []string{`429|61|slow down`}, 1, 0, 0,
			`the collector at http://c/v1/traces answered with status 429 Too Many Requests: slow down; to retry would take longer than 1m0s`},
		{"refused", []string{`400||{"code":3,"message":"no  spans\nhere"}`}, 1, 0, 0,
			`the collector at http://c/v1/traces answered with status 400 Bad Request: no spans here`},
		{"refused with our key", []string{`401||not with Bearer k3y`}, 1, 0, 0,
			`the collector at http://c/v1/traces answered with status 401 Unauthorized: not with [redacted]`},
		{"not found", []string{`404||`}, 1, 0, 0, `the collector at http://c/v1/traces answered with status 404 Not Found`},
		{"moved", []string{`308||`}, 1, 0, 0, `the collector at http://c/v1/traces answered with status 308 Permanent Redirect`},
		{"internal error", []string{`500|1|`}, 1, 0, 0, `the collector at http://c/v1/traces answered with status 500 Internal Server Error`},
		{"a web page", []string{`200||<html>`}, 1, 0, 0,
			`http://c/v1/traces answered with status 200, but not like a collector: is this the OTLP/HTTP port (4318)?`},
		{"rejected", []string{`200||{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}`}, 1, 0, 0,
			`the collector rejected 1 of 1 spans: too old`},
		{"rejected, as a number and more than there are", []string{`200||{"partialSuccess":{"rejectedSpans":7}}`}, 1, 0, 0,
			`the collector rejected 1 of 1 spans: it gives no reason`},
		{"rejected, how many it cannot say", []string{`200||{"partialSuccess":{"rejectedSpans":[]}}`}, 1, 0, 0,
			`the collector's count of rejected spans cannot be read: []`},
		{"rejected, without a number", []string{`200||{"partialSuccess":{"rejectedSpans":null}}`}, 1, 0, 1, ``},
		{"takes no protobuf", []string{`415||`, `200||{}`}, 2, 0, 1, ``},
		{"takes neither", []string{`415||`, `415||`}, 2, 0, 0,
			`the collector at http://c/v1/traces answered with status 415 Unsupported Media Type`},
		{"one span is too large", []string{`413||`}, 1, 0, 0, `the collector rejected 1 of 1 spans: span "cache-hit" is too large`},
		{"the connection breaks after an answer", []string{`503|1|`, `0||`, `200||{}`}, 3, 0, 1, ``},
		{"warned", []string{`200||{"partialSuccess":{"rejectedSpans":"0","errorMessage":"mind the clock"}}`}, 1, 0, 1,
			`skipped: the collector warns: mind the clock`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &collector{answer: func(n int) *http.Response {
					var status int
					parts := strings.SplitN(test.answers[n-1], "|", 3)
					fmt.Sscan(parts[0], &status)
					return response(status, parts[1], parts[2])
				}}
				before := time.Now()
				var warned error
				report, err := Export(t.Context(), strings.NewReader(one), Config{
					URL: "http://user:pass@c?token=t0ken", Client: c.client(),
					Header:  http.Header{"authorization": {"Bearer k3y"}},
					Skipped: func(err error) { warned = fmt.Errorf("skipped: %w", err) },
				})
				if got := message(errors.Join(err, warned)); got != test.err {
					t.Errorf("error %q\nwant  %q", got, test.err)
				}
				if waited := time.Since(before); len(c.bodies) != test.requests || test.waited != 0 && waited != test.waited || report.Sent != test.sent {
					t.Errorf("%d requests, waited %v, %+v", len(c.bodies), waited, report)
				}
			})
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Without a Retry-After the waits grow, and end with the patience.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(int) *http.Response { return response(503, "", "") }}
		before := time.Now()
		_, err := Export(t.Context(), strings.NewReader(one), Config{URL: "http://c", Client: c.client()})
		waited := time.Since(before)
		if err == nil || waited > time.Minute || waited < 10*time.Second || len(c.bodies) < 4 || len(c.bodies) > 9 {
			t.Errorf("%v after %v and %d requests", err, waited, len(c.bodies))
		}

		c.bodies = nil
		if _, err = Export(t.Context(), strings.NewReader(one), Config{URL: "http://c", Client: c.client(), Patience: -1}); err == nil || len(c.bodies) != 1 {
			t.Errorf("without patience: %v after %d requests", err, len(c.bodies))
		}

		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("enough"))
		defer cancel()
		if _, err = Export(ctx, strings.NewReader(one), Config{URL: "http://c", Client: c.client()}); message(err) != "enough" {
			t.Errorf("canceled while it waits: %v", err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, err = Export(t.Context(), strings.NewReader(one), Config{URL: "http://user:secret@" + addr + "/otel/?k=secret"})
	want := "the collector at http://" + addr + "/otel/v1/traces cannot be reached: dial tcp " + addr + ": connect: connection refused"
	if message(err) != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// Headers go to the collector only, not to a redirect.
func TestHeaders(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	var seen string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Api-Key")
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	h, err := parseHeaders("api-key=a%20b,, other = c=d ,other=e")
	if err != nil || fmt.Sprint(h) != "map[Api-Key:[a b] Other:[c=d e]]" {
		t.Fatalf("%v, %v", h, err)
	}
	_, err = Export(t.Context(), strings.NewReader(one), Config{URL: server.URL, Header: h})
	if seen != "a b" || err == nil || !strings.Contains(err.Error(), "status 307") {
		t.Errorf("header %q, %v", seen, err)
	}
	for in, want := range map[string]string{
		"k=v,s3cret":     `header 2: want key=value, with a comma before the next`,
		"=s3cret":        `header 1: want key=value, with a comma before the next`,
		"k=s3cret%":      `the value of header "k" is not escaped as in a URL: write %25 for a percent sign`,
		"k=s3cret%0d%0a": `the value of header "k" is not escaped as in a URL: write %25 for a percent sign`,
	} {
		if _, err := parseHeaders(in); message(err) != want {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://c:4318":            "http://c:4318/v1/traces",
		"https://c/":               "https://c/v1/traces",
		"http://c/v1/traces":       "http://c/v1/traces",
		"http://c/otel?tenant=one": "http://c/otel/v1/traces?tenant=one",
		"localhost:4318":           `"localhost:4318" is not the URL of a collector: want the URL of a collector, such as http://127.0.0.1:4318`,
		"":                         `"" is not the URL of a collector: want the URL of a collector, such as http://127.0.0.1:4318`,
		"http://[s3cret":           "the URL cannot be read: want the URL of a collector, such as http://127.0.0.1:4318",
	} {
		u, err := endpoint(in, false)
		got := message(err)
		if err == nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// lanes is the trace of a fan-out, made while it is read.
type lanes struct {
	n, lanes int
	line     []byte
}

func (l *lanes) Read(b []byte) (int, error) {
	if len(l.line) == 0 {
		const format = `{"event":"%s","timestamp":%d,"trace-id":"r","span-id":"s%d","parent-span-id":"%s","ashlar-name":"each","data":{"lane":%d,"ok":true}}` + "\n"
		event, lane := "lane-start", (l.n-1)/2
		switch {
		case l.n == 0:
			l.line = fmt.Appendf(nil, format, "run-start", 1760000000000, 0, "", 0)
		case l.n == 2*l.lanes+1:
			return 0, io.EOF // and the run does not end
		default:
			if l.n%2 == 0 {
				event = "lane-end"
			}
			l.line = fmt.Appendf(nil, format, event, 1760000000000+l.n, lane+1, "s0", lane)
		}
		l.n++
	}
	n := copy(b, l.line)
	l.line = l.line[n:]
	return n, nil
}

// A file of any size needs only the memory of its open spans, and sending it twice sends
// the same spans.
func TestExportIsBoundedAndTheSame(t *testing.T) {
	const n = 20_000
	var peak, sum [2]uint64
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 2 {
		seen := 0
		c := &collector{}
		c.answer = func(int) *http.Response {
			var m runtime.MemStats
			body := c.bodies[0]
			c.bodies = c.bodies[:0]
			for _, b := range body {
				sum[i] = sum[i]*31 + uint64(b)
			}
			seen += bytes.Count(body, []byte(`"spanId"`))
			if seen%4096 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&m)
				peak[i] = max(peak[i], m.HeapAlloc)
			}
			return response(200, "", "")
		}
		report, err := Export(t.Context(), &lanes{lanes: n}, Config{URL: "http://c", Client: c.client(), JSON: true})
		if err != nil || report.Sent != n+1 || seen != n+1 {
			t.Fatalf("%+v, %v; %d spans seen, want %d", report, err, seen, n+1)
		}
	}
	if sum[0] != sum[1] {
		t.Error("two exports of one trace differ")
	}
	if used := peak[0] - min(peak[0], before.HeapAlloc); used > 4<<20 || peak[0] == 0 {
		t.Errorf("%d KiB of heap for %d spans", used>>10, n)
	}
}

// What is too large is sent in halves.
func TestTooLarge(t *testing.T) {
	c := &collector{}
	c.answer = func(n int) *http.Response {
		if len(spansIn(c.bodies[n-1])) > 3 {
			return response(413, "", "")
		}
		return nil
	}
	const n = 20
	report, err := Export(t.Context(), &lanes{lanes: n}, Config{URL: "http://c", Client: c.client()})
	if err != nil || report != (Report{Sent: n + 1}) || len(c.spans) != n+1 {
		t.Errorf("%+v, %v; the collector has %d spans", report, err, len(c.spans))
	}
}

// An answer in protobuf says how many spans were rejected, and a refusal why.
func TestAnswersInProtobuf(t *testing.T) {
	var partial, answer, refusal proto
	partial.varint(1, 1)
	partial.bytes(2, []byte("too old"))
	answer.part(1, partial)
	refusal.varint(1, 3)
	refusal.bytes(2, []byte("no spans here"))
	for body, want := range map[string]string{
		"200" + string(answer):  `the collector rejected 1 of 1 spans: too old`,
		"200":                   ``,
		"400" + string(refusal): `the collector at http://c/v1/traces answered with status 400 Bad Request: no spans here`,
		"200\xff":               `the response of the collector at http://c/v1/traces cannot be read: it is not protobuf`,
	} {
		c := &collector{answer: func(int) *http.Response {
			res := response(200, "", body[3:])
			fmt.Sscan(body[:3], &res.StatusCode)
			res.Header.Set("Content-Type", "application/x-protobuf")
			return res
		}}
		if _, err := Export(t.Context(), strings.NewReader(one), Config{URL: "http://c", Client: c.client()}); message(err) != want {
			t.Errorf("%q: %v, want %s", body, err, want)
		}
	}
}
