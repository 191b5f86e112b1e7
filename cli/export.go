package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/export"
	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/journal"
)

func (a *app) export(c *cobra.Command) {
	as, to := choice{of: []string{"json", "dag", "chrome", "html", "evidence", "otlp"}}, ""
	a.dbFlag(c.Flags())
	choiceFlag(c, &as, "as", "the `FORMAT`: "+strings.Join(as.of, ", "))
	c.Flags().StringVar(&to, "to", "", "write to `FILE`, or send to the URL of a collector; standard output by default")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case as.value == "":
			return fmt.Errorf("--as is missing: want %s", strings.Join(as.of, ", "))
		case len(args) > 1 && as.value != "json":
			return fmt.Errorf("--as %s exports a whole run: leave out %s", as.value, args[1])
		case as.value == "html" && a.linked.server == nil:
			return errors.New("this program cannot write pages: pass cli.Main the part of package github.com/stonelayer/stone/cli/serve")
		case as.value == "evidence" && a.linked.evidence == nil:
			return errNoEvidence
		case as.value == "otlp":
			return a.exportTrace(c.Context(), args[0], to)
		}
		return a.withStore(c.Context(), func(s *store) error {
			info, err := s.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			if to == "" {
				return a.exportRun(c.Context(), a.Stdout, s, info, as.value, args[1:])
			}
			f, err := os.Create(to)
			if err != nil {
				return fmt.Errorf("--to: %w", err)
			}
			return errors.Join(a.exportRun(c.Context(), f, s, info, as.value, args[1:]), f.Close())
		})
	}
}

// exportRun writes a run, or the steps at one place in it, in the given format.
func (a *app) exportRun(ctx context.Context, w io.Writer, s *store, info journal.RunInfo, as string, place []string) error {
	switch {
	case len(place) > 0:
		shown, err := s.place(ctx, info, place[0], true)
		if err == nil && shown.around {
			err = fmt.Errorf("%s is not a step: name a step below it", address.Readable(shown.Path))
		}
		if err != nil {
			return err
		}
		return output(printJSON(w, shown))
	case as == "dag":
		return printNodes(w, s.EachNode(ctx, info.ID))
	case as == "chrome":
		return output(export.Chrome(w, info, s.EachStep(ctx, info.ID)))
	case as == "evidence":
		sum, err := a.linked.evidence.Write(ctx, w, s, info)
		if err == nil {
			a.complain("seal %s", sum)
		}
		return output(err)
	case as == "html":
		return output(a.linked.server.HTML(ctx, w, s.Store, info.ID))
	}
	questions, err := s.Questions(ctx, info.ID)
	if err != nil {
		return failed("%w", err)
	}
	info.Shape = nil // needed only to compare pipelines
	return printRun(w, info, marked(ctx, s, info), questions)
}

// printNodes prints nodes in the format used by run --dag.
func printNodes(w io.Writer, nodes iter.Seq2[journal.NodeInfo, error]) error {
	out := bufio.NewWriter(w)
	for n, err := range nodes {
		if err != nil {
			return errors.Join(failed("%w", err), out.Flush())
		}
		if err := jsonv2.MarshalWrite(out, n, jsonv2.Deterministic(true)); err != nil {
			return output(err)
		}
		_ = out.WriteByte('\n') // Flush reports errors of the writer
	}
	return output(out.Flush())
}

// A shownStep is a step of a run. A newer step at the same place may have superseded it.
type shownStep struct {
	journal.Step
	Superseded bool `json:"superseded,omitempty"`
}

// marked returns an iterator over the steps of a run, with superseded steps marked. If the run has repeated steps, it reads all
// steps before it yields the first.
func marked(ctx context.Context, s *store, info journal.RunInfo) iter.Seq2[shownStep, error] {
	return func(yield func(shownStep, error) bool) {
		if len(info.Again) == 0 {
			for st, err := range s.EachStep(ctx, info.ID) {
				if !yield(shownStep{Step: st}, err) {
					return
				}
			}
			return
		}
		all, err := s.Steps(ctx, info.ID)
		if err != nil {
			yield(shownStep{}, err)
			return
		}
		current := journal.Current(all)
		for _, st := range all {
			is := len(current) > 0 && reflect.DeepEqual(st, current[0])
			if is {
				current = current[1:]
			}
			if !yield(shownStep{st, !is}, nil) {
				return
			}
		}
	}
}

// printRun prints one JSON object with the run, its steps and its questions.
func printRun(w io.Writer, info journal.RunInfo, steps iter.Seq2[shownStep, error], questions []journal.Question) error {
	out := bufio.NewWriter(w) // Flush reports errors
	err := writeJSON(out, "{\n  \"run\": ", "  ", info)
	_, _ = out.WriteString(",\n  \"steps\": [")
	before, after := "\n    ", ""
	for s, broken := range steps {
		if err = cmp.Or(err, broken); err != nil {
			return errors.Join(failed("%w", err), out.Flush())
		}
		err = writeJSON(out, before, "    ", s)
		before, after = ",\n    ", "\n  "
	}
	_, _ = out.WriteString(after + "],\n")
	err = cmp.Or(err, writeJSON(out, "  \"questions\": ", "  ", list(questions)))
	_, _ = out.WriteString("\n}\n")
	return output(errors.Join(err, out.Flush()))
}

// writeJSON writes the string before, followed by v as indented JSON. Each line is additionally indented by indent.
func writeJSON(out *bufio.Writer, before, indent string, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent(indent, "  ")
	err := enc.Encode(v)
	_, _ = out.WriteString(before)
	_, _ = out.Write(bytes.TrimSpace(text.Bytes()))
	return err
}

// list returns l, or an empty slice if l is nil, because JSON must not contain null.
func list[T any](l []T) []T {
	if l == nil {
		l = []T{}
	}
	return l
}

// exportTrace sends a trace file to the collector at an address.
func (a *app) exportTrace(ctx context.Context, path, to string) error {
	if a.linked.exporter == nil {
		return errors.New("this program sends no spans: pass cli.Main the part of package " + otlpPackage)
	}
	send, err := a.linked.exporter.Export(path, to, func(line string) { a.complain("%s", line) })
	if err != nil {
		return err
	}
	sent, err := send(ctx)
	if err != nil {
		return failed("%w", err)
	}
	_, err = fmt.Fprintf(a.Stdout, "spans sent: %d\n", sent)
	return output(err)
}
