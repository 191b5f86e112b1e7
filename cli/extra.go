package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/command"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/plan"
)

// homes maps each command that a part provides to packages. The first package provides the command; the others extend it.
var homes = map[string][]string{
	"eval":  append([]string{evalPackage, labPackage}, kinds.Homes(kinds.Expression)...),
	"index": {libraryPackage, indexPackage}, "search": {libraryPackage, indexPackage},
	"kpi": {kpiPackage}, "serve": {servePackage, mcpPackage}, "mcp": {servePackage, mcpPackage}, "inspect": {servePackage}, "token": {servePackage}, "acp": {servePackage, editorPackage},
}

// exitOf returns an exitError if an error from a part's command is an Exit, and otherwise the error itself.
func exitOf(err error) error {
	if end, ok := errors.AsType[*command.Exit](err); ok {
		return &exitError{code: end.Code, err: end.Err}
	}
	return err
}

// extraRuns adds flags and behavior to a part's command that reads recorded runs.
func (a *app) extraRuns(c *cobra.Command, x command.Command) {
	var flags runsFlags
	a.overStore(c, func(ctx context.Context, s *store, _ []string) error {
		return exitOf(x.Run(ctx, &command.Host{
			JSON: a.json, Database: s.file, Complain: a.complain, Print: a.printEither,
			Chosen: func(ctx context.Context, do func(journal.Journal, journal.RunInfo) error) (int, bool, error) {
				return flags.chosen(ctx, s, func(r journal.RunInfo) error { return do(s, r) })
			},
			Table: func(rows [][]string) string {
				var out strings.Builder
				_ = (&table{names: rows[0], rows: rows[1:]}).print(&out, a.columns()) // a Builder never fails
				return out.String()
			},
		}))
	})
	a.chooseFlags(&flags, c, x.Runs)
	a.jsonFlag(c.Flags(), x.JSON)
}

// printEither prints the text, or v as JSON with --json.
func (a *app) printEither(v any, text string) error {
	if a.json {
		return output(printJSON(a.Stdout, v))
	}
	_, err := io.WriteString(a.Stdout, text)
	return output(err)
}

// extra adds flags and behavior to a command that a part provides.
func (a *app) extra(c *cobra.Command, x command.Command) {
	if x.Runs != "" {
		a.extraRuns(c, x)
		return
	}
	var flags runFlags
	a.over(c, func(ctx context.Context, p stone.Ashlar) error {
		if err := a.consentToConfig(); err != nil {
			return err
		}
		if err := a.withoutKeys(flags.wire); err != nil {
			return err
		}
		h, err := a.host(c, p, flags)
		if err != nil {
			return err
		}
		return exitOf(x.Run(ctx, h))
	})
	f := c.Flags()
	add := func(as string, flags func(*pflag.FlagSet)) {
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags(own)
		own.VisitAll(func(one *pflag.Flag) { noted(own, as, one.Name) })
		f.AddFlagSet(own)
	}
	add(makesPipeline, x.Flags)
	if x.Files != nil {
		add(namesFile, x.Files)
	}
	if x.Events {
		add(namesFile, func(f *pflag.FlagSet) {
			f.StringVar(&flags.dag, "dag", "", "write the DAG to `FILE`, even if the run fails or is canceled")
			traceFlag(f, &flags.trace)
		})
	}
	if x.Wire {
		flags.wire.describe(f)
	}
	a.jsonFlag(f, x.JSON)
	a.quietFlag(f)
	a.trustFlag(f)
	a.addKeepFlags(c, &flags.keep)
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) (err error) {
		if a.calls.slots, err = x.Check(args, f); err != nil {
			return err
		}
		if a.calls.slots == nil {
			c.Annotations = map[string]string{givenLater: "yes"}
		}
		flags.keep.made.Command = strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
		return before(c, args)
	}
}

// host returns the command.Host through which a part's command uses this program.
func (a *app) host(c *cobra.Command, p stone.Ashlar, flags runFlags) (*command.Host, error) {
	k := &a.calls
	cfg := k.base
	conf, err := a.configured()
	if err != nil {
		return nil, err
	}
	return &command.Host{
		Argument: flags.keep.made.Pipeline, Pipeline: p, Plan: k.plan, Applicator: conf.App, Config: cfg, Granted: k.grant, Cases: a.linked.cases,
		Unrecorded: flags.keep.none, Replay: flags.wire.replay, Quiet: a.quiet, Progress: unshielded(a.Stderr), Live: a.screen() != nil,
		Compile:  func(p *plan.Plan) (stone.Ashlar, error) { return p.Ashlar(conf.App, k.opts) },
		Complain: a.complain, Print: a.printEither,
		Journal: func(ctx context.Context, do func(command.Journal) error) error {
			return a.withStoreAs(ctx, flags.keep.resume, sqlite.Options{}, func(s *store) error { return do(s) })
		},
		Perform: func(ctx context.Context, t command.Task) error { return a.task(ctx, t, cfg, flags) },
		Then: func(ctx context.Context, line []string, names ...string) error {
			if db := cmp.Or(a.db, flags.keep.resume); db != "" {
				line = append(line, "--db="+db)
			}
			for _, name := range names {
				if f := c.Flags().Lookup(name); f != nil && f.Changed {
					line = append(line, typed(f)...)
				}
			}
			line = append(line, budgetLine(budget.From(ctx).Left())...)
			a.closeCalls() // this ends ctx
			return a.within(c.Context(), line)
		},
	}, nil
}

// task runs a pipeline on behalf of a part's command.
func (a *app) task(ctx context.Context, t command.Task, cfg stone.Config, flags runFlags) error {
	flags.own, flags.keep.name, flags.keep.labels = true, t.Name, t.Labels
	if t.Reuse {
		flags.keep.reuse = cmp.Or(flags.keep.reuse, journal.AnyRun)
	}
	cfg.Watch = t.Watch
	findings := append(stone.Validate(t.Pipeline, cfg.Given()), a.calls.unfit(t.Pipeline)...)
	return a.perform(ctx, t.Pipeline, cfg, findings.Errors(), flags, func(result stone.Result, run *keptRun) error {
		switch {
		case result.Node == nil:
			return nil
		case run == nil:
			return t.Print(result, nil)
		}
		line := func(words ...string) string { return a.command(run.store, quotedAll(words...)) }
		return t.Print(result, &command.Run{Journal: run.store, ID: run.id, Resumed: run.opts.Resume, Command: line})
	})
}
