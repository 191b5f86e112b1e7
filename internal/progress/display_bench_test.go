package progress

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
)

var (
	item = dag.NewType[int]("item")
	half = dag.NewType[int]("half")
)

// lanes fans out over n items. An item divisible by fails loses its lane.
func lanes(n, fails int, opts ...stone.FanOption) stone.Ashlar {
	items := make([]int, n)
	for i := range items {
		items[i] = i
	}
	return stone.Seq("work", stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]int, error) { return items, nil }), item,
		stone.Func("halve", item, half, func(_ context.Context, i int) (int, error) {
			if fails > 0 && i%fails == 0 {
				return 0, fmt.Errorf("item %d is bad", i)
			}
			return i / 2, nil
		}), opts...))
}

var everything = event.Func(slog.LevelDebug, func(event.Event) {})

// The difference between "display" and "events" is what the display costs.
func BenchmarkLane(b *testing.B) {
	p := stone.Seq("all", lanes(10_000, 0), stone.Reduce(stone.Func("count", dag.All(half), item, func(_ context.Context, all []int) (int, error) { return len(all), nil })))
	for _, c := range []struct {
		name  string
		watch func() event.Watcher
	}{
		{"silent", func() event.Watcher { return nil }},
		{"events", func() event.Watcher { return everything }},
		{"display", func() event.Watcher { return New(p, Config{Out: io.Discard}) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := stone.Run(context.Background(), p, stone.Config{Watch: c.watch()}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/lane")
		})
	}
}
