package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stonelayer/stone/cli/internal/publish"
)

// modelsFlag adds the flag that lets models answer.
func modelsFlag(f *pflag.FlagSet, models *bool) {
	f.BoolVar(models, "model-may-answer", false, "let the model of an MCP client answer questions, also those that guard what it does")
}

func (a *app) mcp() *cobra.Command {
	var db string
	var grace time.Duration
	var models bool
	c := &cobra.Command{
		Use:   "mcp [flags] [-- ARG…]",
		Short: "Serve pipelines as tools to a client of the Model Context Protocol",
		Long: "Mcp serves pipelines as tools to one client, over standard input and output: a client such as an editor\n" +
			"or an assistant starts the command by itself. Runs are durable, as with serve, which has the same\n" +
			"tools at /mcp. The client may do everything that the flags and the configuration grant. Questions are\n" +
			"answered by its user, never by its model, unless --model-may-answer is given.",
		Example:               a.example("mcp ./triage", "mcp ./triage plan.edn --max-usd 2"),
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return a.withPublished(c, args, func(all []publish.Pipeline) error {
				return a.publish(c, db, 0, publish.Config{Pipelines: all, Grace: grace, By: user(), Models: models}, func(ctx context.Context, cfg publish.Config) error {
					return a.linked.server.MCP(ctx, cfg, a.Stdin, a.Stdout)
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
	modelsFlag(f, &models)
	a.trustFlag(f)
	a.callFlags(f)
	return c
}
