package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// gcFlags holds the values of gc's flags.
type gcFlags struct {
	of     runsFlags
	keep   *int // number of newest runs to keep; nil means that --keep is not set
	older  age
	goesOn bool
	dry    bool
}

func (a *app) gc(c *cobra.Command) {
	flags := gcFlags{of: runsFlags{all: true}}
	a.overStore(c, func(ctx context.Context, s *store, _ []string) error {
		if flags.keep == nil && !c.Flags().Changed("older-than") {
			return errors.New("say which runs to remove: --keep N, --older-than AGE or both")
		}
		q, err := flags.of.query(ctx, s)
		if err != nil {
			return err
		}
		now := time.Now()
		old, read, removed := newRunTable(), 0, 0 // old lists the runs to remove in a dry run
		for r, err := range s.each(ctx, q) {
			if errors.Is(err, journal.ErrNoRun) {
				a.complain("%v", err)
				continue
			}
			younger := read
			if outer, _, inner := strings.Cut(r.ID, "/"); inner && err == nil { // the outer run may be kept, and would repeat this one
				if o, err := s.Find(ctx, outer); err == nil && o.ID == outer && !flags.ends(o) {
					read++
					continue
				}
			}
			if read++; err == nil && flags.dooms(r, younger, now) {
				if flags.dry {
					addRun(old, r, now)
					continue
				}
				switch err = s.Remove(ctx, r.ID); {
				case errors.As(err, new(*journal.HeldError)) || errors.Is(err, journal.ErrNoRun): // the run was resumed or removed meanwhile
					a.complain("%v", err)
					err = nil
				case err == nil:
					removed++
				}
			}
			if err != nil {
				return failed("%s removed, then: %w", text.Plural(removed, "run"), err)
			}
		}
		if flags.dry {
			a.complain("%s of %d would be removed", text.Plural(len(old.rows), "run"), read)
			return output(old.print(a.Stdout, a.columns()))
		}
		_, err = fmt.Fprintf(a.Stdout, "removed %s, kept %d\n", text.Plural(removed, "run"), read-removed)
		return output(err)
	})
	f := c.Flags()
	a.filterFlags(&flags.of, c, "remove")
	f.Var(most(&flags.keep), "keep", "keep the newest `N` runs")
	f.Var(&flags.older, "older-than", "remove runs started longer ago, such as 12h or 30d")
	f.BoolVar(&flags.goesOn, "resumable", false, "also remove runs that can continue: waiting, answered, interrupted, drained, refused")
	f.BoolVar(&flags.dry, "dry-run", false, "list what would be removed")
}

// pageRead is the number of runs read at a time.
const pageRead = 1000

// each returns an iterator over the runs that a query selects, newest first. Other processes may remove runs meanwhile. An error
// ends the iteration.
func (s *store) each(ctx context.Context, q journal.Query) iter.Seq2[journal.RunInfo, error] {
	return func(yield func(journal.RunInfo, error) bool) {
		q.Limit = cmp.Or(q.Limit, pageRead)
		page, err := s.Runs(ctx, q)
		for more := len(page) == q.Limit; len(page) > 0 || err != nil; {
			var next []journal.RunInfo // read the next page before the last run of this one is removed
			var failed error
			if more && err == nil {
				next, more, failed = s.after(ctx, q, page)
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
			}
			if err != nil {
				yield(journal.RunInfo{}, err)
				return
			}
			page, err = next, failed
		}
	}
}

// after returns the page that follows another page, and whether a further page may follow. Runs at the end of the first page may
// have been removed.
func (s *store) after(ctx context.Context, q journal.Query, page []journal.RunInfo) (next []journal.RunInfo, more bool, err error) {
	for i := len(page) - 1; i >= 0; i-- {
		q.Before = page[i].ID
		if next, err = s.Runs(ctx, q); errors.Is(err, journal.ErrNoRun) {
			continue
		}
		more = len(next) == q.Limit
		return slices.DeleteFunc(next, func(r journal.RunInfo) bool {
			return slices.ContainsFunc(page[i+1:], func(known journal.RunInfo) bool { return known.ID == r.ID })
		}), more, err
	}
	return nil, false, err
}

// dooms reports whether the flags select a run for removal, given the number of newer runs.
func (flags gcFlags) dooms(r journal.RunInfo, younger int, now time.Time) bool {
	return flags.ends(r) && (flags.keep == nil || younger >= *flags.keep) &&
		(flags.older == 0 || now.Sub(r.Started) > time.Duration(flags.older))
}

// ends reports whether the state of a run permits its removal.
func (flags gcFlags) ends(r journal.RunInfo) bool {
	return r.State != journal.Running && (flags.goesOn || !slices.Contains(goOn, r.State))
}

// goOn lists the states of runs that gc keeps at any age unless a flag includes them. Such runs can be resumed, and their
// finished steps have been paid for.
var goOn = []journal.State{journal.Waiting, journal.Answered, journal.Interrupted, journal.Drained, journal.Refused}
