package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/text"
)

func (a *app) configExample(c *cobra.Command) {
	c.RunE = func(*cobra.Command, []string) error {
		_, err := fmt.Fprint(a.Stdout, config.Example)
		return output(err)
	}
}

func (a *app) configCheck(c *cobra.Command) {
	c.RunE = func(_ *cobra.Command, args []string) error {
		a.calls.config = strings.Join(args, "")
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
			return errors.New("no .stone/stone.edn in this directory or above it: name a FILE, or start with the output of config example")
		}
		if a.calls.config == "" {
			s, err := settings() // the settings of the same directory
			if err != nil {
				return err
			}
			if _, err := os.Stat(s.Pipeline); err != nil {
				return fmt.Errorf("pipeline: %w", err)
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
}
