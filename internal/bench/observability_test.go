package bench

import (
	"context"
	"log/slog"
	"math"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/event"
)

// BenchmarkObservability counts the additional allocations of a step without a listener:
// handler, because the run has a watcher that wants nothing; event, because its body
// sends an event with two attributes.
func BenchmarkObservability(b *testing.B) {
	const steps = 1_000
	names := stepNames(steps)
	silent := func(_ context.Context, v small) (small, error) { return v.next(), nil }
	telling := func(ctx context.Context, v small) (small, error) {
		stone.In(ctx).Event(slog.LevelDebug, "counted", slog.Int("n", v.N), slog.String("name", v.Name))
		return v.next(), nil
	}
	for _, c := range []struct {
		name  string
		body  func(context.Context, small) (small, error)
		watch event.Watcher
	}{
		{"handler/stone", silent, event.Log(slog.DiscardHandler)},
		{"event/stone", telling, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			var with, without float64
			for b.Loop() {
				without = allocations(b, stoneLine(names, smallDoc, smallDoc, aSmall, silent), nil)
				with = allocations(b, stoneLine(names, smallDoc, smallDoc, aSmall, c.body), c.watch)
			}
			// The runtime itself makes a few in a run.
			b.ReportMetric(math.Round((with-without)/steps*100)/100, "allocs/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// allocations returns the average number of allocations per run.
func allocations(b *testing.B, p stone.Ashlar, watch event.Watcher) float64 {
	var err error
	n := testing.AllocsPerRun(5, func() {
		_, err = stone.Run(context.Background(), p, stone.Config{Watch: watch})
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}
