package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/eval"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// evalFlags holds the values of eval's flags.
type evalFlags struct {
	run                   runFlags
	data                  eval.Data
	scores                []string
	trials, lanes         int
	against, gate         string
	save, markdown, junit string
	estimate              bool
	runs                  runsFilter
}

func (a *app) eval(c *cobra.Command) {
	var flags evalFlags
	a.over(c, func(ctx context.Context, p stone.Ashlar) error {
		return a.overRuns(ctx, p.Name(), &flags, func(ctx context.Context) error { return a.evaluate(ctx, p, flags) })
	})
	a.evalFlags(c.Flags(), &flags)
	c.Flags().Var(&flags.runs, "runs", "evaluate on recorded runs that `FILTER` selects, such as 'label.env=prod since:7d', and pay only for changed requests")
	noted(c.Flags(), makesPipeline, "runs")
	flags.run.wire.describe(c.Flags())
	a.keepData(c, &flags.run, &flags.data, func([]string) error {
		if err := flags.checkRuns(); err != nil {
			return err
		}
		if flags.data.File != "" && len(flags.scores) == 0 && !flags.estimate {
			return errors.New("--score is missing: name a scorer, such as --score exact, or a file of scorers")
		}
		if flags.estimate && flags.data.N == 0 {
			flags.data.N = 20
		}
		return nil
	})
}

// keepData adds the flags of a command that reads a data set and records its run. Check checks the other flags.
func (a *app) keepData(c *cobra.Command, run *runFlags, data *eval.Data, check func(args []string) error) {
	a.quietFlag(c.Flags())
	a.trustFlag(c.Flags())
	a.addKeepFlags(c, &run.keep)
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) (err error) {
		if err := check(args); err != nil {
			return err
		}
		switch runs := c.Flags().Lookup("runs"); {
		case runs != nil && runs.Changed:
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations[givenLater] = "runs"
		case data.File == "" && runs != nil:
			return errors.New("--data is missing: name a file of JSON Lines or CSV, or recorded runs by --runs")
		case data.File == "":
			return errors.New("--data is missing: name a file of JSON Lines or CSV")
		default:
			if a.calls.slots, err = data.Columns(); err != nil { // the columns provide slots of a plan
				return fmt.Errorf("--data: %w", err)
			}
		}
		run.keep.made.Command = strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
		return before(c, args)
	}
}

// measure performs an evaluation of any kind and shows its progress, on one line if live is set. Print receives the result, if
// there is one.
func (a *app) measure(ctx context.Context, q stone.Ashlar, cfg stone.Config, flags runFlags, live bool, print func(*dag.Node, dag.DAG, *keptRun) error) error {
	if flags.own = true; !a.quiet {
		shown := &evalProgress{account: budget.From(ctx), out: unshielded(a.Stderr), live: live, began: time.Now()}
		defer shown.close()
		cfg.Watch = eval.Watch(q, shown.show)
	}
	findings := append(stone.Validate(q, cfg.Given()), a.calls.unfit(q)...)
	return a.perform(ctx, q, cfg, findings.Errors(), flags, func(result stone.Result, run *keptRun) error {
		if result.Node == nil {
			return nil
		}
		return print(result.Node, result.DAG, run)
	})
}

// counted returns a context with an account, from which the progress line reads the cost so far.
func counted(ctx context.Context) context.Context {
	if budget.From(ctx) != nil {
		return ctx
	}
	return budget.With(ctx, budget.New(budget.Limits{}))
}

// scorer reads the flag that names the only scorer of a choice.
func scorer(app *call.Applicator, spec string) (eval.Scorer, error) {
	all, err := eval.Read(app, spec)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d scorers: give one, whose mean is maximized", len(all))
	}
	if err != nil {
		return eval.Scorer{}, fmt.Errorf("--score: %w", err)
	}
	return all[0], nil
}

