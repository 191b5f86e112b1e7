package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/eval"
	"github.com/stonelayer/stone/journal"
)

// improveFlags are the flags of eval improve.
type improveFlags struct {
	run           runFlags
	data          eval.Data
	score, by     string
	prompts       []string
	rounds, shown int
	lanes         int
	out           string
}

func (a *app) improve() *cobra.Command {
	var flags improveFlags
	c := a.over(&cobra.Command{
		Use:   "improve",
		Short: "Revise the prompts of a pipeline",
		Long: "Improve revises prompts that are marked as adjustable, with agent.Adjustable or in a capability that the\n" +
			"pipeline may ask. The model --by reads cases of the split dev that went wrong and\n" +
			"proposes a better prompt; what does better on dev is kept and revised again. If a version beats the\n" +
			"present prompts, both answer the split test, once. If the test shows an improvement, you are\n" +
			"asked whether to accept it; accepted prompts are written to --out, a file each. With --max-usd, the\n" +
			"money for the test is kept back.",
		Example: a.example("eval improve ./triage --data cases.jsonl --score exact --by llm/large --max-usd 5 --out prompts"),
	}, func(ctx context.Context, p stone.Ashlar) error { return a.improvePrompts(ctx, p, flags) })
	f := c.Flags()
	f.StringVar(&flags.data.File, "data", "", "work on the dev split of the rows of `FILE`, JSON Lines or CSV, and report on its test split")
	f.StringVar(&flags.data.Expected, "expected", "", "`COLUMN` with the expected output (default expected)")
	f.StringVar(&flags.data.Cluster, "cluster", "", "`COLUMN` that groups cases that are not independent")
	f.Var(count(&flags.data.N), "n", "draw at most `N` cases of each split")
	f.Uint64Var(&flags.data.Seed, "seed", 0, "draw other cases with another `SEED`, and show others")
	f.StringVar(&flags.score, "score", "", "score by `KIND`, such as exact, or by a file with one scorer: see stone eval")
	f.StringVar(&flags.by, "by", "", "`CAPABILITY` of the configuration, a model, that revises the prompts")
	f.StringArrayVar(&flags.prompts, "prompt", nil, "revise only the prompt `NAME`; can be repeated")
	f.Var(count(&flags.rounds), "rounds", "make at most `N` proposals (default 12)")
	f.Var(count(&flags.shown), "shown", "make each proposal from `N` cases that went wrong (default 4)")
	f.Var(count(&flags.lanes), "lanes", "answer at most `N` cases at once (default 64)")
	f.StringVar(&flags.out, "out", "", "write accepted prompts to the folder `DIR`")
	kept(f, "data", "expected", "cluster", "n", "seed", "score", "by", "prompt", "rounds", "shown", "lanes", "out")
	f.BoolVar(&flags.run.json, "json", false, "print the result as JSON")
	f.BoolVarP(&flags.run.quiet, "quiet", "q", false, "do not show progress")
	flags.run.wire.describe(f)
	a.trustFlag(f)
	a.addKeepFlags(c, &flags.run.keep)
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		for _, need := range []struct{ flag, value, what string }{
			{"data", flags.data.File, "a file of JSON Lines or CSV"},
			{"score", flags.score, "a scorer, such as exact"},
			{"by", flags.by, "a capability of the configuration that revises, such as llm/large"},
			{"out", flags.out, "a folder for the accepted prompts"},
		} {
			if need.value == "" {
				return fmt.Errorf("--%s is missing: name %s", need.flag, need.what)
			}
		}
		if info, err := os.Stat(flags.out); err == nil && !info.IsDir() {
			return fmt.Errorf("--out %s is a file: name a folder for the accepted prompts", flags.out)
		}
		var err error // of a plan, the columns are slots
		if a.calls.slots, err = flags.data.Columns(); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		err = before(c, args)
		flags.run.keep.made.Command = "eval improve"
		return err
	}
	return c
}

// improvePrompts revises the prompts of a pipeline.
func (a *app) improvePrompts(ctx context.Context, p stone.Ashlar, flags improveFlags) error {
	if err := a.consentToConfig(); err != nil {
		return err
	}
	if err := a.withoutKeys(flags.run.wire); err != nil {
		return err
	}
	conf, err := a.configured()
	if err != nil {
		return err
	}
	scorers, err := eval.Read(conf.App, flags.score)
	if err == nil && len(scorers) != 1 {
		err = fmt.Errorf("%d scorers: give one, whose mean is maximized", len(scorers))
	}
	if err != nil {
		return fmt.Errorf("--score: %w", err)
	}
	cfg := a.calls.base
	improving := eval.Improving{
		Program: p, Data: flags.data, Scorer: scorers[0], Applicator: conf.App, By: flags.by,
		Prompts: flags.prompts, Rounds: flags.rounds, Shown: flags.shown, Lanes: flags.lanes,
	}
	q, err := improving.Pipeline(ctx, cfg)
	if err == nil && !flags.run.keep.none {
		improving.Looks, err = a.earlierLooks(ctx, flags.run.keep, eval.TestOf(q))
	}
	if err == nil {
		q, err = improving.Pipeline(ctx, cfg)
	}
	if err != nil {
		return err
	}
	flags.run.keep.name = "eval improve " + p.Name()
	flags.run.keep.labels = map[string]string{testLabel: eval.TestOf(q)}
	if budget.From(ctx) == nil {
		ctx = budget.With(ctx, budget.New(budget.Limits{}))
	}
	if flags.run.own = true; !flags.run.quiet {
		shown := &evalProgress{account: budget.From(ctx), out: unshielded(a.Stderr), began: time.Now()}
		defer shown.close()
		cfg.Watch = eval.Watch(q, shown.show)
	}
	findings := append(stone.Validate(q, cfg.Given()), a.calls.unfit(q)...)
	return a.perform(ctx, q, cfg, findings.Errors(), flags.run, func(result stone.Result, _ *keptRun) error {
		if result.Node == nil {
			return nil
		}
		r, err := eval.Improved.Of(result.Node)
		if err != nil {
			return err
		}
		return a.printRevision(r, flags)
	})
}

// earlierLooks returns how many runs have looked at a test split.
func (a *app) earlierLooks(ctx context.Context, k keepFlags, test string) (int, error) {
	s, err := a.newStore(ctx, k.db, k.resume)
	if err != nil {
		return 0, err
	}
	before := &keptRun{store: s, opts: journal.Options{Labels: map[string]string{testLabel: test}}}
	n, err := before.looks(ctx)
	return n - 1, errors.Join(err, s.Close())
}

// printRevision prints a revision and writes the accepted prompts.
func (a *app) printRevision(r eval.Revision, flags improveFlags) error {
	var err error
	if flags.run.json {
		err = printJSON(a.Stdout, r)
	} else {
		_, err = io.WriteString(a.Stdout, r.Text())
	}
	if err != nil || !r.Accepted {
		return err
	}
	for _, c := range r.Changes {
		name := strings.ReplaceAll(c.Prompt, ":", "@") + ".md" // which no name of a capability has
		if !filepath.IsLocal(name) {
			name = url.PathEscape(name)
		}
		file := filepath.Join(flags.out, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(c.After+"\n"), 0o644)); err != nil {
			return err
		}
		a.complain("%s is in %s: name it in the configuration as {:file %q}, or embed it in the program", c.Prompt, file, file)
	}
	return nil
}
