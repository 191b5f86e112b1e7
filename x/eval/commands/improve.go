package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/command"
	"github.com/stonelayer/stone/x/eval"
)

// improveFlags holds the values of eval improve's flags.
type improveFlags struct {
	data          eval.Data
	score, by     string
	prompts       []string
	rounds, shown int
	lanes         int
	out           string
}

func improving() command.Command {
	var flags improveFlags
	return command.Command{
		JSON: "the result as JSON", Wire: true,
		Flags: func(f *pflag.FlagSet) {
			dataFlags(f, &flags.data, "work on the dev split, and report on the test split, of the rows of")
			f.IntVar(&flags.data.N, "n", 0, "draw at most `N` cases of each split")
			f.Uint64Var(&flags.data.Seed, "seed", 0, "draw and show other cases with another `SEED`")
			f.StringVar(&flags.score, "score", "", "score by `KIND`, such as exact, or by a file with one scorer: see stone eval")
			f.StringVar(&flags.by, "by", "", "let the configured `CAPABILITY`, a model, revise the prompts")
			f.StringArrayVar(&flags.prompts, "prompt", nil, "revise only the prompt `NAME`; can be repeated")
			f.IntVar(&flags.rounds, "rounds", 0, "make at most `N` proposals (default 12)")
			f.IntVar(&flags.shown, "shown", 0, "base each proposal on `N` cases that went wrong (default 4)")
			f.IntVar(&flags.lanes, "lanes", 0, "answer at most `N` cases at once (default 64)")
			f.StringVar(&flags.out, "out", "", "write accepted prompts to the folder `DIR`")
		},
		Check: flags.check,
		Run:   func(ctx context.Context, h *command.Host) error { return improvePrompts(ctx, h, flags) },
	}
}

func (flags *improveFlags) check(_ []string, f *pflag.FlagSet) ([]string, error) {
	if err := counts(f); err != nil {
		return nil, err
	}
	for _, need := range []struct{ flag, value, what string }{
		{"data", flags.data.File, "a file of JSON Lines or CSV"},
		{"score", flags.score, "a scorer, such as exact"},
		{"by", flags.by, "a capability of the configuration that revises, such as llm/large"},
		{"out", flags.out, "a folder for the accepted prompts"},
	} {
		if need.value == "" {
			return nil, fmt.Errorf("--%s is missing: name %s", need.flag, need.what)
		}
	}
	if info, err := os.Stat(flags.out); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("--out %s is a file: name a folder for the accepted prompts", flags.out)
	}
	return columns(flags.data, "")
}

// improvePrompts improves the prompts of a pipeline.
func improvePrompts(ctx context.Context, h *command.Host, flags improveFlags) error {
	by, err := scorer(h.Applicator, flags.score)
	if err != nil {
		return err
	}
	improving := eval.Improving{
		Program: h.Pipeline, Data: flags.data, Scorer: by, Applicator: h.Applicator, By: flags.by,
		Prompts: flags.prompts, Rounds: flags.rounds, Shown: flags.shown, Lanes: flags.lanes,
	}
	q, err := improving.Pipeline(ctx, h.Config)
	if err == nil && !h.Unrecorded {
		err = h.Journal(ctx, func(j command.Journal) error { // counts the runs that have used the test split
			n, err := looks(ctx, j, eval.TestOf(q), "")
			improving.Looks = n - 1
			return err
		})
		if errors.Is(err, fs.ErrNotExist) { // this run creates the database
			err = nil
		}
	}
	if err == nil {
		q, err = improving.Pipeline(ctx, h.Config)
	}
	if err != nil {
		return err
	}
	task := command.Task{Pipeline: q, Name: "eval improve " + h.Pipeline.Name(), Labels: map[string]string{testLabel: eval.TestOf(q)}}
	return measure(counted(ctx), h, task, false, func(n *dag.Node, _ dag.DAG, _ *command.Run) error {
		r, err := eval.Improved.Of(n)
		if err != nil {
			return err
		}
		return printRevision(h, r, flags)
	})
}

// printRevision prints a revision and writes the accepted prompts.
func printRevision(h *command.Host, r eval.Revision, flags improveFlags) error {
	if err := h.Print(r, r.Text()); err != nil || !r.Accepted {
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
		h.Complain("%s is in %s: name it in the configuration as {:file %q}, or embed it in the program", c.Prompt, file, file)
	}
	return nil
}
