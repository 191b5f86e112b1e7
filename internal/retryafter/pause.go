package retryafter

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pause returns the time to wait after attempt n, counted from 1. The backoff starts at first, doubles with each attempt, and
// never exceeds most. To keep clients that failed together from retrying together, Pause returns a random duration between half
// of the backoff and the full backoff. It returns at least asked, the delay that the server requested (0 if it did not).
func Pause(n int, first, most, asked time.Duration) time.Duration {
	wait := max(0, min(first, most))
	for ; n > 1 && 0 < wait && wait < most; n-- {
		wait += min(wait, most-wait)
	}
	return max(wait/2+rand.N(wait/2+1), asked)
}

// Sleep waits for the given duration. If ctx is done earlier, it returns the cause of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