// evalFlags adds the flags of an evaluation. Flags that determine the pipeline are recorded with the run.
func (a *app) evalFlags(f *pflag.FlagSet, flags *evalFlags) {
	dataFlags(f, &flags.data, "evaluate on the rows of")
	f.StringArrayVar(&flags.data.Slices, "slice", nil, "report each value of `COLUMN` separately")
	f.StringVar(&flags.data.Split, "split", "", "evaluate only `PART`: dev or test, by the column split or else by digest")
	f.Var(count(&flags.data.N), "n", "draw at most `N` cases")
	f.Uint64Var(&flags.data.Seed, "seed", 0, "draw other cases with another `SEED`")
	f.StringArrayVar(&flags.scores, "score", nil, "score by `KIND`, such as exact, number:0.01 or cel:EXPRESSION, or by a file of scorers: see the Go package eval")
	f.Var(count(&flags.trials), "trials", "answer each case `K` times (default 1)")
	f.Var(count(&flags.lanes), "lanes", "answer at most `N` cases at once (default 64)")
	f.StringVar(&flags.against, "against", "", "compare with `RUN|FILE`: a finished evaluation, or a file of --save")
	f.StringVar(&flags.gate, "gate", "", "judge by the rules in `FILE`; exit code 4 if one is broken, 5 if that cannot be told")
	f.BoolVar(&flags.estimate, "estimate", false, "say what the whole data would cost, by --n cases (default 20)")
	noted(f, makesPipeline, "slice", "split", "n", "seed", "score", "trials", "lanes", "against", "gate", "estimate")
	a.jsonFlag(f, "the report as JSON")
	f.StringVar(&flags.save, "save", "", "write the scores of all cases to `FILE`, for --against")
	f.StringVar(&flags.markdown, "markdown", "", "write the report to `FILE`, in Markdown")
	f.StringVar(&flags.junit, "junit", "", "write scores and rules to `FILE`, in JUnit XML")
	f.StringVar(&flags.run.dag, "dag", "", "write the DAG to `FILE`, even if the run fails or is canceled")
	traceFlag(f, &flags.run.trace)
	noted(f, namesFile, "save", "markdown", "junit", "dag")
}

// evaluate evaluates a pipeline.
func (a *app) evaluate(ctx context.Context, p stone.Ashlar, flags evalFlags) error {
	if err := a.consentToConfig(); err != nil {
		return err
	}
	if err := a.withoutKeys(flags.run.wire); err != nil {
		return err
	}
	cfg := a.calls.base
	what, err := a.evaluation(ctx, p, flags)
	if err != nil {
		return err
	}
	q, err := eval.Pipeline(ctx, what, cfg)
	if err != nil {
		return err
	}
	flags.run.keep.name = "eval " + p.Name()
	if test := eval.TestOf(q); test != "" {
		flags.run.keep.labels = map[string]string{testLabel: test}
	}
	var report *eval.Report
	err = a.measure(counted(ctx), q, cfg, flags.run, a.screen() != nil, func(n *dag.Node, d dag.DAG, run *keptRun) error {
		r, err := eval.Result.Of(n)
		if err != nil {
			return err
		}
		if r.Looks, err = run.looks(ctx); err != nil {
			return err
		}
		report = &r
		return a.printReport(r, d, run, flags)
	})
	if err == nil && report != nil {
		err = a.unanswered(*report)
	}
	if err != nil || report == nil || report.Gate == nil {
		return err
	}
	switch report.Gate.Verdict {
	case eval.GateFailed:
		return &exitError{code: GateFailed}
	case eval.CannotTell:
		return &exitError{code: CannotTell}
	}
	return nil
}

// unanswered reports cases that have no answer to score. It returns an error if no case has one.
func (a *app) unanswered(r eval.Report) error {
	worst := slices.MaxFunc(r.Scores, func(s, t eval.ScoreReport) int { return cmp.Compare(s.Errors, t.Errors) })
	why := ""
	if len(r.Failures) > 0 {
		why = ": " + r.Failures[0].Why
	}
	switch {
	case worst.N == 0:
		return failed("no case has a score%s", why)
	case worst.Right+worst.Wrong == 0: // the other scorers have no answers either
		return failed("no case was answered%s", why)
	case worst.Errors == 0:
		return nil
	}
	a.complain("%d of %d answers have no score and are excluded from the mean%s", worst.Errors, r.Cases*r.Trials, why)
	return nil
}

// testLabel is the label that contains the digest of an evaluation's test split.
const testLabel = "eval-test"

// looks returns the number of runs that have revealed results on this run's test split, including this run. It returns 0 if the
// run has no test split or is not recorded.
func (r *keptRun) looks(ctx context.Context) (n int, err error) {
	if r == nil || r.opts.Labels[testLabel] == "" {
		return 0, nil
	}
	q := journal.Query{Labels: r.opts.Labels, Limit: journal.DefaultLimit}
	for n = 1; ; {
		page, err := r.Runs(ctx, q)
		if err != nil {
			return 0, failed("%w", err)
		}
		for _, other := range page {
			shown, err := r.shown(ctx, other)
			if err != nil {
				return 0, failed("%w", err)
			}
			if shown && other.ID != r.id {
				n++
			}
			q.Before = other.ID
		}
		if len(page) < q.Limit {
			return n, nil
		}
	}
}

// shown reports whether a run has revealed results on the test split. An evaluation reveals them at its end, and an improvement
// when it asks for acceptance or when it ends after its test.
func (r *keptRun) shown(ctx context.Context, info journal.RunInfo) (bool, error) {
	rec, err := view.Record(ctx, r, info.ID, "improve/revise", "leaf")
	if err != nil || rec == nil || rec.Failure != nil {
		return info.State == journal.Done, err
	}
	var found eval.Revision
	err = json.Unmarshal(rec.Content, &found)
	return found.Test != nil, err
}

