package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/webhook"
	"github.com/stonelayer/stone/journal"
)

// gcFlags are the flags of gc.
type gcFlags struct {
	of     runsFlags
	keep   int
	older  age
	bytes  size
	pack   age
	goesOn bool
	dry    bool
}

func (a *app) gc() *cobra.Command {
	flags := gcFlags{keep: -1, of: runsFlags{all: true}}
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove old runs",
		Long: "Gc removes all but the newest --keep runs, runs older than --older-than, or, given both, runs that\n" +
			"match both: of all runs, or of those that the other flags choose. With --compress it then compresses the contents\n" +
			"of older runs that have ended. With --keep-bytes it then removes the oldest runs, but none of the newest --keep,\n" +
			"until the database uses at most SIZE. It keeps running runs. Without --resumable it also keeps runs that can continue:\n" +
			"waiting, answered, interrupted, drained and refused ones. The receivers of a run go\n" +
			"with it, and neither they nor notices count for --keep. Results that other runs have reused stay\n" +
			"available to them. The file does not shrink, but its space is reused.",
		Example:           a.example("runs gc --keep 100", "runs gc --older-than 30d --state failed --dry-run", "runs gc --keep-bytes 20GB", "runs gc --older-than 90d --compress 7d"),
		Args:              none,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case !c.Flags().Changed("keep") && !c.Flags().Changed("older-than") && flags.bytes == 0 && flags.pack == 0:
				return errors.New("say which runs to remove: --keep N, --older-than AGE or both, or --keep-bytes SIZE; or which to compress: --compress AGE")
			case flags.bytes > 0 && flags.dry:
				return errors.New("--dry-run cannot say what --keep-bytes removes: how much space a run needs is known when it is gone")
			case flags.pack > 0 && flags.dry:
				return errors.New("--dry-run cannot say what --compress saves: leave one of them out")
			}
			if c.Flags().Changed("keep") && flags.keep < 0 {
				return fmt.Errorf("--keep %d: want 0 or more", flags.keep)
			}
			return a.withStore(c.Context(), flags.of.db, func(s *store) error { return a.collect(c.Context(), s, flags, time.Now()) })
		},
	}
	f := c.Flags()
	flags.of.filter(c, "remove")
	f.IntVar(&flags.keep, "keep", -1, "keep the newest `N` runs")
	f.Lookup("keep").DefValue = "0" // which help does not print
	f.Var(&flags.older, "older-than", "remove runs started longer ago, such as 12h or 30d")
	f.Var(&flags.bytes, "keep-bytes", "remove the oldest runs until the database needs at most `SIZE`, such as 500MB or 20GB")
	f.Var(&flags.pack, "compress", "compress the contents of ended runs that were started longer ago, such as 7d")
	f.BoolVar(&flags.goesOn, "resumable", false, "also remove runs that can continue: waiting, answered, interrupted, drained, refused")
	f.BoolVar(&flags.dry, "dry-run", false, "list what would be removed")
	return c
}

func (a *app) collect(ctx context.Context, s *store, flags gcFlags, now time.Time) error {
	q, err := flags.of.query(ctx, s)
	if err != nil {
		return err
	}
	if flags.of.pipeline == "" {
		q.Without = "" // the notices of webhooks, too
	}
	space, inFile := s.Store.(interface {
		Used(ctx context.Context) (bytes int64, err error)
	})
	if flags.bytes > 0 && !inFile {
		return errors.New("--keep-bytes needs a file: PostgreSQL frees space when it vacuums, so remove runs --older-than an age")
	}
	var rest []string                // the newest first, if more of them may be removed
	var old, parts []journal.RunInfo // old ones if they are only to be listed
	var gone []string                // runs whose parts the query may leave out
	some := q.Pipeline != "" || len(q.States)+len(q.Labels) > 0 || q.Text != "" || q.MinCost > 0
	read, younger, removed := 0, 0, 0
	remove := func(r journal.RunInfo) error {
		if outer, _, inner := strings.Cut(r.ID, "/"); inner { // the outer run would do it again
			if o, err := s.Find(ctx, outer); err == nil && o.ID == outer && !flags.ends(o) {
				return nil
			}
		}
		if some {
			gone = append(gone, r.ID)
		}
		if flags.dry {
			old = append(old, r)
			return nil
		}
		err := s.Remove(ctx, r.ID)
		if errors.As(err, new(*journal.HeldError)) || errors.Is(err, journal.ErrNoRun) { // it was resumed or removed meanwhile
			a.complain("%v", err)
			return nil
		}
		if err == nil {
			removed++
		}
		return err
	}
	for r, err := range s.each(ctx, q) {
		switch read++; {
		case errors.Is(err, journal.ErrNoRun):
			a.complain("%v", err)
			read--
			continue
		case err == nil && isPart(r):
			parts = append(parts, r)
			continue
		case err == nil && flags.dooms(r, younger, now):
			err = remove(r)
		case err == nil && flags.bytes > 0 && flags.ends(r) && younger >= flags.keep:
			rest = append(rest, r.ID)
		}
		if err != nil {
			return failed("%s removed, then: %w", text.Plural(removed, "run"), err)
		}
		if flags.of.pipeline != "" || !strings.HasPrefix(r.Pipeline, webhook.Runs) { // notices do not count
			younger++
		}
	}
	if err := a.compress(ctx, s, q, time.Duration(flags.pack), now); err != nil {
		return failed("%s removed, then: %w", text.Plural(removed, "run"), err)
	}
	for _, id := range slices.Backward(rest) {
		used, err := space.Used(ctx)
		if err == nil && used <= int64(flags.bytes) {
			break
		}
		if err == nil {
			err = remove(journal.RunInfo{ID: id})
		}
		if err != nil {
			return failed("%s removed, then: %w", text.Plural(removed, "run"), err)
		}
	}
	for _, of := range gone {
		more, err := s.partsOf(ctx, of)
		if err != nil {
			return failed("%s removed, then: %w", text.Plural(removed, "run"), err)
		}
		for _, r := range more {
			if !slices.ContainsFunc(parts, func(known journal.RunInfo) bool { return known.ID == r.ID }) {
				read++
				parts = append(parts, r)
			}
		}
	}
	for _, r := range parts { // they go with their runs
		of := partOf(r)
		run, err := s.Find(ctx, of)
		if err == nil && run.ID == of && !slices.ContainsFunc(old, func(r journal.RunInfo) bool { return r.ID == of }) {
			continue
		}
		if err == nil || errors.Is(err, journal.ErrNoRun) || errors.As(err, new(*journal.AmbiguousError)) {
			err = remove(r)
		}
		if err != nil {
			return failed("%s removed, then: %w", text.Plural(removed, "run"), err)
		}
	}
	if flags.dry {
		a.complain("%s of %d would be removed", text.Plural(len(old), "run"), read)
		return output(printTable(a.Stdout, a.columns(), runColumns(old, now)))
	}
	if _, err = fmt.Fprintf(a.Stdout, "removed %s, kept %d\n", text.Plural(removed, "run"), read-removed); err != nil || flags.bytes == 0 {
		return output(err)
	}
	used, err := space.Used(ctx)
	if err != nil {
		return failed("%w", err)
	}
	if used > int64(flags.bytes) {
		return failed("%s needs %s, and none of the chosen runs that are left may be removed", s.file, megabytes(used))
	}
	return nil
}

