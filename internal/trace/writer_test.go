package trace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone/event"
)

// watch passes an event to a watcher that wants it, as a run does.
func watch(w event.Watcher, d event.Data) {
	e := event.Event{Data: d}
	if w.Wants(context.Background(), e.Level()) {
		w.Watch(context.Background(), e)
	}
}

func note(n int, pad string) event.Data {
	return event.Custom{Name: fmt.Sprint("e", n), Attrs: []slog.Attr{slog.String("pad", pad)}}
}

// TestLevels checks which events a level lets through, and that only level debug has contents.
func TestLevels(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelDebug:     "ashlar-start api-call api-response attempt-failed failure",
		slog.LevelInfo:      "api-call api-response attempt-failed failure",
		slog.LevelWarn:      "attempt-failed failure",
		slog.LevelError:     "failure",
		slog.LevelError + 4: "",
	} {
		var buf bytes.Buffer
		w := event.NewWriter(&buf, level)
		for _, d := range []event.Data{event.StepStarted{}, event.Delta{Text: "SECRET"}, event.ModelRequest{System: "SECRET"}, event.ModelResponse{Turn: 1},
			event.ModelResponse{Replayed: true}, event.AttemptFailed{}, event.StepFailed{}} {
			watch(w, d)
		}
		if secret := strings.Contains(buf.String(), "SECRET"); secret != (level == slog.LevelDebug) {
			t.Errorf("%v: contents %v", level, secret)
		}
		var got []string
		for e, err := range event.Read(&buf) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Type())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: got %v, want %s", level, got, want)
		}
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

func TestWriteErrors(t *testing.T) {
	out := &flaky{take: map[int]int{2: 10, 3: 0}}
	w := event.NewWriter(out, nil)
	for i := range 5 {
		watch(w, note(i, ""))
	}
	if out.calls != 5 {
		t.Errorf("%d writes for 5 lines", out.calls)
	}
	if err := w.Err(); err == nil || err.Error() != "call 2 failed" {
		t.Errorf("Err() = %v, want the first error", err)
	}
	counts, total, bad := Tally(&out.Buffer)
	if total != 3 || len(bad) != 1 {
		t.Errorf("%v, %d events, bad lines %v; want e0, e3, e4 and one bad line", counts, total, bad)
	}
}

func TestConcurrent(t *testing.T) {
	const lanes, each = 8, 200
	out := &flaky{}
	w := event.NewWriter(out, nil)
	var wg sync.WaitGroup
	for i := range lanes {
		wg.Go(func() {
			for range each {
				watch(w, note(0, strings.Repeat("x", i*100)))
			}
		})
	}
	wg.Wait()
	counts, total, bad := Tally(&out.Buffer)
	if total != lanes*each || len(counts) != 1 || bad != nil || out.calls != total {
		t.Errorf("%v, %d events in %d writes, bad lines %v", counts, total, out.calls, bad)
	}
}

func TestUnwantedIsFree(t *testing.T) {
	w := event.NewWriter(io.Discard, nil)
	if n := testing.AllocsPerRun(100, func() {
		if w.Wants(t.Context(), slog.LevelDebug) || w.Wants(t.Context(), event.LevelDelta) {
			t.Error("wanted")
		}
	}); n != 0 {
		t.Errorf("%v allocations for an event that is not written", n)
	}
}

func TestAppendEndsACutLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	for range 3 {
		f, err := event.Append(path)
		if err != nil {
			t.Fatal(err)
		}
		watch(event.NewWriter(f, nil), event.RunStarted{})
		if _, err := f.WriteString(`{"event":"ru`); err != nil { // as after a crash
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, total, bad := Tally(f); total != 3 || len(bad) != 3 {
		t.Errorf("%d events, %v, want 3 and 3", total, bad)
	}
	if _, err := event.Append(filepath.Join(path, "x")); err == nil {
		t.Error("Append below a file succeeds")
	}
}
