package commands

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/command"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/x/eval"
)

// tuneFlags holds the values of eval tune's flags.
type tuneFlags struct {
	data  eval.Data
	score string
	lanes int
	call  string
	usd   float64
	out   string
}

func tuning() command.Command {
	var flags tuneFlags
	return command.Command{
		OnlyPlans: true, JSON: "the choice and the report on the test split as two JSON objects",
		Flags: func(f *pflag.FlagSet) {
			dataFlags(f, &flags.data, "choose on the dev split, and report on the test split, of the rows of")
			f.StringVar(&flags.score, "score", "", "score by `KIND`, such as exact, or by a file with one scorer: see stone eval")
			f.IntVar(&flags.lanes, "lanes", 0, "answer at most `N` cases at once for each candidate (default 64)")
			f.StringVar(&flags.call, "call", "", "the `SLOT` of the call; needed if the plan has several calls")
			f.Float64Var(&flags.usd, "usd-per-case", 0, "limit the mean cost of an answer to `USD` dollars")
			f.StringVar(&flags.out, "out", "", "write the plan to `FILE`, without the comments of PLAN")
		},
		Check: func(args []string, f *pflag.FlagSet) ([]string, error) {
			switch {
			case counts(f) != nil:
				return nil, counts(f)
			case len(args) == 0 || !isPlan(args[0]):
				return nil, errors.New("want a plan, by the name of its .edn or .json file: only a plan can be rewritten")
			case flags.data.File != "" && flags.score == "":
				return nil, errors.New("--score is missing: name a scorer, such as --score exact")
			case flags.data.File != "" && !(flags.usd > 0):
				return nil, errors.New("--usd-per-case is missing: set the mean cost of an answer in USD")
			case flags.data.File != "" && !isPlan(flags.out):
				return nil, errors.New("--out is missing: name an .edn or .json file for the plan")
			}
			flags.data.Split = eval.DevSplit
			return columns(flags.data, "")
		},
		Run: func(ctx context.Context, h *command.Host) error { return tunePlan(ctx, h, flags) },
	}
}

// isPlan reports whether a file is a plan.
func isPlan(file string) bool { return slices.Contains([]string{".edn", ".json"}, filepath.Ext(file)) }

// tunePlan chooses a setting on the dev split, writes it into a plan, and evaluates the plan on the test split.
func tunePlan(ctx context.Context, h *command.Host, flags tuneFlags) error {
	t, err := tuningOf(h, flags)
	if err != nil {
		return err
	}
	q, err := t.Pipeline(ctx, h.Config)
	if err != nil {
		return err
	}
	test := eval.Config{Pipeline: h.Pipeline, Data: t.Data, Scorers: []eval.Scorer{t.Scorer}}
	test.Data.Split = eval.TestSplit
	if _, err := eval.Pipeline(ctx, test, h.Config); err != nil { // checked before anything is paid
		return err
	}
	ctx = counted(ctx)
	var line []string
	task := command.Task{Pipeline: q, Name: "eval tune " + h.Argument, Reuse: true}
	err = measure(ctx, h, task, h.Live, func(n *dag.Node, _ dag.DAG, run *command.Run) error {
		choice, err := eval.Tuned.Of(n)
		if err == nil {
			err = h.Print(choice, choice.Text()+"\n")
		}
		if err == nil {
			err = writeTuned(h, choice, t.Call, flags)
		}
		if err == nil {
			line = testLine(ctx, flags, run)
		}
		return err
	})
	switch {
	case err != nil || line == nil:
		return err
	case line[0] == "resume":
		return h.Then(ctx, line, "trust", "quiet", "json")
	}
	return h.Then(ctx, line, "trust", "quiet", "json", "data", "expected", "cluster", "score", "lanes", "config", "grant", "bind", "mode")
}

// testLine returns the command line that starts or resumes the evaluation of the plan on the test split.
func testLine(ctx context.Context, flags tuneFlags, run *command.Run) []string {
	line := []string{"eval", flags.out, "--split=" + eval.TestSplit}
	if run == nil {
		return append(line, "--no-db")
	}
	id := run.ID + "-test"
	if info, err := run.Find(ctx, id); err == nil && info.ID == id {
		return []string{"resume", id}
	}
	return append(line, "--id="+id)
}

// tuningOf reads the flags and the plan to which they apply.
func tuningOf(h *command.Host, flags tuneFlags) (t eval.Tuning, err error) {
	t = eval.Tuning{Data: flags.data, Lanes: flags.lanes, Call: flags.call, USDPerCase: flags.usd}
	if t.Scorer, err = scorer(h.Applicator, flags.score); err != nil {
		return t, err
	}
	if slots := h.Plan.Calls(); t.Call == "" && len(slots) == 1 {
		t.Call = slots[0]
	} else if t.Call == "" {
		return t, fmt.Errorf("the plan has %d calls that could be tuned: choose one with --call (%s)", len(slots), strings.Join(slots, ", "))
	}
	_, err = h.Plan.WithCall(t.Call, func(s *call.Spec) (err error) {
		t.Cascade, err = h.Applicator.Tunable(*s)
		return err
	})
	t.Alone = func(candidate string) (stone.Ashlar, error) {
		p, err := h.Plan.WithCall(t.Call, func(s *call.Spec) error {
			s.Cap, s.Dispatch.Candidates, s.Done.ScoreMin = candidate, nil, new(0.0)
			return nil
		})
		if err != nil {
			return stone.Ashlar{}, err
		}
		return h.Compile(p)
	}
	return t, err
}

// writeTuned writes the plan with the chosen setting. In EDN, the figures of the choice are added as a comment.
func writeTuned(h *command.Host, choice eval.Choice, slot string, flags tuneFlags) error {
	tuned, err := h.Plan.WithCall(slot, func(s *call.Spec) error {
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
