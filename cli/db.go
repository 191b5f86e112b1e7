package cli

import "github.com/spf13/cobra"

func (a *app) db() *cobra.Command {
	c := &cobra.Command{
		Use:   "db",
		Short: "Back up and check a database of runs",
		Long:  "Db copies a database of runs and checks it for damage. The first run makes the tables.",
		Args:  unknown,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.backup(), a.dbCheck())
	return c
}
