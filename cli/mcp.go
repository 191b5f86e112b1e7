package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/internal/publish"
)

func (a *app) mcp() *cobra.Command {
	var db string
	var grace time.Duration
	c := &cobra.Command{
		Use:   "mcp [flags] [-- ARG…]",
		Short: "Serve pipelines as tools to a client of the Model Context Protocol",
		Long: "Mcp serves pipelines as tools to one client, over standard input and output: a client such as an editor\n" +
			"or an assistant starts the command by itself. Runs are durable, as those of serve, which has the same\n" +
			"tools at /mcp. The client may do everything that the flags and the configuration grant.",
		Example:               a.example("mcp ./triage", "mcp ./triage plan.edn --max-usd 2"),
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return a.withPublished(c, args, func(all []publish.Pipeline) error {
				return a.publish(c, db, 0, publish.Config{Pipelines: all, Grace: grace, By: user()}, func(ctx context.Context, cfg publish.Config) error {
					return publish.MCP(ctx, cfg, a.Stdin, a.Stdout)
				})
			})
		},
	}
	if a.fromArgument() {
		c.Use = "mcp [flags] [PIPELINE…] [-- ARG…]"
		c.Long += publishedArgs
	}
	f := c.Flags()
	dbFlag(f, &db)
	graceFlag(f, &grace)
	a.trustFlag(f)
	a.callFlags(f)
	return c
}
