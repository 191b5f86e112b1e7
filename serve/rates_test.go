package serve

import (
	"fmt"
	"testing"
	"time"
)

func TestRates(t *testing.T) {
	var r rates
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	who := Principal{Name: "a", PerMinute: new(2)}
	for _, tt := range []struct {
		after time.Duration // since the start
		who   Principal
		want  time.Duration
	}{
		{0, who, 0}, {0, who, 0}, {0, who, 30 * time.Second}, {0, Principal{Name: "b", PerMinute: new(1)}, 0}, {0, Principal{}, 0},
		{20 * time.Second, who, 10 * time.Second}, {30 * time.Second, who, 0}, {time.Hour, who, 0}, {time.Hour, who, 0}, {time.Hour, who, 30 * time.Second},
	} {
		if got := r.take(tt.who, now.Add(tt.after)).Round(time.Millisecond); got != tt.want {
			t.Errorf("%s after %v: wait %v, want %v", tt.who.Name, tt.after, got, tt.want)
		}
	}
}

// Callers without number leave nothing behind.
func TestRatesForget(t *testing.T) {
	var r rates
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 10 * mostBuckets {
		r.take(Principal{Name: fmt.Sprint(i), PerMinute: new(1)}, now.Add(time.Duration(i)*time.Second))
	}
	if n := len(r.by); n > mostBuckets {
		t.Errorf("%d callers are remembered", n)
	}
}
