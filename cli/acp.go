package cli

import (
	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/publish"
)

func (a *app) acp() *cobra.Command {
	c := &cobra.Command{
		Use:   "acp [flags] [-- ARG…]",
		Short: "Serve pipelines as an agent to an editor that speaks the Agent Client Protocol",
		Long: "Acp serves pipelines to one editor, over standard input and output: the editor starts the command by\n" +
			"itself. Each prompt is a run, so that sessions are durable: the editor loads them again, and show, diff and\n" +
			"resume work on their turns. With several pipelines, the mode of a session chooses one. The user of the editor\n" +
			"answers questions and approves tool calls, and may do everything that the flags and the configuration grant.",
		Example:               a.example("acp ./support", "acp :chat/answer --max-usd 2"),
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return a.serveOne(c, args, publish.Config{Protocols: a.linked.protocols}, a.linked.server.ACP)
		},
	}
	a.describeOne(c)
	return c
}
