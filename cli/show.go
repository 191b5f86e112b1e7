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
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/export"
	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// showFlags are the flags of show.
type showFlags struct {
	dag bool
	all bool

	chrome string // a file to write
}

func (a *app) showRun() *cobra.Command {
	var flags showFlags
	c := a.overRun(&cobra.Command{
		Use:   "show RUN [NODE|PATH] [flags]",
		Short: "Show the steps of a run, or the result of one step",
		Long: "Show prints the state of a run and the tree of its steps: ✓ done, ✗ failed, ! a failure inside, ? waiting\n" +
			"for an answer, … no result. Steps that started but have no result may have been billed. With a NODE, by\n" +
			"the beginning of its id, or the PATH of a step, it prints that content. The end of a path is enough if\n" +
			"it is unique.",
		Example: a.example("show last", "show nightly fix/turn-2"),
	}, 1, 2, func(c *cobra.Command, args []string) error {
		if flags.chrome != "" && (flags.dag || a.json || flags.all || len(args) > 1) {
			return errors.New("--chrome writes a file of the whole run: leave out --dag, --json, --all and NODE")
		}
		if flags.dag && (a.json || flags.all || len(args) > 1) {
			return errors.New("--dag prints the whole DAG: leave out --json, --all and NODE")
		}
		return a.withStore(c.Context(), func(s *store) error { return a.showKept(c.Context(), s, args, flags) })
	})
	f := c.Flags()
	a.dbFlag(f)
	a.jsonFlag(f, "a JSON object: run, steps, questions; or id, type, content, meta, parents of a node")
	f.BoolVar(&flags.dag, "dag", false, "print the DAG as JSON Lines, like run --dag")
	f.StringVar(&flags.chrome, "chrome", "", "write what ran when to `FILE`, for ui.perfetto.dev and chrome://tracing")
	f.BoolVar(&flags.all, "all", false, "print every lane and round; for a NODE, include the conversation of an agent")
	return c
}

func (a *app) showKept(ctx context.Context, s *store, args []string, flags showFlags) error {
	info, err := s.find(ctx, args[0])
	if err != nil {
		return err
	}
	if len(args) > 1 {
		return a.showPlace(ctx, s, info, args[1], flags.all)
	}
	switch {
	case flags.dag:
		return a.printNodes(s.EachNode(ctx, info.ID))
	case flags.chrome != "":
		return exported(flags.chrome, info, s.EachStep(ctx, info.ID))
	case a.json:
		questions, err := s.Questions(ctx, info.ID)
		if err != nil {
			return failed("%w", err)
		}
		info.Shape = nil // it is for comparing pipelines
		return printRun(a.Stdout, info, marked(ctx, s, info), questions)
	}
	run, err := view.Read(ctx, s, info, flags.all)
	if err != nil {
		return failed("%w", err)
	}
	printer := newTreePrinter(run, flags.all, a.columns())
	if err := printer.print(ctx); err != nil {
		return failed("%w", err)
	}
	if err = a.printHead(run); err == nil {
		err = printTable(a.Stdout, a.columns(), printer.columns)
	}
	if err == nil {
		err = a.printTail(ctx, s, info)
	}
	return output(err)
}

// exported writes a run to a file for Perfetto.
func exported(file string, info journal.RunInfo, steps iter.Seq2[journal.Step, error]) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := errors.Join(export.Chrome(f, info, steps), f.Close()); err != nil {
		return failed("%s: %w", file, err)
	}
	return nil
}

// printNodes prints nodes in the format of run --dag.
func (a *app) printNodes(nodes iter.Seq2[journal.NodeInfo, error]) error {
	out := bufio.NewWriter(a.Stdout)
	for n, err := range nodes {
		if err != nil {
			return errors.Join(failed("%w", err), out.Flush())
		}
		if err := jsonv2.MarshalWrite(out, n, jsonv2.Deterministic(true)); err != nil {
			return output(err)
		}
		_ = out.WriteByte('\n') // Flush reports an error of the writer
	}
	return output(out.Flush())
}

// A shownStep is a step of a run, which may have been superseded by a newer one of its place.
type shownStep struct {
	journal.Step
	Superseded bool `json:"superseded,omitempty"`
}

