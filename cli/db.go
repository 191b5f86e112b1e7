package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/internal/redact"
)

func (a *app) db() *cobra.Command {
	c := &cobra.Command{
		Use:   "db",
		Short: "Back up, check and migrate a database of runs",
		Long:  "Db copies a database of runs, checks it for damage and, for PostgreSQL, migrates its tables. Files\nmigrate when they are opened.",
		Args:  unknown,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.backup(), a.dbCheck(), a.migrate())
	return c
}

func (a *app) migrate() *cobra.Command {
	var db string
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the tables of a database to the version of this program",
		Long: "Migrate changes the tables of a database that an older version of this program made. An empty\n" +
			"database needs no migration: the first run makes its tables. Processes of the version before keep\n" +
			"running until they exit, and do not start again. There is no way back but a copy of the database.",
		Example:           a.example("db migrate", "db migrate --db postgres://stone@db.example.com/stone"),
		Args:              none,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			name := storeName(db)
			switch {
			case !redact.IsDatabase(name):
				return fmt.Errorf("no PostgreSQL database is named: set %s or --db to postgres://USER@HOST/NAME", storeEnv)
			case a.linked.postgres == nil:
				return errNoPostgres
			}
			from, to, err := a.linked.postgres.Migrate(c.Context(), redact.FullDatabase(name, storeEnv))
			if err != nil {
				return failed("%w", err)
			}
			text := fmt.Sprintf("migrated %s from schema %d to %d", redact.Database(name), from, to)
			if from == to {
				text = fmt.Sprintf("%s already has schema %d", redact.Database(name), to)
			}
			_, err = fmt.Fprintln(a.Stdout, text)
			return output(err)
		},
	}
	dbFlag(c.Flags(), &db)
	return c
}
