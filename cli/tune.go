package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/eval"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/journal"
)

// tuneFlags holds the values of eval tune's flags.
type tuneFlags struct {
	run   runFlags
	data  eval.Data
	score string
	lanes int
	call  string
	usd   float64
	out   string
}

func (a *app) tune(c *cobra.Command) {
	var flags tuneFlags
	a.over(c, func(ctx context.Context, p stone.Ashlar) error { return a.tunePlan(ctx, c, p, flags) })
	f := c.Flags()
	dataFlags(f, &flags.data, "choose on the dev split, and report on the test split, of the rows of")
	f.StringVar(&flags.score, "score", "", "score by `KIND`, such as exact, or by a file with one scorer: see stone eval")
	f.Var(count(&flags.lanes), "lanes", "answer at most `N` cases at once for each candidate (default 64)")
	f.StringVar(&flags.call, "call", "", "the `SLOT` of the call; needed if the plan has several calls")
	f.Float64Var(&flags.usd, "usd-per-case", 0, "an answer may cost `USD` dollars in the mean")
	f.StringVar(&flags.out, "out", "", "write the plan to `FILE`; comments of PLAN are not kept")
	noted(f, makesPipeline, "score", "lanes", "call", "usd-per-case", "out")
	a.jsonFlag(f, "the choice and the report on the test split as two JSON objects")
	a.keepData(c, &flags.run, &flags.data, func(args []string) error {
		switch {
		case len(args) == 0 || !isPlan(args[0]):
			return errors.New("want a plan, by the name of its .edn or .json file: only a plan can be rewritten")
		case flags.data.File != "" && flags.score == "":
			return errors.New("--score is missing: name a scorer, such as --score exact")
		case flags.data.File != "" && !(flags.usd > 0):
			return errors.New("--usd-per-case is missing: set the mean cost of an answer in USD")
		case flags.data.File != "" && !isPlan(flags.out):
			return errors.New("--out is missing: name an .edn or .json file for the plan")
		}
		flags.data.Split = eval.DevSplit
		if flags.run.keep.reuse == "" && !flags.run.keep.none {
			flags.run.keep.reuse = journal.AnyRun
		}
		return nil
	})
}

// tunePlan chooses a setting on the dev split, writes it into a plan, and evaluates the plan on the test split.
func (a *app) tunePlan(ctx context.Context, c *cobra.Command, p stone.Ashlar, flags tuneFlags) error {
	if err := a.consentToConfig(); err != nil {
		return err
	}
	t, err := a.tuning(flags)
	if err != nil {
		return err
	}
	cfg := a.calls.base
	q, err := t.Pipeline(ctx, cfg)
	if err != nil {
		return err
	}
	test := eval.Config{Pipeline: p, Data: t.Data, Scorers: []eval.Scorer{t.Scorer}}
	test.Data.Split = eval.TestSplit
	if _, err := eval.Pipeline(ctx, test, cfg); err != nil { // checked before anything is paid
		return err
	}
	flags.run.keep.name = "eval tune " + flags.run.keep.made.Pipeline
	ctx = counted(ctx)
	account := budget.From(ctx)
	var line []string
	err = a.measure(ctx, q, cfg, flags.run, a.screen() != nil, func(n *dag.Node, _ dag.DAG, run *keptRun) error {
		choice, err := eval.Tuned.Of(n)
		if err != nil {
			return err
		}
		if a.json {
			err = printJSON(a.Stdout, choice)
		} else {
			_, err = io.WriteString(a.Stdout, choice.Text()+"\n")
		}
		if err == nil {
			err = a.writeTuned(choice, t.Call, flags)
		}
		if err == nil {
			line = a.testLine(ctx, c.Flags(), flags, run, account.Left())
		}
		return err
	})
	if err != nil || line == nil {
		return err
	}
	a.closeCalls() // this ends ctx
	return a.within(c.Context(), line)
}

// tuning reads the flags and the plan they apply to.
func (a *app) tuning(flags tuneFlags) (t eval.Tuning, err error) {
	k := &a.calls
	t = eval.Tuning{Data: flags.data, Lanes: flags.lanes, Call: flags.call, USDPerCase: flags.usd}
	if t.Scorer, err = scorer(k.conf.App, flags.score); err != nil {
		return t, err
	}
	if slots := k.plan.Calls(); t.Call == "" && len(slots) == 1 {
		t.Call = slots[0]
	} else if t.Call == "" {
		return t, fmt.Errorf("the plan has %d calls that could be tuned: choose one with --call (%s)", len(slots), strings.Join(slots, ", "))
	}
	_, err = k.plan.WithCall(t.Call, func(s *call.Spec) (err error) {
		t.Cascade, err = k.conf.App.Tunable(*s)
		return err
	})
	t.Alone = func(candidate string) (stone.Ashlar, error) {
		p, err := k.plan.WithCall(t.Call, func(s *call.Spec) error {
			s.Cap, s.Dispatch.Candidates, s.Done.ScoreMin = candidate, nil, new(0.0)
			return nil
		})
		if err != nil {
			return stone.Ashlar{}, err
		}
		return p.Ashlar(k.conf.App, k.opts)
	}
	return t, err
}

