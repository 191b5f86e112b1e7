package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/text"
)

func (a *app) config() *cobra.Command {
	c := &cobra.Command{
		Use:     "config",
		Short:   "Check the configuration, or print an example",
		Example: a.example("config check", "config example > .stone/stone.edn"),
		Args:    unknown,
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("%s needs a command: check or example", c.CommandPath())
		},
	}
	c.AddCommand(a.configCheck(), &cobra.Command{
		Use:     "example",
		Short:   "Print a commented example configuration",
		Example: a.example("config example > .stone/stone.edn"),
		Args:    none,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.Stdout, config.Example)
			return output(err)
		},
	})
	return c
}

func (a *app) configCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report every fault of the configuration",
		Long: "Check reads FILE, or the configuration of the project, and prints every fault with its place. The\n" +
			"exit code is 2 if there are faults. Missing secrets are only warnings. Nothing is started and no\n" +
			"request is sent.",
		Example: a.example("config check", "config check staging.edn"),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("unexpected argument %q: %s takes one FILE", args[1], c.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.calls.config = args[0]
			}
			return a.checkConfig()
		},
	}
}

func (a *app) checkConfig() error {
	conf, err := a.configured()
	if invalid, ok := errors.AsType[*config.Invalid](err); ok {
		for _, line := range invalid.Lines() {
			if _, err := fmt.Fprintln(a.Stdout, text.Line(line)); err != nil {
				return output(err)
			}
		}
		return &exitError{code: Usage}
	}
	if err != nil {
		return err
	}
	defer a.closeCalls()
	if conf.File == "" {
		return errors.New("there is no .stone/stone.edn here or above: name a FILE, or start with the one that config example prints")
	}
	if a.calls.config == "" {
		if _, err := settings(); err != nil { // of the same directory
			return err
		}
	}
	for _, s := range conf.Secrets {
		if _, err := s.Read(); err != nil {
			if _, err := fmt.Fprintf(a.Stdout, "warning: %s\n", text.Line(err.Error())); err != nil {
				return output(err)
			}
		}
	}
	_, err = fmt.Fprintf(a.Stdout, "%s is valid: %s, %s, %s.\n",
		conf.File, text.Plural(len(conf.Capabilities), "capability"), text.Plural(len(conf.Tools), "tool"), text.Plural(conf.Checks, "check"))
	return output(err)
}
