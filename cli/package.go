package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/cli/internal/load"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/kind"
)

// build builds a program for the package named by the PIPELINE argument, and runs the command line in that program.
func (a *app) build(c *cobra.Command, before, after []string) error {
	switch {
	case len(before) == 0:
		return fmt.Errorf("PIPELINE is missing: name a Go package, as in %s ./examples/audit, or the file of a plan", c.CommandPath())
	case len(before) > 1:
		how := "want one PIPELINE, and its own arguments after --"
		switch {
		case isPlan(before[0]):
			how = "a plan takes --bind NAME=VALUE"
		case isIntent(before[0]):
			how = "the input is given by --input, with text in quotes"
		}
		return fmt.Errorf("unexpected argument %q: %s", before[1], how)
	}
	if err := onlyPlans(c, before[0]); err != nil {
		return err
	}
	var args []string
	if c.HasParent() {
		args = strings.Fields(strings.TrimPrefix(c.CommandPath(), c.Root().Name()))
	}
	c.Flags().Visit(func(f *pflag.Flag) { args = append(args, typed(f)...) })
	if c.Flags().Lookup(packageFlag) != nil {
		args = append(args, "--"+packageFlag+"="+before[0])
	}
	link, err := a.toLink(c)
	if err != nil {
		return err
	}
	builder := a.Pipeline.(fromArgument)
	err = a.handOver(c, slices.Concat(args, []string{"--"}, after), before[0], func(ctx context.Context) (load.Program, error) {
		return builder.build(ctx, before[0], link)
	})
	if _, missing := os.Stat(before[0]); missing != nil && errors.As(err, new(*load.Error)) && intentName.MatchString(before[0]) {
		err = fmt.Errorf("%w; for an intent or a capability, write :%s", err, before[0])
	}
	return err
}

// intentName matches arguments that may be an intent or a capability whose colon is missing.
var intentName = regexp.MustCompile(`^[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?$`)

// relinked checks whether this program links the packages of the configured capabilities, and the packages in others. If it does
// not, relinked hands the command over to a program that does, and returns an error with that program's exit code.
func (a *app) relinked(c *cobra.Command, others ...string) error {
	conf, err := a.configured()
	if err != nil || !a.fromArgument() {
		return err
	}
	missing := a.linked.kinds.Unprovided(append(others, conf.Packages()...))
	if len(missing) == 0 {
		return nil
	}
	if err := a.consentToConfig(); err != nil {
		return err
	}
	every := append(kinds.Packages(), screenPackage, postgresPackage, batchPackage)
	for _, of := range homes {
		every = append(every, of...)
	}
	slices.Sort(every)
	link := load.Linked{Always: slices.Compact(every), Capabilities: missing, Dir: conf.Dir}
	builder := a.Pipeline.(fromArgument)
	err = a.handOver(c, a.Args, "the capabilities", func(ctx context.Context) (load.Program, error) {
		return builder.command(ctx, link)
	})
	if err == nil {
		err = &exitError{code: Done}
	}
	return err
}

// ownsInterrupt marks the commands that handle Ctrl-C at a terminal themselves and then continue.
const ownsInterrupt = "owns-interrupt"

// handOver builds a program and runs the command line in it, in place of this process.
func (a *app) handOver(c *cobra.Command, args []string, what string, build func(context.Context) (load.Program, error)) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	args = secretless(args)
	program, err := a.compile(c, what, signals, build)
	var refused *load.Error
	switch {
	case errors.As(err, &refused):
		return err
	case err != nil:
		return failed("%w", err)
	}
	if c.Annotations[ownsInterrupt] != "" && terminal(a.Stdin) != nil {
		// A terminal sends Ctrl-C to the program, too, and the program may continue.
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
		signal.Stop(signals)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	}
	code, err := program.Run(a.Name, args, a.Stdin, unshielded(a.Stdout), unshielded(a.Stderr), signals)
	if err != nil {
		return failed("%w", err)
	}
	if code != Done {
		return &exitError{code: code}
	}
	return nil
}

// compile builds a program and returns it. A signal stops the build.
func (a *app) compile(c *cobra.Command, what string, signals <-chan os.Signal, build func(context.Context) (load.Program, error)) (load.Program, error) {
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
		// The first build takes time, so say what is being done.
		fmt.Fprintf(unshielded(a.Stderr), "building %s …\r", text.Line(what))
		defer fmt.Fprint(unshielded(a.Stderr), "\x1b[K")
	}
	return build(ctx)
}

// Packages that contain parts other than capability kinds.
const (
	screenPackage   = "github.com/stonelayer/stone/x/screen"
	evalPackage     = "github.com/stonelayer/stone/x/eval/commands"
	kpiPackage      = "github.com/stonelayer/stone/x/kpi"
	servePackage    = "github.com/stonelayer/stone/cli/serve"
	mcpPackage      = "github.com/stonelayer/stone/x/mcp/server"
	editorPackage   = "github.com/stonelayer/stone/x/acp"
	postgresPackage = "github.com/stonelayer/stone/journal/postgres"
	libraryPackage  = "github.com/stonelayer/stone/x/retrieve/commands"
	indexPackage    = "github.com/stonelayer/stone/x/retrieve/postgres"
	labPackage      = "github.com/stonelayer/stone/x/lab"
	batchPackage    = "github.com/stonelayer/stone/x/batch"
	otlpPackage     = "github.com/stonelayer/stone/x/otlp"
)

// toLink returns the packages whose parts the program of a package must link: the parts that the command needs, such as the
// screen or a database, and the kinds of capabilities that the configuration uses.
func (a *app) toLink(c *cobra.Command) (link load.Linked, err error) {
	if c == c.Root() {
		link.Always = []string{screenPackage}
	} else {
		link.Always = slices.Clone(homes[strings.Fields(c.CommandPath())[1]])
	}
	if a.linked.exporter != nil {
		link.Always = append(link.Always, otlpPackage) // the environment may name a collector
	}
	if a.linked.batches != nil {
		link.Always = append(link.Always, batchPackage)
	}
	if db := c.Flags().Lookup("db"); db != nil && redact.IsDatabase(storeName(db.Value.String())) {
		link.Always = append(link.Always, postgresPackage)
	}
	if paths, configured := config.Imports(a.calls.config, &a.linked.kinds); configured {
		link.Always = append(link.Always, paths...)
	} else {
		link.Calls = paths
	}
	// Faults of the configuration are reported by the program.
	conf, err := a.configured()
	if err == nil && slices.ContainsFunc(slices.Concat(conf.Capabilities, conf.Tools), func(r kinds.Reached) bool { return redact.IsDatabase(r.At) }) {
		link.Always = append(link.Always, indexPackage)
	}
	if err == nil && len(conf.Packages()) > 0 {
		link.Capabilities, link.Dir = a.linked.kinds.Unprovided(conf.Packages()), conf.Dir
		return link, a.consentToConfig()
	}
	return link, nil
}