// writeTuned writes the plan with the chosen setting. In EDN, the figures of the choice are added as a comment.
func (a *app) writeTuned(choice eval.Choice, slot string, flags tuneFlags) error {
	tuned, err := a.calls.plan.WithCall(slot, func(s *call.Spec) error {
		s.Dispatch.Candidates, s.Done.ScoreMin = choice.Candidates, &choice.ScoreMin
		return nil
	})
	if err != nil {
		return err
	}
	// Both functions fail only for faulty plans.
	if strings.HasSuffix(flags.out, ".json") {
		text, _ := tuned.JSON()
		return os.WriteFile(flags.out, append(text, '\n'), 0o644)
	}
	text, _ := tuned.EDN()
	figures := fmt.Sprintf("; Tuned on %d cases of %s: mean %.4f at $%s a case, by %q.\n", choice.Cases, flags.data.File, choice.Mean, cmp.Or(money.USD(choice.USD, false), "0"), flags.score)
	return os.WriteFile(flags.out, slices.Concat([]byte(figures), bytes.TrimSpace(text), []byte("\n")), 0o644)
}

// testLine returns the command line that starts or resumes the evaluation of the plan on the test split.
func (a *app) testLine(ctx context.Context, set *pflag.FlagSet, flags tuneFlags, run *keptRun, left budget.Limits) (line []string) {
	names := []string{"trust", "quiet", "json"}
	if run == nil {
		line = []string{"eval", flags.out, "--no-db"}
	} else {
		id := run.id + "-test"
		line = []string{"eval", flags.out, "--id=" + id}
		if info, err := run.Find(ctx, id); err == nil && info.ID == id {
			line = []string{"resume", id}
		}
		if db := cmp.Or(a.db, flags.run.keep.resume); db != "" {
			line = append(line, "--db="+db)
		}
	}
	if line[0] == "eval" {
		line = append(line, "--split="+eval.TestSplit)
		names = append(names, "data", "expected", "cluster", "score", "lanes", "config", "grant", "bind", "mode")
	}
	for _, name := range names {
		if f := set.Lookup(name); f != nil && f.Changed {
			line = append(line, typed(f)...)
		}
	}
	return append(line, budgetLine(left)...)
}

// improveFlags holds the values of eval improve's flags.
type improveFlags struct {
	run           runFlags
	data          eval.Data
	score, by     string
	prompts       []string
	rounds, shown int
	lanes         int
	out           string
}

func (a *app) improve(c *cobra.Command) {
	var flags improveFlags
	a.over(c, func(ctx context.Context, p stone.Ashlar) error { return a.improvePrompts(ctx, p, flags) })
	f := c.Flags()
	dataFlags(f, &flags.data, "work on the dev split, and report on the test split, of the rows of")
	f.Var(count(&flags.data.N), "n", "draw at most `N` cases of each split")
	f.Uint64Var(&flags.data.Seed, "seed", 0, "draw other cases with another `SEED`, and show others")
	f.StringVar(&flags.score, "score", "", "score by `KIND`, such as exact, or by a file with one scorer: see stone eval")
	f.StringVar(&flags.by, "by", "", "`CAPABILITY` of the configuration, a model, that revises the prompts")
	f.StringArrayVar(&flags.prompts, "prompt", nil, "revise only the prompt `NAME`; can be repeated")
	f.Var(count(&flags.rounds), "rounds", "make at most `N` proposals (default 12)")
	f.Var(count(&flags.shown), "shown", "make each proposal from `N` cases that went wrong (default 4)")
	f.Var(count(&flags.lanes), "lanes", "answer at most `N` cases at once (default 64)")
	f.StringVar(&flags.out, "out", "", "write accepted prompts to the folder `DIR`")
	noted(f, makesPipeline, "n", "seed", "score", "by", "prompt", "rounds", "shown", "lanes", "out")
	a.jsonFlag(f, "the result as JSON")
	flags.run.wire.describe(f)
	a.keepData(c, &flags.run, &flags.data, func([]string) error {
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
		return nil
	})
}

// improvePrompts improves the prompts of a pipeline.
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
	by, err := scorer(conf.App, flags.score)
	if err != nil {
		return err
	}
	cfg := a.calls.base
	improving := eval.Improving{
		Program: p, Data: flags.data, Scorer: by, Applicator: conf.App, By: flags.by,
		Prompts: flags.prompts, Rounds: flags.rounds, Shown: flags.shown, Lanes: flags.lanes,
	}
	q, err := improving.Pipeline(ctx, cfg)
	if err == nil && !flags.run.keep.none {
		var s *store
		if s, err = a.newStore(ctx, flags.run.keep.resume); err == nil { // counts the runs that have used the test split
			before := &keptRun{store: s, opts: journal.Options{Labels: map[string]string{testLabel: eval.TestOf(q)}}}
			n, failed := before.looks(ctx)
			improving.Looks, err = n-1, errors.Join(failed, s.Close())
		}
	}
	if err == nil {
		q, err = improving.Pipeline(ctx, cfg)
	}
	if err != nil {
		return err
	}
	flags.run.keep.name = "eval improve " + p.Name()
	flags.run.keep.labels = map[string]string{testLabel: eval.TestOf(q)}
	return a.measure(counted(ctx), q, cfg, flags.run, false, func(n *dag.Node, _ dag.DAG, _ *keptRun) error {
		r, err := eval.Improved.Of(n)
		if err != nil {
			return err
		}
		return a.printRevision(r, flags)
	})
}

// printRevision prints a revision and writes the accepted prompts.
func (a *app) printRevision(r eval.Revision, flags improveFlags) error {
	var err error
	if a.json {
		err = printJSON(a.Stdout, r)
	} else {
		_, err = io.WriteString(a.Stdout, r.Text())
	}
	if err != nil || !r.Accepted {
		return err
	}
	for _, c := range r.Changes {
		name := strings.ReplaceAll(c.Prompt, ":", "@") + ".md" // no capability name contains this character
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
