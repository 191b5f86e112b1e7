package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

func (a *app) backup(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, args []string) error {
		as := sqlite.Options{ReadOnly: true}
		return a.withStoreAs(c.Context(), "", as, func(s *store) error {
			file, ok := s.Store.(interface {
				Backup(ctx context.Context, name string) (int64, error)
			})
			if !ok {
				return errors.New("copies of PostgreSQL databases are made by its own program: pg_dump --format=custom --file=FILE")
			}
			size, err := file.Backup(c.Context(), args[0])
			if err != nil {
				return failed("%w", err)
			}
			_, err = fmt.Fprintf(a.Stdout, "copied %s to %s, %s\n", s.file, args[0], megabytes(size))
			return output(err)
		})
	}
	a.dbFlag(c.Flags())
}

// checkReport is the JSON of db check.
type checkReport struct {
	Database string   `json:"database"`
	Runs     int      `json:"runs"`
	Records  int      `json:"records"`
	Damage   []damage `json:"damage"`
}

type damage struct {
	Run    string `json:"run,omitempty"`
	Path   string `json:"path,omitempty"`
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason"`
}

// mostDamage bounds what is printed: a file may be damaged everywhere.
const mostDamage = 1000

func (a *app) dbCheck(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, _ []string) error {
		at := &store{file: storeName(a.db)}
		info, missing := os.Stat(at.file)
		if missing == nil && info.Mode().IsRegular() && info.Size() == 0 { // opening it would make a database of it
			return failed("database %s is empty: it has no tables", at.file)
		}
		if at.file == "" && at.inProject(false) == nil {
			_, missing = os.Stat(at.file)
		}
		s, err := a.openStore(c.Context(), "", false, sqlite.Options{ReadOnly: true})
		switch {
		case err != nil && missing == nil: // it is there, and so damaged that it does not open
			return failed("%w", err)
		case err != nil:
			return err
		}
		return errors.Join(a.check(c.Context(), s), s.Close())
	}
	a.dbFlag(c.Flags())
	a.jsonFlag(c.Flags(), "the result as JSON")
}

func (a *app) check(ctx context.Context, s *store) error {
	report := checkReport{Database: s.file, Damage: []damage{}}
	all := 0
	var unsaid error
	var err error
	report.Runs, report.Records, err = s.Check(ctx, func(e *journal.DamageError) {
		if all++; all > mostDamage {
			return
		}
		report.Damage = append(report.Damage, damage{e.Run, e.Path, e.Node, e.Reason})
		if !a.json {
			if _, err := fmt.Fprintln(a.Stdout, text.Line(e.Error())); unsaid == nil {
				unsaid = err
			}
		}
	})
	if err != nil {
		return failed("%w", err)
	}
	switch {
	case a.json:
		err = printJSON(a.Stdout, report)
	case all == 0:
		_, err = fmt.Fprintf(a.Stdout, "%s: %s, %s, no damage\n", s.file, text.Plural(report.Runs, "run"), text.Plural(report.Records, "record"))
	}
	if err = errors.Join(unsaid, err); err != nil {
		return output(err)
	}
	if all > 0 {
		return failed("%s of %s in %s: restore a copy, or remove the damaged runs", text.Plural(all, "damage"), text.Plural(report.Runs, "run"), s.file)
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
