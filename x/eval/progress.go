package eval

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
)

// Progress is the progress of an evaluation. Its numbers count answers.
type Progress struct {
	Total    int // expected answers: cases times trials
	Done     int
	Recorded int // number of answers in Done that an earlier process or run has recorded
	Failed   int // number of cases in Done without an answer

	Round string // description of an Improving's last round; an Improving has no Total
}

// Watch returns a watcher for the run of an evaluation. The watcher calls show after each answer or, for an Improving, after each
// round. Calls of show are never concurrent.
func Watch(p stone.Ashlar, show func(Progress)) event.Watcher {
	w := &progress{show: show}
	w.size = extentOf(p)
	for _, n := range w.size.groups {
		w.Total += n
	}
	return w
}

type progress struct {
	Progress
	mu   sync.Mutex
	size extent
	show func(Progress)
}

// answerEvent is the event that reports an answer.
const answerEvent = "eval-answer"

func (w *progress) Wants(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (w *progress) Watch(_ context.Context, e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.Done
	switch d := e.Data.(type) {
	case event.Custom:
		if d.Name == answerEvent {
			w.Done++
			for _, a := range d.Attrs {
				if a.Key == "failed" && a.Value.Bool() {
					w.Failed++
				}
			}
		}
		if d.Name == improveEvent {
			w.Round = d.Attrs[0].Value.String()
			w.show(w.Progress)
			return
		}
	case event.StepReplayed:
		n := 0
		switch at, answer := strings.CutSuffix(e.Path, "/case/answer"); {
		case answer && !strings.Contains(at, "/case/answer"):
			if x := w.size; x.prior == 0 || address.Parse(address.Last(at)).Number()%(x.trials+x.prior) >= x.prior {
				n = 1
			}
		case strings.HasSuffix(e.Path, "]/group"): // the group has finished, with all of its answers
			n = w.size.of(e.Path)
		}
		w.Done += n
		w.Recorded += n
	}
	if w.Done != before && w.Total > 0 {
		w.show(w.Progress)
	}
}

// An extent holds an evaluation's number of answers, by group, and the digest of its test split.
type extent struct {
	groups []int
	trials int
	prior  int // number of answers in the recorded run of a case, which do not count
	test   string
}

// TestOf returns a digest of the test split that an evaluation reads its cases from, or "" if the evaluation does not use the
// test split. The digest does not depend on the evaluated pipeline.
func TestOf(p stone.Ashlar) string { return extentOf(p).test }

func (e *evaluation) extent() extent {
	x := extent{trials: e.Trials, prior: e.prior, test: e.data.test}
	names, rows := e.groups()
	for _, name := range names {
		x.groups = append(x.groups, len(rows[name])*e.Trials)
	}
	return x
}

// of returns the number of answers in the group at a path.
func (x extent) of(path string) int {
	for i, n := range x.groups {
		if strings.HasSuffix("/"+path, strings.TrimPrefix(groupPath(i), "eval")) {
			return n
		}
	}
	return 0
}

// facts iterates over the shown facts of the report.
func (x extent) facts() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		n := 0
		for _, g := range x.groups {
			n += g
		}
		yield("answers", fmt.Sprint(n))
	}
}

// extentOf returns the combined extent of all evaluations in a pipeline.
func extentOf(p stone.Ashlar) (x extent) {
	if x, ok := p.Detail().Value.(extent); ok {
		return x
	}
	for _, child := range p.Children() {
		of := extentOf(child)
		x.groups, x.trials, x.prior, x.test = append(x.groups, of.groups...), cmp.Or(x.trials, of.trials), cmp.Or(x.prior, of.prior), cmp.Or(x.test, of.test)
	}
	return x
}
