package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/text"
)

var errNoEvidence = errors.New("this program reads and writes no evidence: give cli.Main the part of package github.com/stonelayer/stone/x/evidence")

func (a *app) verify(c *cobra.Command) {
	c.RunE = func(_ *cobra.Command, args []string) error {
		if a.linked.evidence == nil {
			return errNoEvidence
		}
		f, err := os.Open(args[0])
		if err != nil {
			return fmt.Errorf("%w: want the file of an export --as evidence", err)
		}
		contents, problems, err := a.linked.evidence.Verify(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return failed("%s: %w", args[0], err)
		}
		for _, p := range problems {
			a.complain("%s", text.Line(p))
		}
		if n := len(problems); n > 0 {
			return failed("%s is not as it was written: %s", args[0], text.Plural(n, "problem"))
		}
		_, err = fmt.Fprintln(a.Stdout, contents)
		return output(err)
	}
}
