package serve

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/internal/owed"
)

// A receiver that is down is tried after pauses that grow.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(&Server{cfg: Config{Scan: time.Second}}, nil)
		n := owed.Notice{Receiver: "hook"}
		o.hooks[n.Receiver] = &hook{}
		down := errors.New("connection refused")
		for range downAfter {
			if !o.admits(n) {
				t.Fatal("a receiver that may be up gets nothing")
			}
			o.tried(n, down)
			o.leave(n)
		}
		for _, pause := range []time.Duration{1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
			time.Sleep(pause*time.Second - time.Millisecond)
			if o.admits(n) {
				t.Fatalf("the receiver is tried within %d s", pause)
			}
			time.Sleep(time.Millisecond)
			if !o.admits(n) {
				t.Fatalf("the receiver is not tried after %d s", pause)
			}
			o.tried(n, down)
			o.leave(n)
		}
	})
}
