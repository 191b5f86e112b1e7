package commands

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/command"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/x/eval"
)

// evalFlags holds the values of eval's flags.
type evalFlags struct {
	data                  eval.Data
	scores                []string
	trials, lanes         int
	against, gate         string
	save, markdown, junit string
	estimate              bool
	runs                  runsFilter
}

func evaluating() command.Command {
	var flags evalFlags
	return command.Command{
		JSON: "the report as JSON", Wire: true, Events: true, Flags: flags.describe,
		Files: func(f *pflag.FlagSet) {
			f.StringVar(&flags.save, "save", "", "write the scores of all cases to `FILE`, for --against")
			f.StringVar(&flags.markdown, "markdown", "", "write the report to `FILE`, in Markdown")
			f.StringVar(&flags.junit, "junit", "", "write scores and rules to `FILE`, in JUnit XML")
		},
		Check: func(_ []string, f *pflag.FlagSet) ([]string, error) {
			if err := cmp.Or(counts(f), flags.checkRuns()); err != nil {
				return nil, err
			}
			if flags.data.File != "" && len(flags.scores) == 0 && !flags.estimate {
				return nil, errors.New("--score is missing: name a scorer, such as --score exact, or a file of scorers")
			}
			if flags.estimate && flags.data.N == 0 {
				flags.data.N = 20
			}
			if flags.runs.words != nil {
				return nil, nil
			}
			return columns(flags.data, ", or recorded runs by --runs")
		},
		Run: func(ctx context.Context, h *command.Host) error {
			return overRuns(ctx, h, flags, func(ctx context.Context) error { return evaluate(ctx, h, flags) })
		},
	}
}

// describe adds the flags that determine which pipeline is evaluated.
func (flags *evalFlags) describe(f *pflag.FlagSet) {
	dataFlags(f, &flags.data, "evaluate on the rows of")
	f.Var(&flags.runs, "runs", "evaluate on recorded runs that `FILTER` selects, such as 'label.env=prod since:7d', and pay only for changed requests")
	f.StringArrayVar(&flags.data.Slices, "slice", nil, "report each value of `COLUMN` separately")
	f.StringVar(&flags.data.Split, "split", "", "evaluate only `PART`: dev or test, by the column split or else by digest")
	f.IntVar(&flags.data.N, "n", 0, "draw at most `N` cases")
	f.Uint64Var(&flags.data.Seed, "seed", 0, "draw different cases with another `SEED`")
	f.StringArrayVar(&flags.scores, "score", nil, "score by `KIND`, such as exact, number:0.01 or cel:EXPRESSION, or by a file of scorers: see the Go package x/eval")
	f.IntVar(&flags.trials, "trials", 0, "answer each case `K` times (default 1)")
	f.IntVar(&flags.lanes, "lanes", 0, "answer at most `N` cases at once (default 64)")
	f.StringVar(&flags.against, "against", "", "compare with `RUN|FILE`: a finished evaluation, or a file written by --save")
	f.StringVar(&flags.gate, "gate", "", "apply the rules in `FILE`; exit code 4 if one is broken, 5 if that cannot be decided")
	f.BoolVar(&flags.estimate, "estimate", false, "estimate the cost of the whole data set from --n cases (default 20)")
}

// evaluate evaluates a pipeline.
func evaluate(ctx context.Context, h *command.Host, flags evalFlags) error {
	what, err := evaluation(ctx, h, flags)
	if err != nil {
		return err
	}
	q, err := eval.Pipeline(ctx, what, h.Config)
	if err != nil {
		return err
	}
	t := command.Task{Pipeline: q, Name: "eval " + h.Pipeline.Name()}
	test := eval.TestOf(q)
	if test != "" {
		t.Labels = map[string]string{testLabel: test}
	}
	var report *eval.Report
	err = measure(counted(ctx), h, t, h.Live, func(n *dag.Node, d dag.DAG, run *command.Run) error {
		r, err := eval.Result.Of(n)
		if err != nil {
			return err
		}
		if run != nil && test != "" {
			if r.Looks, err = looks(ctx, run, test, run.ID); err != nil {
				return err
			}
		}
		report = &r
		return printReport(h, r, d, run, flags)
	})
	if err == nil && report != nil {
		err = unanswered(h, *report)
	}
	if err != nil || report == nil || report.Gate == nil {
		return err
	}
	switch report.Gate.Verdict {
	case eval.GateFailed:
		return &command.Exit{Code: gateFailedCode}
	case eval.CannotTell:
		return &command.Exit{Code: cannotTellCode}
	}
	return nil
}

// unanswered prints how many cases have no answer that can be scored. If there is no case with an answer, it returns an error.
func unanswered(h *command.Host, r eval.Report) error {
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
	h.Complain("%d of %d answers have no score and are excluded from the mean%s", worst.Errors, r.Cases*r.Trials, why)
	return nil
}

