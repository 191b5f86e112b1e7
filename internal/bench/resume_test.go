package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
)

// A resumer records an unfinished run of a number of steps in a folder. It returns a
// function that reopens the file, continues the run, and returns when the first new step
// started.
type resumer func(folder string, steps int) (resume func() (time.Time, error), err error)

// A resumable is a resumer of a number of steps.
type resumable struct {
	steps int
	name  string
	open  resumer
}

// BenchmarkResume is the time from the start of a process, without the system's own start time, to the first new step. DBOS is
// left out of the long run, which it needs a minute to record.
func BenchmarkResume(b *testing.B) {
	for _, c := range append([]resumable{{10_000, "stone", stoneResume}, {100_000, "stone", stoneResume}}, peerResumables...) {
		b.Run(fmt.Sprintf("%d/%s", c.steps, c.name), func(b *testing.B) {
			resume, err := c.open(b.TempDir(), c.steps)
			if err != nil {
				b.Fatal(err)
			}
			var spent time.Duration
			times := 0
			measure(b, c.steps, "step", func() error {
				begin := time.Now()
				reached, err := resume()
				spent += reached.Sub(begin)
				times++
				return err
			})
			b.ReportMetric(spent.Seconds()/float64(times), "elapsed-s/resume")
		})
	}
}

func stoneResume(folder string, steps int) (func() (time.Time, error), error) {
	var reached time.Time
	p := stone.Seq("resumed", stoneLines(steps/durableLines),
		stone.Func("new", aTotal, aResult, func(context.Context, total) (result, error) {
			reached = time.Now()
			return result{}, kind.Waiting // which is not recorded
		}))
	resume := func() (time.Time, error) {
		db, err := sqlite.Open(filepath.Join(folder, "stone.db"), sqlite.Options{})
		if err != nil {
			return reached, err
		}
		_, err = stone.Run(context.Background(), p, stone.Config{RunID: "run", Recorder: db})
		if errors.Is(err, kind.Waiting) {
			err = nil
		}
		return reached, errors.Join(err, db.Close())
	}
	_, err := resume()
	return resume, err
}