// evaluation reads the files that are named by the flags.
func (a *app) evaluation(ctx context.Context, p stone.Ashlar, flags evalFlags) (cfg eval.Config, err error) {
	cfg = eval.Config{Pipeline: p, Data: flags.data, Trials: flags.trials, Lanes: flags.lanes}
	conf, err := a.configured()
	if err != nil {
		return cfg, err
	}
	if cfg.Scorers, err = eval.Read(conf.App, flags.scores...); err != nil {
		return cfg, fmt.Errorf("--score: %w", err)
	}
	if flags.estimate && len(cfg.Scorers) == 0 {
		cfg.Scorers = []eval.Scorer{eval.Func("answered", func(context.Context, eval.Case) (eval.Score, error) { return eval.Score{Value: 1}, nil })}
	}
	if flags.against != "" {
		if cfg.Against, err = a.baseline(ctx, flags); err != nil {
			return cfg, fmt.Errorf("--against: %w", err)
		}
	}
	if flags.gate != "" {
		if cfg.Gate, err = eval.ReadGate(flags.gate); err != nil {
			return cfg, fmt.Errorf("--gate: %w", err)
		}
	}
	return cfg, nil
}

// baseline reads a baseline from a file or from a run in the store.
func (a *app) baseline(ctx context.Context, flags evalFlags) (b *eval.Baseline, err error) {
	if info, err := os.Stat(flags.against); err == nil && !info.IsDir() {
		return eval.ReadBaseline(flags.against)
	}
	s, err := a.openStore(ctx, flags.run.keep.resume, false, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	info, err := s.find(ctx, flags.against)
	if err != nil {
		return nil, err
	}
	d, err := s.DAG(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	return eval.BaselineOf(info.ID, d)
}

// printReport prints a report and writes the requested files.
func (a *app) printReport(r eval.Report, d dag.DAG, run *keptRun, flags evalFlags) error {
	var err error
	switch {
	case flags.estimate && r.Scores[0].N == 0: // evaluate prints the reason
	case flags.estimate && !a.json:
		whole := r.Cost.Whole
		if whole == nil {
			whole = &eval.Whole{Cases: r.Cases, USD: r.Cost.USD, Low: r.Cost.USD, High: r.Cost.USD}
		}
		_, err = fmt.Fprintln(a.Stdout, whole.String())
	case a.json:
		err = printJSON(a.Stdout, r)
	default:
		_, err = io.WriteString(a.Stdout, r.Text())
	}
	written := []error{output(err)}
	write := func(file string, content func() ([]byte, error)) {
		if file == "" {
			return
		}
		data, err := content()
		if err == nil {
			err = os.WriteFile(file, data, 0o644)
		}
		written = append(written, err)
	}
	if file := flags.run.wire.replay; file != "" && !a.quiet {
		a.complain("nothing was sent or paid: the answers and their costs come from %s", file)
	}
	write(flags.markdown, func() ([]byte, error) { return []byte(r.Markdown()), nil })
	write(flags.junit, r.JUnit)
	write(flags.save, func() ([]byte, error) {
		b, err := eval.BaselineOf("", d)
		if err != nil {
			return nil, err
		}
		var data bytes.Buffer
		err = b.Write(&data)
		return data.Bytes(), err
	})
	if err := errors.Join(written...); err != nil || run == nil || a.quiet {
		return err
	}
	if r.Against != nil {
		before, err := run.Find(context.Background(), r.Against.With)
		for _, s := range r.Against.Scores {
			if err == nil && len(s.Turned) > 0 {
				a.complain("to see what changed, step by step: %s", a.command(run.store, "diff", before.ID, run.id, "--under", quoted(s.Turned[0].Path)))
				break
			}
		}
	}
	if err := a.possiblyPaid(run); err != nil {
		return err
	}
	a.complain("to score these answers again without new calls: --reuse=%s", run.id)
	return nil
}

// possiblyPaid prints the estimated cost of attempts that a resumed evaluation repeated because they had no result. It is not
// part of the report, because a report must not depend on crashes.
func (a *app) possiblyPaid(run *keptRun) error {
	if !run.opts.Resume {
		return nil
	}
	steps, err := run.Steps(context.Background(), run.id)
	if err != nil {
		return err
	}
	if _, cost := journal.Total(steps); cost.Possible.Attempts > 0 {
		a.complain("possibly billed, but not in the report: $%s for %d attempts without a result", cmp.Or(money.USD(cost.Possible.USD, false), "0"), cost.Possible.Attempts)
	}
	return nil
}
