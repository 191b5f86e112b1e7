package page

import (
	"testing"
	"time"

	"github.com/stonelayer/stone/journal"
)

func TestPausesAreFolded(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	steps := []journal.Step{{Started: at(0), Ended: at(4)}, {Started: at(1), Ended: at(2)}, {Started: at(3600), Ended: at(3604)}}
	var s span
	for _, one := range steps {
		s.add(one.Started, one.Ended)
	}
	s.fold(steps)
	if s.Folded() != 3596*time.Second {
		t.Errorf("%s are folded", s.Folded())
	}
	for _, tt := range []struct{ from, to, x, width int }{{0, 4, 0, 80}, {1, 2, 20, 20}, {3600, 3604, 80, 80}, {0, 3604, 0, 160}} {
		if got := s.bar(at(tt.from), at(tt.to)); got.X != float64(tt.x) || got.Width != float64(tt.width) {
			t.Errorf("from %d to %d: %v", tt.from, tt.to, *got)
		}
	}
}
