package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

func (a *app) diff(c *cobra.Command) {
	var under string
	a.overStore(c, func(ctx context.Context, s *store, args []string) error {
		from, err := s.find(ctx, args[0])
		if err != nil {
			return err
		}
		to, err := s.find(ctx, args[1])
		if err != nil {
			return err
		}
		differences, err := journal.Diff(ctx, s, from.ID, to.ID)
		if err != nil {
			return failed("%w", err)
		}
		differences = slices.DeleteFunc(differences, func(d journal.Difference) bool { return under != "" && !address.Within(d.Path, under) })
		if a.json {
			return output(printJSON(a.Stdout, list(differences)))
		}
		return a.printDifferences(a.Stdout, s, differences, from.ID, to.ID)
	})
	c.Flags().StringVar(&under, "under", "", "compare only the steps at `PATH` and below it")
	a.jsonFlag(c.Flags(), "the differences as a JSON array: path, name, type, a, b, why, follows")
}

// printDifferences prints the differences between two runs for people.
func (a *app) printDifferences(w io.Writer, s *store, differences []journal.Difference, from, to string) error {
	if len(differences) == 0 {
		a.complain("runs %s and %s did the same", from, to)
		return nil
	}
	var b strings.Builder
	for _, d := range differences {
		if fmt.Fprint(&b, text.Line(address.Readable(d.Path))); d.A != (dag.ID{}) || d.B != (dag.ID{}) { // the run's input has no node
			fmt.Fprintf(&b, "  %s → %s", short(d.A), short(d.B))
		}
		fmt.Fprintln(&b)
		for _, why := range d.Why {
			fmt.Fprintln(&b, "  "+text.Line(why))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return output(err)
	}
	a.complain("%s; to show a node: %s", text.Plural(len(differences), "difference"), a.command(s, "show", from, "NODE"))
	return nil
}

// short returns a prefix of a node's id that is long enough to find the node.
func short(id dag.ID) string {
	if id == (dag.ID{}) {
		return "none"
	}
	return id.String()[:12]
}
