package serve

import (
	"maps"
	"time"

	"github.com/stonelayer/stone/journal"
)

// tries counts how often the server has resumed runs without making progress, such as runs whose pipeline has changed. It must be
// used by one goroutine only.
type tries struct {
	by map[string]try
}

// A try describes the attempts to resume a run.
type try struct {
	ended time.Time // when the run last stopped
	count int
	next  time.Time
}

// maxTry is the maximum time between two attempts to resume a run.
const maxTry = time.Hour

// A dueRun is a run to resume.
type dueRun struct {
	journal.RunInfo
	again bool // the last attempt made no progress
}

// due returns the runs that are due. The time between two attempts to resume a run starts at one search interval and doubles each
// time, up to maxTry. Runs that no search has found for a long time are forgotten.
func (t *tries) due(runs []journal.RunInfo, now time.Time, search time.Duration) (due []dueRun) {
	if t.by == nil {
		t.by = map[string]try{}
	}
	for _, info := range runs {
		was := t.by[info.ID]
		if !was.ended.Equal(info.Ended) {
			was = try{ended: info.Ended}
		}
		if !now.Before(was.next) {
			due = append(due, dueRun{info, was.count > 0})
			was.next = now.Add(min(search<<min(was.count, 10), maxTry))
			was.count++
		}
		t.by[info.ID] = was
	}
	maps.DeleteFunc(t.by, func(_ string, was try) bool { return now.Sub(was.next) > maxTry })
	return due
}
