package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stonelayer/stone/cli/internal/publish"
)

// modelsFlag adds the flag that allows models to answer questions.
func modelsFlag(f *pflag.FlagSet, models *bool) {
	f.BoolVar(models, "model-may-answer", false, "let the model of an MCP client answer questions, even questions that guard the model's own actions")
}

// oneClient sets up a command that serves a single client over standard input and output, which acts on behalf of the user.
func (a *app) oneClient(c *cobra.Command) {
	var models bool
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.withPublished(c, args, func(all []publish.Pipeline) error {
			cfg := publish.Config{Pipelines: all, By: user(), Models: models, Protocols: a.linked.protocols}
			return a.publish(c, 0, cfg, func(ctx context.Context, cfg publish.Config) error {
				if terminal(a.Stdin) != nil {
					a.complain("%s is waiting for a client on standard input: configure your client to start %q", c.CommandPath(), strings.Join(append([]string{a.Name}, a.Args...), " "))
				}
				return a.linked.server.Client(ctx, c.Name(), cfg, a.Stdin, a.Stdout)
			})
		})
	}
	f := c.Flags()
	a.dbFlag(f)
	a.graceFlag(f)
	a.trustFlag(f)
	a.accessFlags(f)
	budgetFlags(f, &a.calls.budget)
	if c.Name() == "mcp" {
		modelsFlag(f, &models)
	}
}
