package cli

import (
	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/publish"
)

func (a *app) acp(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.serveOne(c, args, publish.Config{Protocols: a.linked.protocols}, a.linked.server.ACP)
	}
	a.describeOne(c)
}