// marked yields the steps of a run. Only those of a run with steps that were done again are read at once.
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

// printRun prints one JSON object: run, steps, questions.
func printRun(w io.Writer, info journal.RunInfo, steps iter.Seq2[shownStep, error], questions []journal.Question) error {
	out := bufio.NewWriter(w) // Flush reports its errors
	value := func(before, indent string, v any) error {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		enc.SetIndent(indent, "  ")
		err := enc.Encode(v)
		_, _ = out.WriteString(before)
		_, _ = out.Write(bytes.TrimSpace(text.Bytes()))
		return err
	}
	err := value("{\n  \"run\": ", "  ", info)
	_, _ = out.WriteString(",\n  \"steps\": [")
	before, after := "\n    ", ""
	for s, broken := range steps {
		if err = cmp.Or(err, broken); err != nil {
			return errors.Join(failed("%w", err), out.Flush())
		}
		err = value(before, "    ", s)
		before, after = ",\n    ", "\n  "
	}
	_, _ = out.WriteString(after + "],\n")
	err = cmp.Or(err, value("  \"questions\": ", "  ", list(questions)))
	_, _ = out.WriteString("\n}\n")
	return output(errors.Join(err, out.Flush()))
}

// list is never null in JSON.
func list[T any](l []T) []T {
	if l == nil {
		l = []T{}
	}
	return l
}

// printHead prints the state of a run.
func (a *app) printHead(run *view.Run) error {
	info := run.RunInfo
	state := stateOf(run.Head)
	if failure := failureOf(run.Head); strings.HasPrefix(failure, state+" ") { // a kind that says the same
		state = failure
	} else if failure != "" {
		state += ": " + failure
	}
	started := info.Started.Local().Format(time.DateTime)
	if duration := took(info.Started, run.Until(time.Now())); duration != "" {
		started += ", " + duration
	}
	used := fmt.Sprintf("%d recorded", run.Recorded)
	if u := run.Cost.Usage; u.InputTokens+u.OutputTokens > 0 {
		used += fmt.Sprintf(", %d tokens in, %d out", u.InputTokens, u.OutputTokens)
	}
	if c := total(run.Cost); c != "" {
		used += ", cost " + c
	}
	reuse := info.Reuse
	if reuse == journal.AnyRun {
		reuse = "any run"
	}
	from, _ := readSource(info)
	command := ""
	if from.Dir != "" {
		command = from.String()
	}
	heads := [][2]string{
		{"run", info.ID}, {"pipeline", info.Pipeline}, {"state", state}, {"held by", info.Owner}, {"started", started},
		{"command", command}, {"in", from.Dir}, {"reuses", reuse}, {"steps", used},
	}
	var b strings.Builder
	for _, h := range heads {
		if h[1] != "" {
			fmt.Fprintf(&b, "%-9s %s\n", h[0], text.Line(h[1]))
		}
	}
	if run.Large || len(run.All) > 0 {
		b.WriteByte('\n')
	}
	_, err := io.WriteString(a.Stdout, b.String())
	return err
}

// printTail prints the open questions and the command that resumes the run.
func (a *app) printTail(ctx context.Context, s *store, info journal.RunInfo) error {
	open, err := s.open(ctx, info.ID)
	if err != nil {
		return err
	}
	if len(open) > 0 {
		fmt.Fprintln(a.Stdout)
	}
	if err := a.printQuestions(a.Stdout, s, open); err != nil {
		return err
	}
	a.printNotices(info.Notices)
	if info.State != journal.Done && info.State != journal.Running {
		if _, ours := readSource(info); !ours {
			a.complain("this command did not start it: its server or program continues it")
			return nil
		}
		a.complain("to continue: %s", a.command(s, append([]string{"resume", info.ID}, enough(info.Failure)...)...))
	}
	return nil
}

// more is the limit that a failure says would be enough.
var more = regexp.MustCompile(`: set (max-[a-z]+) to at least ([0-9.]+)`)

// enough returns the flag without which a run whose budget was exhausted would end in the same way.
func enough(f *journal.Failure) []string {
	if f == nil || f.Kind != budget.Kind {
		return nil
	}
	if m := more.FindStringSubmatch(f.Reason); m != nil {
		return []string{"--" + m[1], m[2]}
	}
	return nil
}
