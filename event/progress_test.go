package event_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
)

func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := eventtest.Recorder{Level: slog.LevelInfo}
		report := event.At(eventtest.Context(t.Context(), &r)).Report()
		for n := range 1000 {
			report.Progress(strings.Repeat("é", 400), float64(n), 1000)
			time.Sleep(time.Millisecond)
		}
		if n := len(r.Events()); n != 10 {
			t.Errorf("%d events in a second, want 10", n)
		}
		d := r.Events()[1].Data.(event.Progress)
		if d.Elapsed != 100*time.Millisecond || d.Done != 100 || d.Total != 1000 || d.Message != strings.Repeat("é", 250)+"…" {
			t.Errorf("the second is %+v", d)
		}
	})
	r := eventtest.Recorder{Level: slog.LevelError}
	report := event.At(eventtest.Context(t.Context(), &r)).Report()
	if report.Progress("x", 1, 2); report != nil || len(r.Events()) != 0 {
		t.Error("a report without a watcher")
	}
}
