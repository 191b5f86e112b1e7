package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// runsFlags holds the values of the flags of runs.
type runsFlags struct {
	all    bool
	limit  *int
	before string
	states []string

	pipeline string
	labels   []string
	text     string
	minCost  float64
	since    since
}

func (a *app) runs(c *cobra.Command) {
	var flags runsFlags
	a.overStore(c, func(ctx context.Context, s *store, _ []string) error {
		rows, now, last := newRunTable(), time.Now(), ""
		out, before := bufio.NewWriter(a.Stdout), "[\n  " // Flush reports its errors
		n, more, err := flags.chosen(ctx, s, func(r journal.RunInfo) (err error) {
			if last = r.ID; a.json {
				err = writeJSON(out, before, "  ", r)
				before = ",\n  "
			} else {
				addRun(rows, r, now)
			}
			return err
		})
		switch {
		case err != nil:
			return errors.Join(err, output(out.Flush()))
		case n == 0 && a.json:
			_, _ = out.WriteString("[]\n")
		case n == 0:
			a.complain("no matching runs in %s", s.file)
		case a.json:
			_, _ = out.WriteString("\n]\n")
		}
		if err = out.Flush(); err == nil && !a.json {
			err = rows.print(a.Stdout, a.columns())
		}
		if more && err == nil {
			a.complain("… older runs: %s", a.command(s, append(a.nextPage(flags), "--before", last)...))
		}
		return output(err)
	})
	a.chooseFlags(&flags, c, "list")
	a.jsonFlag(c.Flags(), "the runs as a JSON array")
	c.Flags().StringVar(&flags.before, "before", "", "list the runs that follow `RUN`: the next page")
	_ = c.RegisterFlagCompletionFunc("before", a.runNames) // registering fails only for an unknown flag
}

// chooseFlags adds the flags that select the runs on which a command acts.
func (a *app) chooseFlags(flags *runsFlags, c *cobra.Command, does string) {
	c.Flags().BoolVar(&flags.all, "all", false, does+" all runs")
	flags.limit = new(pageOfRuns)
	c.Flags().Var(&quantity[int]{&flags.limit, 1}, "limit", does+" at most `N` runs")
	c.Flags().Var(&flags.since, "since", does+" only runs started at or after `TIME`: 2026-11-28, 2026-11-28T15:04, or 7d, 12h or 90m ago")
	a.filterFlags(flags, c, does)
}

// filterFlags adds the flags that filter runs.
func (a *app) filterFlags(flags *runsFlags, c *cobra.Command, does string) {
	f := c.Flags()
	f.StringSliceVar(&flags.states, "state", nil, does+" only runs in these `STATES`: "+strings.Join(stateNames(), ", "))
	f.StringVar(&flags.pipeline, "pipeline", "", does+" only runs of the pipeline `NAME`")
	f.StringArrayVar(&flags.labels, "label", nil, does+" only runs with the label `NAME=VALUE`; may be repeated")
	f.StringVar(&flags.text, "failure", "", does+" only runs whose failure has `TEXT` in its kind, path or reason")
	f.Var(&quantity[float64]{to: new(&flags.minCost)}, "min-cost", does+" only runs that cost at least `USD`")
	// Registering fails only for an unknown flag.
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
}

// chosen calls do for each run that the flags select, up to the limit. It returns the number of these runs, and whether the flags
// select more.
func (flags runsFlags) chosen(ctx context.Context, s *store, do func(journal.RunInfo) error) (n int, more bool, err error) {
	q, err := flags.query(ctx, s)
	if err != nil {
		return 0, false, err
	}
	for r, err := range s.each(ctx, q) {
		if err != nil {
			return n, false, failed("%w", err)
		}
		if more = !flags.all && n == *flags.limit; more {
			break
		}
		if err := do(r); err != nil {
			return n, false, err
		}
		n++
	}
	return n, more, nil
}

// nextPage returns the command line that lists the next page of runs.
func (a *app) nextPage(flags runsFlags) []string {
	words := []string{"runs"}
	if *flags.limit != pageOfRuns {
		words = append(words, fmt.Sprint("--limit=", *flags.limit))
	}
	if len(flags.states) > 0 {
		words = append(words, "--state="+strings.Join(flags.states, ","))
	}
	if flags.pipeline != "" {
		words = append(words, quoted("--pipeline="+flags.pipeline))
	}
	for _, label := range flags.labels {
		words = append(words, quoted("--label="+label))
	}
	if flags.text != "" {
		words = append(words, quoted("--failure="+flags.text))
	}
	if at := flags.since.String(); at != "" {
		words = append(words, "--since="+at)
	}
	if flags.minCost > 0 {
		words = append(words, fmt.Sprint("--min-cost=", flags.minCost))
	}
	if a.json {
		words = append(words, "--json")
	}
	return words
}

func stateNames() (names []string) {
	for _, s := range view.States {
		names = append(names, string(s))
	}
	return names
}

func (flags runsFlags) query(ctx context.Context, s *store) (q journal.Query, err error) {
	for _, state := range flags.states {
		if !slices.Contains(view.States, journal.State(state)) {
			return q, fmt.Errorf("--state %s: want some of %s%s", state, strings.Join(stateNames(), ", "), suggest.Hint(state, slices.Values(stateNames())))
		}
		q.States = append(q.States, journal.State(state))
	}
	if q.Labels, err = pairs("label", flags.labels); err != nil {
		return q, err
	}
	q.Pipeline, q.Text, q.MinCost, q.Since = flags.pipeline, flags.text, flags.minCost, time.Time(flags.since)
	if !flags.all {
		q.Limit = min(*flags.limit, pageRead-1) + 1 // one more than shown, to know whether another page follows
	}
	if flags.before != "" {
		before, err := s.find(ctx, flags.before)
		if err != nil {
			return q, fmt.Errorf("--before: %w", err)
		}
		q.Before = before.ID
	}
	return q, nil
}

// pageOfRuns is the default number of runs in a list.
const pageOfRuns = 20

// maxName is the maximum length at which a pipeline's name is shown in a list.
const maxName = 16

func newRunTable() *table {
	rows := newTable("RUN", "PIPELINE", "STATE", "STARTED", ">DURATION", ">STEPS", ">TOKENS", ">COST", "FAILURE")
	rows.lines = 3
	return rows
}

func addRun(rows *table, info journal.RunInfo, now time.Time) {
	r, steps := view.Head{RunInfo: info}, ""
	if n := r.Results(); n > 0 {
		steps = strconv.Itoa(n)
	}
	rows.add(r.ID, text.Cut(text.Line(r.Pipeline), maxName), stateOf(r), moment(r.Started, now), took(r.Started, r.Until(now)),
		steps, tokens(r.Usage.Usage), total(r.Usage), failureOf(r))
}

// stateOf returns the state of a run as text, with the number of lost lanes if there are any.
func stateOf(r view.Head) string {
	if lost := r.Lanes.String(); lost != "" {
		return string(r.State) + ", " + lost
	}
	return string(r.State)
}

func failureOf(r view.Head) string {
	why := r.Why()
	if why == nil {
		return ""
	}
	return text.Line((&stone.Failure{Kind: kind.Kind(why.Kind), Path: why.Path, Reason: why.Reason}).Error())
}
