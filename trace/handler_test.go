package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"
)

func TestHandlerSlogtest(t *testing.T) {
	var buf bytes.Buffer
	slogtest.Run(t,
		func(*testing.T) slog.Handler {
			buf.Reset()
			return NewHandler(&buf, nil)
		},
		func(t *testing.T) map[string]any {
			var line struct {
				Level, Message, Topic string
				Data                  map[string]any
			}
			if err := json.Unmarshal(buf.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if line.Data["event"] != line.Message || line.Topic != "stone" {
				t.Errorf("event %v, message %q, topic %q", line.Data["event"], line.Message, line.Topic)
			}
			// The attributes under slog's own keys.
			got := map[string]any{slog.LevelKey: line.Level, slog.MessageKey: line.Message}
			if ts, ok := line.Data["timestamp"]; ok {
				got[slog.TimeKey] = ts
			}
			maps.Copy(got, line.Data)
			return got
		})
}

type jsonError struct{}

func (jsonError) Error() string                { return "disk full" }
func (jsonError) MarshalJSON() ([]byte, error) { return []byte(`{"code":28}`), nil }

func TestHandlerData(t *testing.T) {
	tests := []struct {
		name string
		args []any
		want string // data after the event
	}{
		{"string", []any{"k", "a\n\"<é>"}, `"k":"a\n\"<é>"`},
		{"integer", []any{"k", int64(math.MaxInt64)}, `"k":9223372036854775807`},
		{"float", []any{"k", 0.5}, `"k":0.5`},
		{"bool and null", []any{"b", true, "n", nil}, `"b":true,"n":null`},
		{"duration", []any{"ms", 1500 * time.Microsecond}, `"ms":1.5`},
		{"error", []any{"error", errors.New("no such file")}, `"error":"no such file"`},
		{"error with JSON of its own", []any{"error", jsonError{}}, `"error":"disk full"`},
		{"struct", []any{"k", struct{ A []int }{[]int{1}}}, `"k":{"A":[1]}`},
		{"group", []any{slog.Group("usage", "in", 1, slog.Group("of", "cached", 2))}, `"usage":{"in":1,"of":{"cached":2}}`},
		{"bytes", []any{"k", []byte(`{"a": 1}`)}, `"k":{"a":1}`},
		{"raw JSON over lines", []any{"k", json.RawMessage("[1,\n2]")}, `"k":[1,2]`},
		{"bytes that are not JSON", []any{"k", []byte(`{"a"`)}, `"k":"{\"a\""`},
		{"no JSON for it", []any{"k", math.NaN()}, `"k":"!ERROR:json: unsupported value: NaN"`},
		{"names of the record's own", []any{"event", "x", "timestamp", 1, slog.Group("g", "event", "y")},
			`"attr-event":"x","attr-timestamp":1,"g":{"event":"y"}`},
		{"names of the envelope", []any{"level", 1, "msg", 2, "message", 3, "topic", 4}, `"level":1,"msg":2,"message":3,"topic":4`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var buf bytes.Buffer
			h := NewHandler(&buf, nil)
			r := slog.NewRecord(time.Time{}, slog.LevelInfo, "e", 0)
			r.Add(test.args...)
			if err := h.Handle(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			want := `{"level":"info","message":"e","topic":"stone","data":{"event":"e",` + test.want + "}}\n"
			if buf.String() != want {
				t.Errorf("got  %swant %s", &buf, want)
			}
			if typ, ok := scanType(buf.Bytes()); !ok || string(typ) != "e" {
				t.Errorf("scanType = %q, %v: the handler's own lines must take the fast way", typ, ok)
			}
		})
	}
}

func TestHandlerLevels(t *testing.T) {
	var buf bytes.Buffer
	log := slog.New(NewHandler(&buf, slog.LevelDebug))
	for _, level := range []slog.Level{slog.LevelDebug - 1, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelWarn + 1, slog.LevelError, LevelFatal, LevelFatal + 1} {
		log.Log(t.Context(), level, "e")
	}
	var got []string
	for e, err := range Read(&buf) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Level)
	}
	if want := "debug info warning warning error fatal fatal"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestHandlerTimestamp(t *testing.T) {
	var buf bytes.Buffer
	r := slog.NewRecord(time.UnixMicro(1760000000123456), slog.LevelInfo, "e", 0)
	if err := NewHandler(&buf, nil).Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if want := `"timestamp":1760000000123.456}`; !strings.Contains(buf.String(), want) {
		t.Errorf("%s lacks %s", &buf, want)
	}
}

// A writer that counts calls, and writes only part of a line or fails as configured.
type flaky struct {
	bytes.Buffer
	calls int
	take  map[int]int // call → bytes taken before it fails
}

func (f *flaky) Write(b []byte) (int, error) {
	f.calls++
	if n, ok := f.take[f.calls]; ok {
		f.Buffer.Write(b[:n])
		return n, fmt.Errorf("call %d failed", f.calls)
	}
	return f.Buffer.Write(b)
}

func TestHandlerWriteErrors(t *testing.T) {
	w := &flaky{take: map[int]int{2: 10, 3: 0}}
	h := NewHandler(w, nil)
	log := slog.New(h).With("a", 1)
	for i := range 5 {
		log.Info(fmt.Sprint("e", i))
	}
	if w.calls != 5 {
		t.Errorf("%d writes for 5 lines", w.calls)
	}
	if err := h.Err(); err == nil || err.Error() != "call 2 failed" {
		t.Errorf("Err() = %v, want the first error", err)
	}
	counts, total, bad := TallyReader(&w.Buffer)
	if total != 3 || len(bad) != 1 {
		t.Errorf("%v, %d events, bad lines %v; want e0, e3, e4 and one bad line", counts, total, bad)
	}
}

func TestHandlerConcurrent(t *testing.T) {
	const lanes, each = 8, 200
	w := &flaky{}
	h := NewHandler(w, nil)
	var wg sync.WaitGroup
	for i := range lanes {
		wg.Go(func() {
			log := slog.New(h).With("lane", i)
			for range each {
				log.Info("lane-start", "pad", strings.Repeat("x", i*100))
			}
		})
	}
	wg.Wait()
	counts, total, bad := TallyReader(&w.Buffer)
	if total != lanes*each || len(counts) != 1 || bad != nil || w.calls != total {
		t.Errorf("%v, %d events in %d writes, bad lines %v", counts, total, w.calls, bad)
	}
}

func TestHandlerDisabledIsFree(t *testing.T) {
	log := slog.New(NewHandler(io.Discard, nil))
	if n := testing.AllocsPerRun(100, func() {
		log.LogAttrs(t.Context(), slog.LevelDebug, "ashlar-start", slog.String("ashlar-name", "fix"))
	}); n != 0 {
		t.Errorf("%v allocations for a record that is not written", n)
	}
}

func TestAppendEndsACutLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	for range 3 {
		f, err := Append(path)
		if err != nil {
			t.Fatal(err)
		}
		slog.New(NewHandler(f, nil)).Info("run-start")
		if _, err := f.WriteString(`{"level":"in`); err != nil { // as after a crash
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	events, err := Load(path)
	if len(events) != 3 {
		t.Errorf("%d events (%v), want 3", len(events), err)
	}
	if _, err := Append(filepath.Join(path, "x")); err == nil {
		t.Error("Append below a file succeeds")
	}
}
