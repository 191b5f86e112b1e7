package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stonelayer/stone/internal/config"
	"github.com/stonelayer/stone/internal/load"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/kind"
)

// build builds the package of the PIPELINE argument and passes the command on to
// its program.
func (a *app) build(c *cobra.Command, before, after []string) error {
	switch {
	case len(before) == 0:
		return fmt.Errorf("PIPELINE is missing: name a Go package, as in %s ./examples/audit, or the file of a plan", c.CommandPath())
	case len(before) > 1:
		return fmt.Errorf("unexpected argument %q: want one PIPELINE, and its own arguments after --", before[1])
	}
	if err := onlyPlans(c, before[0]); err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	program, err := a.compile(c, before[0], signals)
	var refused *load.Error
	switch {
	case errors.As(err, &refused):
		return err
	case err != nil:
		return failed("%w", err)
	}
	args := passedOn(c)
	if c.Flags().Lookup(packageFlag) != nil {
		args = append(args, "--"+packageFlag+"="+before[0])
	}
	args = slices.Concat(args, []string{"--"}, after)
	code, err := program.Run(a.Name, args, a.Stdin, unshielded(a.Stdout), unshielded(a.Stderr), signals)
	if err != nil {
		return failed("%w", err)
	}
	if code != Done {
		return &exitError{code: code}
	}
	return nil
}

// passedOn returns the command, which is none for the root, with the flags that
// were set.
func passedOn(c *cobra.Command) []string {
	var args []string
	if c.HasParent() {
		args = append(args, c.Name())
	}
	c.Flags().Visit(func(f *pflag.Flag) { args = append(args, typed(f)...) })
	return args
}

// compile builds the package and stops at a signal.
func (a *app) compile(c *cobra.Command, pipeline string, signals <-chan os.Signal) (load.Program, error) {
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	built := make(chan struct{})
	defer close(built)
	go func() {
		select {
		case sig := <-signals:
			cancel(fmt.Errorf("%s: %v while the pipeline was built", kind.Canceled, sig))
		case <-built:
		}
	}()
	if screen := a.screen(); screen != nil {
		// A first build takes its time.
		fmt.Fprintf(unshielded(a.Stderr), "building %s …\r", text.Line(pipeline))
		defer fmt.Fprint(unshielded(a.Stderr), "\x1b[K")
	}
	return a.Pipeline.(fromArgument).build(ctx, pipeline, a.linked(c))
}

// linked are the packages that the program of a package links: the kinds that the
// configuration names, and the screen if it is shown there.
func (a *app) linked(c *cobra.Command) (link load.Linked) {
	if c == c.Root() {
		link.Always = append(link.Always, "github.com/stonelayer/stone/cli/screen")
	}
	if paths, configured := config.Imports(a.calls.config); configured {
		link.Always = append(link.Always, paths...)
	} else {
		link.Calls = paths
	}
	return link
}
