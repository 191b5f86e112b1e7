package otlp

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
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
			var forms [2]bytes.Buffer
			for i := range forms {
				c := &collector{}
				report, err := Export(t.Context(), bytes.NewReader(archive.Files[0].Data), Config{
					URL: "http://collector", Client: c.client(), JSON: i == 0,
					Skipped: func(err error) { fmt.Fprintf(&forms[i], "skipped: %v\n", err) },
				})
				if err != nil || report.Sent != len(c.spans) || report.Rejected != 0 || c.json != (i == 0) {
					t.Fatalf("%+v, %v; the collector has %d spans, as JSON %t", report, err, len(c.spans), c.json)
				}
				printSpans(&forms[i], c.spans)
			}
			if json, protobuf := forms[0].String(), forms[1].String(); json != protobuf {
				t.Errorf("as JSON:\n%s\nas protobuf:\n%s", json, protobuf)
			}
			got := forms[0]
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
		names[string(sp.SpanID)] = sp.Name
	}
	for _, sp := range spans {
		fmt.Fprintf(w, "%s..%s %s\n", clock(sp.Start), clock(sp.Ended), sp.Name)
		if len(sp.Parent) > 0 {
			fmt.Fprintf(w, "    in %s\n", names[string(sp.Parent)])
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

func clock(n integer) string { return time.Unix(0, int64(n)).UTC().Format("05.0000") }

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
	json   bool                       // the last request
	answer func(n int) *http.Response // to the request of this number, from 1; nil always succeeds
}

func (c *collector) client() *http.Client { return &http.Client{Transport: c} }

func (c *collector) RoundTrip(req *http.Request) (*http.Response, error) {
	form := req.Header.Get("Content-Type")
	if c.json = form == "application/json"; req.Method != http.MethodPost || req.URL.Path != "/v1/traces" || !c.json && form != "application/x-protobuf" {
		return nil, fmt.Errorf("%s %s of %s: want a POST to /v1/traces", req.Method, req.URL, form)
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
			if res.StatusCode == 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return res, nil
		}
	}
	if !c.json {
		c.spans = append(c.spans, spansIn(body)...)
		return response(200, "", ""), nil
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

// each calls visit with the fields of a message of protobuf.
func each(b []byte, visit func(field int, part []byte, n uint64)) {
	err := fields(b, func(field int, part []byte, n uint64) error { visit(field, part, n); return nil })
	if err != nil {
		panic(err)
	}
}

// spansIn reads a request in protobuf.
func spansIn(body []byte) (all []span) {
	each(body, func(_ int, of []byte, _ uint64) {
		each(of, func(field int, under []byte, _ uint64) {
			if field != 2 {
				return
			}
			each(under, func(part int, b []byte, _ uint64) {
				if part == 2 {
					all = append(all, spanIn(b))
				}
			})
		})
	})
	return all
}

func spanIn(b []byte) (sp span) {
	each(b, func(field int, part []byte, n uint64) {
		switch field {
		case 1:
			sp.TraceID = part
		case 2:
			sp.SpanID = part
		case 4:
			sp.Parent = part
		case 5:
			sp.Name = string(part)
		case 6:
			sp.Kind = int(n)
		case 7:
			sp.Start = integer(n)
		case 8:
			sp.Ended = integer(n)
		case 9:
			sp.Attrs = append(sp.Attrs, attributeIn(part))
		case 11:
			var h happening
			each(part, func(field int, part []byte, n uint64) {
				switch field {
				case 1:
					h.Time = integer(n)
				case 2:
					h.Name = string(part)
				case 3:
					h.Attrs = append(h.Attrs, attributeIn(part))
				}
			})
			sp.Events = append(sp.Events, h)
		case 12:
			sp.Dropped = int(n)
		case 15:
			sp.Status = &status{}
			each(part, func(field int, part []byte, n uint64) {
				if field == 2 {
					sp.Status.Message = string(part)
				} else {
					sp.Status.Code = int(n)
				}
			})
		}
	})
	return sp
}

func attributeIn(b []byte) (a attribute) {
	each(b, func(field int, part []byte, _ uint64) {
		if field == 1 {
			a.Key = string(part)
		} else {
			a.Value = valueIn(part)
		}
	})
	return a
}

func valueIn(b []byte) (v value) {
	each(b, func(field int, part []byte, n uint64) {
		switch field {
		case 1:
			s := string(part)
			v.String = &s
		case 2:
			v.Bool = new(n == 1)
		case 3:
			v.Int = new(integer(n))
		case 4:
			v.Double = new(math.Float64frombits(n))
		case 5:
			v.Array = &texts{}
			each(part, func(_ int, part []byte, _ uint64) {
				v.Array.Values = append(v.Array.Values, valueIn(part))
			})
		}
	})
	return v
}

func response(status int, retryAfter, body string) *http.Response {
	h := http.Header{}
	if retryAfter != "" {
		h.Set("Retry-After", retryAfter)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func (i *id) UnmarshalText(b []byte) (err error) {
	*i, err = hex.DecodeString(string(b))
	return err
}

func (n *integer) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(string(b), `"%d"`, (*int64)(n))
	return err
}
