package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stonelayer/stone/internal/command"
	"github.com/stonelayer/stone/internal/filter"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/journal"
)

// runsFilter is a flag that selects the recorded runs that eval uses as cases. Ages are converted to times, and runs started
// later are excluded, so a resumed evaluation has the same cases.
type runsFilter struct {
	words filter.Filter
	query journal.Query
}

func (r *runsFilter) String() string { return r.words.String() }
func (r *runsFilter) Type() string   { return "string" }

// Set implements pflag.Value.
func (r *runsFilter) Set(text string) error {
	words, err := filter.Parse(text)
	if err != nil {
		return err
	}
	now := time.Now()
	values, err := words.Values(now)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return errors.New("it is empty: since:7d selects the runs of a week")
	}
	if values.Get("until") == "" {
		values.Set("until", now.UTC().Format(time.RFC3339Nano))
		words = append(words, filter.Word{Name: "until"})
	}
	for i, w := range words {
		if w.Name == "since" || w.Name == "until" {
			words[i].Value = values.Get(w.Name)
		}
	}
	r.words = words
	r.query, err = filter.Query(values)
	return err
}

// overRuns calls do with a context that contains the recorded runs selected by the flag, if it is set. Unless the flag names a
// pipeline, only runs of this pipeline are selected.
func overRuns(ctx context.Context, h *command.Host, flags evalFlags, do func(context.Context) error) error {
	switch {
	case flags.runs.words == nil:
		return do(ctx)
	case h.Unrecorded:
		return errors.New("--runs reads a journal, which --no-db excludes: drop one of them")
	case h.Cases == nil:
		return errors.New("--runs needs package x/lab, which is not linked into this program: pass cli.Main its lab.Part, or the parts of cli/all for all")
	}
	return h.Journal(ctx, func(j command.Journal) error {
		q := flags.runs.query
		q.Pipeline = cmp.Or(q.Pipeline, h.Pipeline.Name())
		return do(past.WithRuns(ctx, h.Cases(j, q, append([]string{}, h.Granted...))))
	})
}

// checkRuns checks the flags of an evaluation that uses recorded runs.
func (f *evalFlags) checkRuns() error {
	switch {
	case f.runs.words == nil:
		return nil
	case f.data.File != "":
		return errors.New("--data and --runs cannot be combined: use one")
	case f.trials > 1:
		return fmt.Errorf("--trials %d: recorded runs have one answer to each request: drop it", f.trials)
	}
	if len(f.scores) == 0 {
		f.scores = []string{"exact"}
	}
	return nil
}
