package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/eval"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/plan"
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

func (a *app) tune() *cobra.Command {
	var flags tuneFlags
	var c *cobra.Command
	c = a.over(&cobra.Command{
		Use:         "tune",
		Annotations: map[string]string{plansAlone: "yes"},
		Short:       "Choose the order and the threshold of a cascade in a plan",
		Long: "Tune chooses the order of the candidates of a call and its score-min: the setting with the highest mean\n" +
			"score among those that cost at most --usd-per-case. It asks each candidate about each case of the split\n" +
			"dev once, or takes the answers of an earlier run, and simulates all settings on these answers. It writes\n" +
			"the plan with the chosen setting to --out, and then evaluates that on the split test. The budget applies\n" +
			"to both together. PLAN is the name of an .edn or .json file.",
		Example: a.example("eval tune plan.edn --data cases.jsonl --score exact --usd-per-case 0.002 --out tuned.edn"),
	}, func(ctx context.Context, p stone.Ashlar) error { return a.tunePlan(ctx, c, p, flags) })
	f := c.Flags()
	f.StringVar(&flags.data.File, "data", "", "choose on the dev split of the rows of `FILE`, JSON Lines or CSV, and report on its test split")
	f.StringVar(&flags.data.Expected, "expected", "", "`COLUMN` with the expected output (default expected)")
	f.StringVar(&flags.data.Cluster, "cluster", "", "`COLUMN` that groups cases that are not independent")
	f.StringVar(&flags.score, "score", "", "score by `KIND`, such as exact, or by a file with one scorer: see stone eval")
	f.Var(count(&flags.lanes), "lanes", "answer at most `N` cases at once for each candidate (default 64)")
	f.StringVar(&flags.call, "call", "", "the `SLOT` of the call; needed if the plan has several calls")
	f.Float64Var(&flags.usd, "usd-per-case", 0, "an answer may cost `USD` dollars in the mean")
	f.StringVar(&flags.out, "out", "", "write the plan to `FILE`; comments of PLAN are not kept")
	kept(f, "data", "expected", "cluster", "score", "lanes", "call", "usd-per-case", "out")
	f.BoolVar(&flags.run.json, "json", false, "print the choice and the report on the test split as two JSON objects")
	f.BoolVarP(&flags.run.quiet, "quiet", "q", false, "do not show progress")
	a.trustFlag(f)
	a.addKeepFlags(c, &flags.run.keep)
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || !isPlan(args[0]):
			return errors.New("want a plan, by the name of its .edn or .json file: only a plan can be rewritten")
		case flags.data.File == "":
			return errors.New("--data is missing: name a file of JSON Lines or CSV")
		case flags.score == "":
			return errors.New("--score is missing: name a scorer, such as --score exact")
		case !(flags.usd > 0):
			return errors.New("--usd-per-case is missing: set the mean cost of an answer in USD")
		case !isPlan(flags.out):
			return errors.New("--out is missing: name an .edn or .json file for the plan")
		}
		flags.data.Split = eval.DevSplit
		var err error
		if a.calls.slots, err = flags.data.Columns(); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		err = before(c, args)
		flags.run.keep.made.Command = "eval tune"
		if flags.run.keep.reuse == "" && !flags.run.keep.none {
			flags.run.keep.reuse = journal.AnyRun
		}
		return err
	}
	return c
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
	if budget.From(ctx) == nil {
		ctx = budget.With(ctx, budget.New(budget.Limits{}))
	}
	account := budget.From(ctx)
	if flags.run.own = true; !flags.run.quiet {
		shown := &evalProgress{account: account, out: unshielded(a.Stderr), live: a.screen() != nil, began: time.Now()}
		defer shown.close()
		cfg.Watch = eval.Watch(q, shown.show)
	}
	var line []string
	findings := append(stone.Validate(q, cfg.Given()), a.calls.unfit(q)...)
	err = a.perform(ctx, q, cfg, findings.Errors(), flags.run, func(result stone.Result, run *keptRun) error {
		if result.Node == nil {
			return nil
		}
		choice, err := eval.Tuned.Of(result.Node)
		if err == nil {
			err = a.printChoice(choice, flags.run.json)
		}
		if err == nil {
			err = a.writeTuned(choice, t.Call, flags)
		}
		if err == nil {
			line = testLine(ctx, c.Flags(), flags, run, account.Left())
		}
		return err
	})
	if err != nil || line == nil {
		return err
	}
	a.closeCalls() // which ends ctx
	return a.within(c.Context(), line)
}

func (a *app) printChoice(choice eval.Choice, json bool) error {
	if json {
		return printJSON(a.Stdout, choice)
	}
	_, err := io.WriteString(a.Stdout, choice.Text()+"\n")
	return err
}

// tuning reads what the flags and the plan say.
func (a *app) tuning(flags tuneFlags) (t eval.Tuning, err error) {
	k := &a.calls
	t = eval.Tuning{Data: flags.data, Lanes: flags.lanes, Call: flags.call, USDPerCase: flags.usd}
	scorers, err := eval.Read(k.conf.App, flags.score)
	if err == nil && len(scorers) != 1 {
		err = fmt.Errorf("%d scorers: give one, whose mean is maximized", len(scorers))
	}
	if err != nil {
		return t, fmt.Errorf("--score: %w", err)
	}
	t.Scorer = scorers[0]
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
	return os.WriteFile(flags.out, tunedText(tuned, choice, flags), 0o644)
}

func tunedText(p *plan.Plan, choice eval.Choice, flags tuneFlags) []byte {
	// Both fail only for plans that were not read without faults.
	if strings.HasSuffix(flags.out, ".json") {
		text, _ := p.JSON()
		return append(text, '\n')
	}
	text, _ := p.EDN()
	var b bytes.Buffer
	fmt.Fprintf(&b, "; Tuned on %d cases of %s: mean %.4f at $%s a case, by %q.\n", choice.Cases, flags.data.File, choice.Mean, cmp.Or(money.USD(choice.USD, false), "0"), flags.score)
	b.Write(bytes.TrimSpace(text))
	b.WriteByte('\n')
	return b.Bytes()
}

// testLine returns the command line that evaluates the plan on the test split, or resumes that.
func testLine(ctx context.Context, set *pflag.FlagSet, flags tuneFlags, run *keptRun, left budget.Limits) (line []string) {
	names := []string{"trust", "quiet", "json"}
	if run == nil {
		line = []string{"eval", flags.out, "--no-db"}
	} else {
		id := run.id + "-test"
		line = []string{"eval", flags.out, "--id=" + id}
		if info, err := run.Find(ctx, id); err == nil && info.ID == id {
			line = []string{"resume", id}
		}
		if db := cmp.Or(flags.run.keep.db, flags.run.keep.resume); db != "" {
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