// isPart reports whether a run keeps the receivers of another one.
func isPart(r journal.RunInfo) bool { return webhook.Keeps(r.Pipeline) }

// partOf returns the run to which such a run belongs.
func partOf(r journal.RunInfo) string { return r.Labels[webhook.Receives] }

// partsOf returns the runs that belong to another one.
func (s *store) partsOf(ctx context.Context, of string) (all []journal.RunInfo, err error) {
	for r, err := range s.each(ctx, journal.Query{Labels: map[string]string{webhook.Receives: of}}) {
		if err != nil {
			return nil, err
		}
		if isPart(r) {
			all = append(all, r)
		}
	}
	return all, nil
}

// compress compresses the contents of the runs that are older than an age, if it is not 0, and says what that saves.
func (a *app) compress(ctx context.Context, s *store, q journal.Query, older time.Duration, now time.Time) error {
	if older == 0 {
		return nil
	}
	if start := now.Add(-older); q.Until.IsZero() || start.Before(q.Until) {
		q.Until = start
	}
	n, before, after := 0, int64(0), int64(0)
	err := s.Compress(ctx, q, func(_ string, was, is int64) { n, before, after = n+1, before+was, after+is })
	if n > 0 || err == nil {
		if _, err := fmt.Fprintf(a.Stdout, "compressed %s: the contents had %s, now %s\n", text.Plural(n, "run"), megabytes(before), megabytes(after)); err != nil {
			return output(err)
		}
	}
	return err
}

// each yields the runs that a query selects, the newest first. They may be removed meanwhile, by other processes too. An error
// is the last thing that it yields.
func (s *store) each(ctx context.Context, q journal.Query) iter.Seq2[journal.RunInfo, error] {
	return func(yield func(journal.RunInfo, error) bool) {
		q.Limit = 1000
		page, err := s.Runs(ctx, q)
		for more := len(page) == q.Limit; len(page) > 0 || err != nil; {
			var next []journal.RunInfo // is read before the run that it follows is removed
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

// after returns the page after another one, and whether one more may follow. Runs at the end of the first page may be gone.
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

// dooms reports whether a run is to be removed, which so many younger ones follow.
func (flags gcFlags) dooms(r journal.RunInfo, younger int, now time.Time) bool {
	return flags.ends(r) && (flags.keep >= 0 || flags.older > 0) && younger >= flags.keep &&
		(flags.older == 0 || now.Sub(r.Started) > time.Duration(flags.older))
}

// ends reports whether a run may be removed, however young it is.
func (flags gcFlags) ends(r journal.RunInfo) bool {
	return r.State != journal.Running && (flags.goesOn || !slices.Contains(goOn, r.State))
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

// size is the value of a flag: a number of bytes with a unit.
type size int64

var units = []struct {
	name  string
	bytes float64
}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}}

func (n *size) Type() string { return "SIZE" }

func (n *size) String() string {
	if *n == 0 {
		return ""
	}
	return megabytes(int64(*n))
}

func (n *size) Set(s string) error {
	for _, u := range units {
		number, found := strings.CutSuffix(strings.ToUpper(s), u.name)
		if !found {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(number), 64); err == nil && v > 0 && v*u.bytes < math.MaxInt64 {
			*n = size(v * u.bytes)
			return nil
		}
	}
	return errors.New("want a size as 500MB or 20GB")
}