// testLabel is the label that contains the digest of an evaluation's test split.
const testLabel = "eval-test"

// looks returns the number of runs, including the given run, that have revealed results on a test split.
func looks(ctx context.Context, j journal.Journal, test, run string) (n int, err error) {
	q := journal.Query{Labels: map[string]string{testLabel: test}, Limit: journal.DefaultLimit}
	for n = 1; ; {
		page, err := j.Runs(ctx, q)
		if err != nil {
			return 0, failed("%w", err)
		}
		for _, other := range page {
			seen, err := shown(ctx, j, other)
			if err != nil {
				return 0, failed("%w", err)
			}
			if seen && other.ID != run {
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
func shown(ctx context.Context, j journal.Journal, info journal.RunInfo) (bool, error) {
	rec, err := view.Record(ctx, j, info.ID, "improve/revise", "leaf")
	if err != nil || rec == nil || rec.Failure != nil {
		return info.State == journal.Done, err
	}
	var found eval.Revision
	err = json.Unmarshal(rec.Content, &found)
	return found.Test != nil, err
}

// evaluation returns the configuration that the flags describe, after reading the files that they name.
func evaluation(ctx context.Context, h *command.Host, flags evalFlags) (cfg eval.Config, err error) {
	cfg = eval.Config{Pipeline: h.Pipeline, Data: flags.data, Trials: flags.trials, Lanes: flags.lanes}
	if cfg.Scorers, err = eval.Read(h.Applicator, flags.scores...); err != nil {
		return cfg, fmt.Errorf("--score: %w", err)
	}
	if flags.estimate && len(cfg.Scorers) == 0 {
		cfg.Scorers = []eval.Scorer{eval.Func("answered", func(context.Context, eval.Case) (eval.Score, error) { return eval.Score{Value: 1}, nil })}
	}
	if flags.against != "" {
		if cfg.Against, err = baseline(ctx, h, flags.against); err != nil {
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

// baseline reads a baseline from a file or from a run in the journal.
func baseline(ctx context.Context, h *command.Host, from string) (b *eval.Baseline, err error) {
	if info, err := os.Stat(from); err == nil && !info.IsDir() {
		return eval.ReadBaseline(from)
	}
	err = h.Journal(ctx, func(j command.Journal) error {
		info, err := j.Named(ctx, from)
		if err != nil {
			return err
		}
		d, err := j.DAG(ctx, info.ID)
		if err == nil {
			b, err = eval.BaselineOf(info.ID, d)
		}
		return err
	})
	return b, err
}

// printReport prints a report and writes the requested files.
func printReport(h *command.Host, r eval.Report, d dag.DAG, run *command.Run, flags evalFlags) error {
	text := r.Text()
	if flags.estimate {
		whole := r.Cost.Whole
		if whole == nil {
			whole = &eval.Whole{Cases: r.Cases, USD: r.Cost.USD, Low: r.Cost.USD, High: r.Cost.USD}
		}
		text = whole.String() + "\n"
	}
	written := []error{}
	if !flags.estimate || r.Scores[0].N > 0 { // otherwise evaluate prints the reason
		written = append(written, h.Print(r, text))
	}
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
	if h.Replay != "" && !h.Quiet {
		h.Complain("nothing was sent or paid: the answers and their costs come from %s", h.Replay)
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
	if err := errors.Join(written...); err != nil || run == nil || h.Quiet {
		return err
	}
	if r.Against != nil {
		before, err := run.Find(context.Background(), r.Against.With)
		for _, s := range r.Against.Scores {
			if err == nil && len(s.Turned) > 0 {
				h.Complain("to see what changed, step by step: %s", run.Command("diff", before.ID, run.ID, "--under", s.Turned[0].Path))
				break
			}
		}
	}
	if err := possiblyPaid(h, run); err != nil {
		return err
	}
	h.Complain("to score these answers again without new calls: --reuse=%s", run.ID)
	return nil
}

// possiblyPaid prints the estimated cost of attempts that a resumed evaluation repeated because they had no result. It is not
// part of the report, because a report must not depend on crashes.
func possiblyPaid(h *command.Host, run *command.Run) error {
	if !run.Resumed {
		return nil
	}
	steps, err := run.Steps(context.Background(), run.ID)
	if err != nil {
		return err
	}
	if _, cost := journal.Total(steps); cost.Possible.Attempts > 0 {
		h.Complain("possibly billed, but not in the report: $%s for %d attempts without a result", cmp.Or(money.USD(cost.Possible.USD, false), "0"), cost.Possible.Attempts)
	}
	return nil
}
