package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// gcFlags are the flags of gc.
type gcFlags struct {
	db     string
	keep   int
	older  age
	goesOn bool
	dry    bool
}

func (a *app) gc() *cobra.Command {
	flags := gcFlags{keep: -1}
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove old runs",
		Long: "Gc removes all but the newest --keep runs, runs older than --older-than, or, given both, runs that\n" +
			"match both. It keeps running runs. Without --resumable it also keeps runs that can continue:\n" +
			"waiting, answered, interrupted, drained and refused ones. Results that other runs have reused stay\n" +
			"available to them. The file does not shrink, but its space is reused.",
		Example:           a.example("runs gc --keep 100", "runs gc --older-than 30d --dry-run"),
		Args:              none,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("keep") && !c.Flags().Changed("older-than") {
				return errors.New("say which runs to remove: --keep N, --older-than AGE or both")
			}
			if c.Flags().Changed("keep") && flags.keep < 0 {
				return fmt.Errorf("--keep %d: want 0 or more", flags.keep)
			}
			return a.withStore(c.Context(), flags.db, func(s *store) error { return a.collect(c.Context(), s, flags, time.Now()) })
		},
	}
	f := c.Flags()
	dbFlag(f, &flags.db)
	f.IntVar(&flags.keep, "keep", -1, "keep the newest `N` runs")
	f.Lookup("keep").DefValue = "0" // which help does not print
	f.Var(&flags.older, "older-than", "remove runs started longer ago, such as 12h or 30d")
	f.BoolVar(&flags.goesOn, "resumable", false, "also remove runs that can continue: waiting, answered, interrupted, drained, refused")
	f.BoolVar(&flags.dry, "dry-run", false, "list what would be removed")
	return c
}

func (a *app) collect(ctx context.Context, s *store, flags gcFlags, now time.Time) error {
	runs, err := s.Runs(ctx, journal.Query{Limit: everything})
	if err != nil {
		return failed("%w", err)
	}
	var old []journal.RunInfo
	for i, r := range runs {
		if flags.dooms(r, i, now) {
			old = append(old, r)
		}
	}
	if flags.dry {
		a.complain("%s of %d would be removed", text.Plural(len(old), "run"), len(runs))
		return output(printTable(a.Stdout, a.columns(), runColumns(old, now)))
	}
	removed := 0
	for _, r := range old {
		err := s.Remove(ctx, r.ID)
		switch {
		case errors.As(err, new(*journal.HeldError)), errors.Is(err, journal.ErrNoRun): // it was resumed or removed meanwhile
			a.complain("%v", err)
		case err != nil:
			return failed("%s removed, then: %w", text.Plural(removed, "run"), err)
		default:
			removed++
		}
	}
	_, err = fmt.Fprintf(a.Stdout, "removed %s, kept %d\n", text.Plural(removed, "run"), len(runs)-removed)
	return output(err)
}

// dooms reports whether a run is to be removed, which so many younger ones follow.
func (flags gcFlags) dooms(r journal.RunInfo, younger int, now time.Time) bool {
	return r.State != journal.Running && (flags.goesOn || !slices.Contains(goOn, r.State)) &&
		(flags.keep < 0 || younger >= flags.keep) &&
		(flags.older == 0 || now.Sub(r.Started) > time.Duration(flags.older))
}

// goOn are the states of runs that are kept although they are old: they can be
// resumed, and their finished steps were paid for.
var goOn = []journal.State{journal.Waiting, journal.Answered, journal.Interrupted, journal.Drained, journal.Refused}

// age is the value of a flag: a duration that may be in days.
type age time.Duration

func (a *age) Type() string { return "AGE" }

func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

func (a *age) Set(s string) error {
	d, err := time.ParseDuration(s)
	if days, found := strings.CutSuffix(s, "d"); found {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(n * 24 * float64(time.Hour))
	}
	if err != nil || d <= 0 {
		return errors.New("want an age as 30d, 12h or 90m")
	}
	*a = age(d)
	return nil
}
