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

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
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
		if s, err = a.newStore(ctx, flags.run.keep.resume); err == nil { // how many runs have looked at the test split
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
