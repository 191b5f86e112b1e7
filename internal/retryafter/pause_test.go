package retryafter

import (
	"math"
	"testing"
	"time"
)

func TestPause(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		n                  int
		first, most, asked time.Duration
		low, high          time.Duration
	}{
		{1, s, 30 * s, 0, s / 2, s},
		{3, s, 30 * s, 0, 2 * s, 4 * s},
		{6, s, 30 * s, 0, 15 * s, 30 * s},
		{math.MaxInt, s, 30 * s, 0, 15 * s, 30 * s},
		{math.MaxInt, 3, math.MaxInt64, 0, math.MaxInt64 / 2, math.MaxInt64},
		{1, time.Minute, 30 * s, 0, 15 * s, 30 * s},
		{2, s, 30 * s, time.Minute, time.Minute, time.Minute},
		{math.MaxInt, 0, 30 * s, 0, 0, 0},
		{5, -s, 30 * s, 0, 0, 0},
		{5, s, -s, s, s, s},
		{1, 1, 1, 0, 0, 0},
	} {
		low, high := time.Duration(math.MaxInt64), time.Duration(0)
		for range 100 {
			got := Pause(c.n, c.first, c.most, c.asked)
			low, high = min(low, got), max(high, got)
		}
		if low < c.low || high > c.high {
			t.Errorf("the pause of %+v is %s to %s", c, low, high)
		}
		if c.low < c.high && low == high {
			t.Errorf("the pause of %+v is not random", c)
		}
	}
}
