package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/evidence"
	"github.com/stonelayer/stone/internal/text"
)

func (a *app) exportRun() *cobra.Command {
	var db, as string
	c := a.overRun(&cobra.Command{
		Use:   "export RUN --as evidence [flags]",
		Short: "Write a run into one file that can be checked without the database",
		Long: "Export prints the evidence of a run as JSON Lines: the run, its records, its nodes, the questions with who\n" +
			"answered them, and a seal with the SHA-256 of every line. It prints the sum of the seal to standard error.",
		Example: a.example("export nightly --as evidence > nightly.evidence"),
	}, 1, 1, func(c *cobra.Command, args []string) error {
		if as != "evidence" {
			return fmt.Errorf("--as %q: want evidence", as)
		}
		return a.withStore(c.Context(), db, func(s *store) error { return a.writeEvidence(c.Context(), s, args[0]) })
	})
	dbFlag(c.Flags(), &db)
	c.Flags().StringVar(&as, "as", "", "`FORMAT` of the file: evidence")
	return c
}

func (a *app) writeEvidence(ctx context.Context, s *store, name string) error {
	info, err := s.find(ctx, name)
	if err != nil {
		return err
	}
	sum, err := evidence.Write(ctx, a.Stdout, s, info)
	if err != nil {
		return failed("%w", err)
	}
	a.complain("seal %s", sum)
	return nil
}

func (a *app) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE",
		Short: "Check a file of evidence, and say what was changed",
		Long: "Verify reads a file that export --as evidence wrote. It computes the id of every node, the sum of every\n" +
			"record and the seal again, and says what was changed, added, moved or is missing. It needs no database.",
		Example: a.example("verify nightly.evidence"),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want one FILE, which export --as evidence wrote")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.verifyEvidence(args[0]) },
	}
}

func (a *app) verifyEvidence(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := evidence.Verify(f)
	if err != nil {
		return failed("%w", err)
	}
	for _, p := range r.Problems {
		a.complain("%s", text.Line(p))
	}
	if n := len(r.Problems); n > 0 {
		return failed("%s is not as it was written: %s", name, text.Plural(n, "problem"))
	}
	_, err = fmt.Fprintf(a.Stdout, "run %s: %s, %s, %s\nseal %s\n", text.Line(r.Run),
		text.Plural(r.Records, "record"), text.Plural(r.Nodes, "node"), text.Plural(r.Questions, "question"), r.Sum)
	return output(err)
}
