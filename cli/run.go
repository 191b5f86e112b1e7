package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/batches"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/respond"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/kind"
)

// runFlags holds the values of run's flags.
type runFlags struct {
	all bool
	pieces
	own    bool // the command itself shows the progress
	input  string
	from   string // file that contains the DAG to start with
	dag    string
	trace  string
	keep   keepFlags
	labels []string
	wire   wireFlags

	priority int
	mustFit  bool
}

func (a *app) run(c *cobra.Command) {
	var flags runFlags
	c.SuggestFor = []string{"plan", "start", "exec"}
	a.over(c, func(ctx context.Context, p stone.Ashlar) (err error) {
		if flags.keep.labels, err = pairs("label", flags.labels); err != nil {
			return err
		}
		if err := bounds.CheckLabels(flags.keep.labels); err != nil {
			return fmt.Errorf("--label: %w", err)
		}
		return a.runPipeline(ctx, p, flags)
	})
	c.Flags().StringVar(&flags.input, "input", "", "start with an input: `JSON`, a text, or @FILE")
	c.Flags().StringVar(&flags.from, "input-dag", "", "start with the DAG in `FILE`, as written by --dag")
	c.MarkFlagsMutuallyExclusive("input", "input-dag")
	c.Flags().StringArrayVar(&flags.labels, "label", nil, "record the label `NAME=VALUE` with the run, for runs and kpi; may be repeated")
	c.Flags().BoolVar(&flags.mustFit, "must-fit", false, "do not start a run that may cost more than its budget; see validate")
	c.Flags().IntVar(&flags.priority, "priority", 0, "when requests wait for a provider's rate limit, runs with a higher `N` send theirs first")
	noted(c.Flags(), makesPipeline, "priority")
	a.outputFlags(c.Flags(), &flags)
	flags.wire.describe(c.Flags())
	a.trustFlag(c.Flags())
	a.addKeepFlags(c, &flags.keep)
}

// outputFlags adds the flags that affect the output.
func (a *app) outputFlags(f *pflag.FlagSet, flags *runFlags) {
	a.jsonFlag(f, "the last node as a JSON object: id, type, content, run, and lost lanes")
	f.BoolVar(&flags.all, "all", false, "print the whole content of the last node, including the conversation of an agent")
	flags.describe(f, "; the last line is the output of --json")
	a.quietFlag(f)
	f.StringVar(&flags.dag, "dag", "", "write the DAG to `FILE`, even if the run fails or is canceled")
	traceFlag(f, &flags.trace)
	noted(f, namesFile, "dag")
}

func (a *app) runPipeline(ctx context.Context, p stone.Ashlar, flags runFlags) error {
	if err := flags.check(); err != nil {
		return err
	}
	a.json = a.json || flags.stream
	if err := a.consentToConfig(); err != nil {
		return err
	}
	if err := a.withoutKeys(flags.wire); err != nil {
		return err
	}
	input, err := a.input(ctx, p, flags)
	if err != nil {
		return err
	}
	cfg := a.with(input)
	if flags.mustFit {
		if err := a.mustFit(ctx, p, cfg); err != nil {
			return err
		}
	}
	findings := a.findings(p, cfg)
	if findings.Err() == nil {
		if err := a.foresee(ctx, p, input, flags.keep.fork); err != nil {
			return err
		}
	}
	return a.perform(ctx, p, cfg, findings, flags, func(result stone.Result, run *keptRun) error {
		err := a.printResult(a.emitted(result), flags.all)
		return errors.Join(err, a.compareFork(ctx, run, flags.keep.fork))
	})
}

// perform runs a pipeline and prints its result. If findings contains an error, it does not run the pipeline.
func (a *app) perform(ctx context.Context, p stone.Ashlar, cfg stone.Config, findings stone.Findings, flags runFlags, print func(stone.Result, *keptRun) error) error {
	switch {
	case flags.wire.batch && a.linked.batches == nil:
		return fmt.Errorf("--batch: %w", batches.ErrNotLinked)
	case flags.wire.batch && flags.keep.none:
		return errors.New("--batch needs a journal, since answers arrive later: drop --no-db")
	}
	printFindings(a.Stderr, findings)
	if findings.Err() != nil {
		return &exitError{code: Failed}
	}
	ctx, closeWire, err := flags.wire.open(ctx)
	if err != nil {
		return err
	}
	target, err := newDAGFile(flags.dag)
	if err != nil {
		return errors.Join(err, closeWire())
	}
	trace, err := openTrace(flags.trace)
	if err != nil {
		return errors.Join(err, closeWire())
	}
	run, err := a.keep(ctx, flags.keep)
	if err != nil {
		return errors.Join(err, trace.close(), closeWire())
	}
	watch, err := a.watched(p.Name(), run)
	if err != nil {
		return errors.Join(err, trace.close(), run.close(), closeWire())
	}
	cfg.Watch = event.All(cfg.Watch, watch)
	pieces := &respond.Stream{W: a.Stdout}
	if flags.stream {
		cfg.Watch = event.All(cfg.Watch, pieces)
		if flags.partial {
			pieces.WithValues()
		}
	}
	result, err := a.execute(ctx, p, cfg, run, trace, flags)
	a.printLost(run, result, err)
	a.printNotices(result.Notices)
	err = a.ended(run, err)
	// Each output is attempted, even if others fail.
	for _, failure := range []error{output(pieces.Close()), print(result, run), target.write(result.DAG), trace.close(), run.close(), closeWire()} {
		if failure != nil {
			a.complain("Error: %v", failure)
			err = &exitError{code: Failed}
		}
	}
	return err
}

