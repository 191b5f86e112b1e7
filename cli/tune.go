package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// tuneFlags are the flags of eval tune.
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

// tunePlan chooses a setting on the dev split, writes it into a plan and evaluates that on the test split.
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
	if _, err := eval.Pipeline(ctx, test, cfg); err != nil { // before anything is paid
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
	a.closeCalls() // which ends ctx
	return a.within(c.Context(), line)
}

// tuning reads what the flags and the plan say.
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

// writeTuned writes the plan with the choice, in EDN with its figures as a comment.
func (a *app) writeTuned(choice eval.Choice, slot string, flags tuneFlags) error {
	tuned, err := a.calls.plan.WithCall(slot, func(s *call.Spec) error {
		s.Dispatch.Candidates, s.Done.ScoreMin = choice.Candidates, &choice.ScoreMin
		return nil
	})
	if err != nil {
		return err
	}
	// Both fail only for plans that were not read without faults.
	if strings.HasSuffix(flags.out, ".json") {
		text, _ := tuned.JSON()
		return os.WriteFile(flags.out, append(text, '\n'), 0o644)
	}
	text, _ := tuned.EDN()
	figures := fmt.Sprintf("; Tuned on %d cases of %s: mean %.4f at $%s a case, by %q.\n", choice.Cases, flags.data.File, choice.Mean, cmp.Or(money.USD(choice.USD, false), "0"), flags.score)
	return os.WriteFile(flags.out, slices.Concat([]byte(figures), bytes.TrimSpace(text), []byte("\n")), 0o644)
}

// testLine returns the command line that evaluates the plan on the test split, or resumes that.
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
