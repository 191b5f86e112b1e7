package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

func (a *app) backup() *cobra.Command {
	var db string
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy a database to a new file while it is in use",
		Long: "Backup writes the state of one moment to a new file. Runs continue meanwhile. To restore a copy, stop\n" +
			"all processes of the database, move its three files away (stone.db, stone.db-wal, stone.db-shm), and copy\n" +
			"the backup to stone.db. Runs then resume from the last step that the copy has.",
		Example:           a.example("db backup stone-2026-11-27.db", "db backup copy.db --db runs.db"),
		Args:              oneFile,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(c *cobra.Command, args []string) error {
			as := sqlite.Options{ReadOnly: true}
			return a.withStoreAs(c.Context(), db, as, func(s *store) error {
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
		},
	}
	dbFlag(c.Flags(), &db)
	return c
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

// mostDamage bounds the printed lines: a file may be damaged everywhere.
const mostDamage = 1000

func (a *app) dbCheck() *cobra.Command {
	var db string
	var asJSON bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Read a whole database and report all damage",
		Long: "Check reads every row of a database and compares checksums, addresses of nodes, parents, numbers of\n" +
			"rows, tables and indexes. Runs may continue meanwhile. It changes nothing. The exit code is 1 if\n" +
			"it finds damage. Other runs of a damaged database still work; restore a copy for the damaged ones.",
		Example:           a.example("db check", "db check --db stone-2026-11-27.db --json"),
		Args:              none,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if isEmpty(db) {
				return failed("database %s is empty: it has no tables", storeName(db))
			}
			s, err := a.openStoreAs(c.Context(), db, "", false, sqlite.Options{ReadOnly: true})
			switch {
			case err != nil && isFile(db): // it is there, and so damaged that it does not open
				return failed("%w", err)
			case err != nil:
				return err
			}
			return errors.Join(a.check(c.Context(), s, asJSON), s.Close())
		},
	}
	dbFlag(c.Flags(), &db)
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// isEmpty reports whether a flag or the environment names an empty file, which opening would make a database of.
func isEmpty(flag string) bool {
	name := storeName(flag)
	if name == "" || redact.IsDatabase(name) {
		return false
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// isFile reports whether a flag, the environment or the project name a database that is an existing file.
func isFile(flag string) bool {
	s := &store{file: storeName(flag)}
	if redact.IsDatabase(s.file) || s.file == "" && s.inProject(false) != nil {
		return false
	}
	_, err := os.Stat(s.file)
	return err == nil
}

func (a *app) check(ctx context.Context, s *store, asJSON bool) error {
	report := checkReport{Database: s.file, Damage: []damage{}}
	all := 0
	var unsaid error
	var err error
	report.Runs, report.Records, err = s.Check(ctx, func(e *journal.DamageError) {
		if all++; all > mostDamage {
			return
		}
		report.Damage = append(report.Damage, damage{e.Run, e.Path, e.Node, e.Reason})
		if !asJSON {
			if _, err := fmt.Fprintln(a.Stdout, text.Line(e.Error())); unsaid == nil {
				unsaid = err
			}
		}
	})
	if err != nil {
		return failed("%w", err)
	}
	switch {
	case asJSON:
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

// oneFile wants the name of a file.
func oneFile(c *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return fmt.Errorf("want one FILE, the name of the copy: see %s --help", c.CommandPath())
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
