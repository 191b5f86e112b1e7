package event_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stonelayer/stone/event"
)

// TestNoTurn has no number of a turn for a model that is asked outside of an agent.
func TestNoTurn(t *testing.T) {
	for turn, want := range map[int]bool{0: false, 1: true} {
		var b bytes.Buffer
		w := event.Log(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
		for _, d := range []event.Data{event.ModelRequest{Turn: turn}, event.ModelResponse{Turn: turn}, event.ModelRestarted{Turn: turn}, event.Progress{Turn: turn}} {
			w.Watch(t.Context(), event.Event{Name: "a", Data: d})
		}
		if got := strings.Count(b.String(), "turn-number"); (got > 0) != want || want && got < 4 {
			t.Errorf("turn %d: the number is there %d times:\n%s", turn, got, &b)
		}
	}
}
