package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/evidence"
	"github.com/stonelayer/stone/internal/text"
)

func (a *app) verify(c *cobra.Command) {
	c.RunE = func(_ *cobra.Command, args []string) error {
		f, err := os.Open(args[0])
		if err != nil {
			return fmt.Errorf("%w: want the file of an export --as evidence", err)
		}
		r, err := evidence.Verify(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return failed("%s: %w", args[0], err)
		}
		for _, p := range r.Problems {
			a.complain("%s", text.Line(p))
		}
		if n := len(r.Problems); n > 0 {
			return failed("%s is not as it was written: %s", args[0], text.Plural(n, "problem"))
		}
		_, err = fmt.Fprintf(a.Stdout, "run %s: %s, %s, %s\nseal %s\n", text.Line(r.Run),
			text.Plural(r.Records, "record"), text.Plural(r.Nodes, "node"), text.Plural(r.Questions, "question"), r.Sum)
		return output(err)
	}
}
