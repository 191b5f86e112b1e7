//go:build unix

package serve_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/cputime"
)

// BenchmarkIdleWatchers reports what clients cost that wait for news: of one run, and of as many.
func BenchmarkIdleWatchers(b *testing.B) {
	const watchers = 100
	for _, runs := range []int{1, watchers} {
		b.Run(fmt.Sprintf("watchers=%d/runs=%d", watchers, runs), func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			var names []string
			for i := range runs {
				names = append(names, fmt.Sprint("r", i))
			}
			s, c := waitingRuns(b, ctx, names...)
			var ends []<-chan struct{}
			for i := range watchers {
				_, ended := watch(b, ctx, s, names[i%runs], "")
				ends = append(ends, ended)
			}
			time.Sleep(time.Second)
			start, used, follows := time.Now(), cputime.Used(), c.follows.Load()
			for b.Loop() {
				time.Sleep(100 * time.Millisecond)
			}
			seconds := time.Since(start).Seconds()
			b.ReportMetric(float64((cputime.Used()-used).Microseconds())/1000/seconds, "cpu-ms/s")
			b.ReportMetric(float64(c.follows.Load()-follows)/seconds, "follows/s")
			cancel()
			for _, ended := range ends {
				<-ended
			}
			s.Close()
		})
	}
}