// execute runs the pipeline, shows its progress, and returns its result.
func (a *app) execute(ctx context.Context, p stone.Ashlar, cfg stone.Config, run *keptRun, trace *traceFile, flags runFlags) (stone.Result, error) {
	var display *progress.Display
	say := func(line string) { a.complain("%s", line) }
	if trace != nil {
		cfg.Watch = event.All(cfg.Watch, trace.writer)
	}
	if !a.quiet && !flags.own {
		size := a.screen()
		if flags.stream && terminal(a.Stdout) != nil {
			size = nil // otherwise pieces would be written into the display
		}
		display = progress.New(p, progress.Config{Out: unshielded(a.Stderr), Size: size, Color: color()})
		defer display.Close()
		a.shown = display.Shown
		cfg.Watch = event.All(cfg.Watch, display)
		say = display.Println
	}
	cfg.Frontend = past.Asking(ctx, a.person(display, run != nil))
	resume := ""
	if run != nil {
		resume = a.command(run.store, "resume", run.id)
	}
	ctx, drain, stop := interruptible(ctx, say, resume)
	defer stop()
	if flags.wire.batch {
		run.batches, run.batch = a.linked.batches, batches.Config{Journal: run.Store, NoWait: flags.wire.noWait, Say: say}
	}
	if !a.quiet {
		defer sayWaiting(budget.From(ctx), say)()
	}
	rank := limit.RankOf(ctx)
	rank.Priority = flags.priority
	return run.start(limit.Ranked(ctx, rank), p, cfg, drain)
}

// sayWaiting starts to watch the account and prints a message, once, if many steps are waiting for the budget, because nothing
// else shows this. It returns a function that stops watching.
func sayWaiting(account *budget.Account, say func(string)) (stop func()) {
	const many, every = 5, 2 * time.Second
	ended := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if n := account.Waiting(); n >= many {
					say(fmt.Sprintf("%d steps are waiting for the budget, which reserves the maximum cost of running steps: lower the model's max-tokens to run more at once", n))
					return
				}
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		all.Wait()
	}
}

// printNotices prints the notices of a run.
func (a *app) printNotices(notices []event.Notice) {
	for _, n := range notices {
		lines := text.Lines(n.Text)
		a.complain("%s: %s", address.Readable(n.Path), lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintln(a.Stderr, "  "+line)
		}
	}
}

// labelled returns path with lane numbers replaced by lane labels where these are known.
func (a *app) labelled(path string) string {
	if a.shown == nil {
		return address.Readable(path)
	}
	return a.shown(path)
}

// maxLost is the maximum number of lost lanes that are listed.
const maxLost = 5

// printLost prints the number of lost lanes, the reasons why the first ones were lost, and how to repeat them. Run is nil if the
// run is not recorded.
func (a *app) printLost(run *keptRun, result stone.Result, err error) {
	said := dag.CountLost(result.Lost).String()
	if said == "" {
		return
	}
	if err == nil {
		said = "done, " + said
	}
	a.complain("%s", said)
	for _, lane := range result.Lost[:min(len(result.Lost), maxLost)] {
		n := lane.Failure
		failure := stone.Failure{Kind: kind.Kind(fmt.Sprint(n.Get("kind", ""))), Reason: fmt.Sprint(n.Get("reason", "")), Path: a.labelled(n.Meta()["path"])}
		fmt.Fprintln(a.Stderr, "  "+text.Line(failure.Error()))
	}
	if more := len(result.Lost) - maxLost; more > 0 {
		fmt.Fprintf(a.Stderr, "  … and %d more\n", more)
	}
	if run != nil && run.store != nil {
		a.complain("to do these lanes again, and what reads them: %s", a.command(run.store, "resume", run.id, "--lost"))
	}
}
