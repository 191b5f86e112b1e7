package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli/internal/graph"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/tree"
)

func (a *app) validate(c *cobra.Command) {
	var input string
	var types []string
	c.Annotations = map[string]string{onlyFailed: "yes"}
	a.over(c, func(ctx context.Context, p stone.Ashlar) error {
		given, err := a.input(ctx, p, runFlags{input: input})
		if err != nil {
			return err
		}
		var known []string
		for _, in := range tree.Inputs(p) {
			known = append(known, in.Type.Name())
		}
		for _, name := range types {
			if !slices.Contains(known, name) {
				return fmt.Errorf("--given %s: the pipeline has no such input%s", name, suggest.Hint(name, slices.Values(known)))
			}
		}
		findings := slices.DeleteFunc(a.findings(p, a.with(given)), func(f stone.Finding) bool {
			return a.calls.promised(f) || f.Type == "missing-producer" && slices.Contains(types, f.Queried)
		})
		switch {
		case a.json:
			if findings == nil {
				findings = stone.Findings{}
			}
			err = printJSON(a.Stdout, findings)
		case len(findings) == 0 && a.calls.file != "":
			_, err = fmt.Fprintln(a.Stdout, "Plan is valid.")
		case len(findings) == 0:
			_, err = fmt.Fprintln(a.Stdout, "Pipeline is valid.")
		default:
			err = printFindings(a.Stdout, findings)
		}
		if err == nil && !a.json && findings.Err() == nil {
			err = a.printBound(a.Stdout, a.calls.bound(ctx, p, a.with(given)))
		}
		if err == nil && findings.Err() != nil {
			return &exitError{code: Failed}
		}
		return output(err)
	})
	a.jsonFlag(c.Flags(), "the findings as a JSON array")
	c.Flags().StringSliceVar(&types, "given", nil, "count the input `TYPE` as given; repeatable")
	c.Flags().StringVar(&input, "input", "", "check a run that starts with an input: `JSON`, a text, or @FILE")
}

// promised reports whether a finding is about a missing input that the plan declares and the run will supply.
func (k *calls) promised(f stone.Finding) bool {
	return f.Type == "missing-producer" && k.plan != nil && slices.Contains(k.plan.Inputs(), f.Queried)
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printFindings prints first the errors and then the warnings, each under a header.
func printFindings(w io.Writer, findings stone.Findings) error {
	return errors.Join(printBlock(w, "Errors", findings.Errors()), printBlock(w, "Warnings", findings.Warnings()))
}

func printBlock(w io.Writer, header string, findings stone.Findings) error {
	if len(findings) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s (%d):\n", header, len(findings))
	for _, f := range findings {
		if _, failed := fmt.Fprintln(w, text.Line(f.String())); failed != nil {
			return failed
		}
	}
	return err
}

func (a *app) graph(c *cobra.Command) {
	format := choice{"mermaid", []string{"mermaid", "dot", "svg"}}
	a.over(c, func(ctx context.Context, p stone.Ashlar) error {
		g, err := graph.Of(p)
		if err != nil {
			return failed("%w", err)
		}
		var drawing []byte
		switch format.value {
		case "dot":
			drawing = []byte(g.DOT())
		case "svg":
			if drawing, err = g.SVG(ctx); errors.Is(err, graph.ErrNoGraphviz) {
				return err
			} else if err != nil {
				return failed("%w", err)
			}
		default:
			drawing = []byte(g.Mermaid())
		}
		_, err = a.Stdout.Write(drawing)
		return output(err)
	})
	choiceFlag(c, &format, "format", "of the drawing")
}

func (a *app) names(c *cobra.Command) {
	var long bool
	a.over(c, func(_ context.Context, p stone.Ashlar) error {
		switch {
		case a.json:
			return output(printJSON(a.Stdout, partsOf(p)))
		case long:
			var all []block
			for _, one := range partsOf(p) {
				b := block{title: one.Path}
				b.add("form", one.Form)
				b.add("reads", strings.Join(one.Reads, ", "))
				b.add("produces", one.Produces)
				b.add("effects", strings.Join(one.Effects, ", "))
				all = append(all, block{b.title, append(b.rows, one.rows...)})
			}
			return output(printBlocks(a.Stdout, all))
		}
		for _, name := range p.Names() {
			if _, err := fmt.Fprintln(a.Stdout, text.Line(name)); err != nil {
				return output(err)
			}
		}
		return nil
	})
	c.Flags().BoolVarP(&long, "long", "l", false, "print a table for each step")
	a.jsonFlag(c.Flags(), "a JSON array with what --long shows")
}

func (a *app) paths(c *cobra.Command) {
	var limit uint
	a.over(c, func(_ context.Context, p stone.Ashlar) error {
		seen, met := map[string]bool{}, uint64(0)
		if limit > 0 {
			for path := range tree.Paths(p) {
				met++
				line := text.Line(strings.Join(path, " -> "))
				if seen[line] { // several branches can contain steps of the same name
					continue
				}
				seen[line] = true
				if _, err := fmt.Fprintln(a.Stdout, line); err != nil {
					return output(err)
				}
				if uint(len(seen)) == limit {
					break
				}
			}
		}
		more := tree.CountPaths(p)
		more.Sub(more, new(big.Int).SetUint64(met))
		if more.Sign() <= 0 {
			return nil
		}
		_, err := fmt.Fprintf(a.Stdout, "… and %s more\n", more)
		return output(err)
	})
	c.Flags().UintVar(&limit, "limit", 1000, "list at most `N` paths, and count the rest")
}
