package cli

import (
	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/trace"
)

func (a *app) trace(c *cobra.Command) { c.Annotations = map[string]string{onlyFailed: "yes"} }

func (a *app) tally(c *cobra.Command) {
	c.RunE = func(_ *cobra.Command, args []string) error { return a.traces().RunTally(args[0]) }
}

func (a *app) lifecycle(c *cobra.Command) {
	c.RunE = func(_ *cobra.Command, args []string) error { return a.traces().RunLifecycle(args[0]) }
}

func (a *app) payload(c *cobra.Command) {
	var opts trace.PayloadOptions
	c.RunE = func(_ *cobra.Command, args []string) error { return a.traces().RunPayload(args[0], opts) }
	f := c.Flags()
	f.StringVar(&opts.Ashlar, "ashlar", "", "only of the ashlar `NAME`")
	f.Var(most(&opts.Turn), "turn", "only of the model's turn `N`")
	f.BoolVar(&opts.Last, "last", false, "show the last match, not the first")
}

func (a *app) traces() trace.Command { return trace.Command{Out: a.Stdout, Err: a.Stderr} }
