package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/trace"
)

func (a *app) trace() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Inspect or export the trace file of a run",
		Long: "Trace reads the file that run --trace wrote. It shows what happened in the run, or sends it to an\n" +
			"OpenTelemetry collector. Lines that cannot be read are reported and skipped.",
		Example:     a.example("trace lifecycle run.jsonl", "trace export --otlp http://127.0.0.1:4318 run.jsonl"),
		Annotations: map[string]string{onlyFailed: "yes"},
		Args:        unknown,
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("%s needs a command: tally, lifecycle, payload or export, and a trace file", c.CommandPath())
		},
	}
	command := trace.Command{Out: a.Stdout, Err: a.Stderr}
	for _, sub := range []*cobra.Command{
		inspection("tally", "Count the events by type", command.RunTally),
		inspection("lifecycle", "Print the events of a run, one per line", command.RunLifecycle),
		payload(command),
	} {
		sub.Example = a.example("trace " + sub.Name() + " run.jsonl")
		c.AddCommand(sub)
	}
	c.AddCommand(a.export())
	return c
}

func payload(command trace.Command) *cobra.Command {
	var opts trace.PayloadOptions
	c := inspection("payload", "Show the request that a model was sent", func(path string) error {
		return command.RunPayload(path, opts)
	})
	f := c.Flags()
	f.StringVar(&opts.Ashlar, "ashlar", "", "only of the ashlar `NAME`")
	f.Var(most(&opts.Turn), "turn", "only of the model's turn `N`")
	f.BoolVar(&opts.Last, "last", false, "show the last match, not the first")
	return c
}

// inspection makes a command that answers a question about a trace file.
func inspection(name, short string, run func(path string) error) *cobra.Command {
	return overTrace(name, short, func(_ context.Context, path string) error { return run(path) })
}

// overTrace makes a command that works on a trace file.
func overTrace(use, short string, run func(ctx context.Context, path string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use + " FILE",
		Short: short,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fmt.Errorf("the trace file is missing: %s FILE", c.CommandPath())
			case len(args) > 1:
				return fmt.Errorf("unexpected argument %q: want one trace file", args[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return run(c.Context(), args[0]) },
	}
}
