package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

func (a *app) showRun(c *cobra.Command) {
	var all bool
	a.overStore(c, func(ctx context.Context, s *store, args []string) error {
		info, err := s.find(ctx, args[0])
		if err != nil {
			return err
		}
		if len(args) > 1 {
			shown, err := s.place(ctx, info, args[1], all)
			if err != nil {
				return err
			}
			if shown.around {
				return a.showBelow(ctx, s, info, shown.Path, all)
			}
			if err := shown.print(a.Stdout); err != nil {
				return output(err)
			}
			a.nameAsked(s, info.ID, shown)
			return nil
		}
		run, err := view.Read(ctx, s, info, all)
		if err != nil {
			return failed("%w", err)
		}
		printer := newTreePrinter(run, all, a.columns())
		if err := printer.fill(ctx); err != nil {
			return failed("%w", err)
		}
		if err = a.printHead(run); err == nil {
			err = printer.print(a.Stdout, a.columns())
		}
		if err == nil {
			err = a.printTail(ctx, s, info)
		}
		return output(err)
	})
	c.Flags().BoolVar(&all, "all", false, "print every lane and round; for a NODE, include the conversation of an agent")
}

// nameAsked prints the command that shows the request to the last capability that a call tried.
func (a *app) nameAsked(s *store, run string, of shownNode) {
	record := call.RecordIn(of.Meta)
	if record == nil {
		return
	}
	for _, t := range slices.Backward(record.Tried) {
		if !t.Repair {
			a.complain("to show what %s was asked: %s", t.Cap, a.command(s, "show", run, quoted(address.Readable(of.Path+"/"+address.AttemptStep(t.Cap, t.Number)))))
			return
		}
	}
}

// showBelow prints the rows below a lane, a fan-out or another place that is not a step.
func (a *app) showBelow(ctx context.Context, s *store, info journal.RunInfo, path string, all bool) error {
	run, err := view.Read(ctx, s, info, all)
	if err != nil {
		return failed("%w", err)
	}
	printer := newTreePrinter(run, all, a.columns())
	level, err := run.Below(ctx, path)
	place := ""
	if numbered(level) {
		place = address.Last(path)
	}
	if err == nil {
		err = printer.level(ctx, level, place, 0)
	}
	if err != nil {
		return failed("%w", err)
	}
	return output(printer.print(a.Stdout, a.columns()))
}

// printHead prints the state of a run and, if it failed, the reason.
func (a *app) printHead(run *view.Run) error {
	info := run.RunInfo
	state := stateOf(run.Head)
	if failure := failureOf(run.Head); strings.HasPrefix(failure, state+" ") { // do not repeat the kind before the reason
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
	fork := ""
	if f := info.Fork; f != nil {
		fork = f.Run + " at " + address.Readable(f.At)
	}
	heads := [][2]string{
		{"run", info.ID}, {"pipeline", info.Pipeline}, {"state", state}, {"runs in", run.Holder()}, {"started", started},
		{"command", command}, {"in", from.Dir}, {"fork of", fork}, {"reuses", reuse}, {"steps", used},
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

// printTail prints the open questions of a run and the command that resumes the run.
func (a *app) printTail(ctx context.Context, s *store, info journal.RunInfo) error {
	open, err := s.open(ctx, info.ID)
	if err != nil {
		return err
	}
	if len(open) > 0 {
		fmt.Fprintln(a.Stdout)
	}
	if err := a.printQuestions(a.Stdout, s, open, false); err != nil {
		return err
	}
	a.printNotices(info.Notices)
	if info.State != journal.Done && info.State != journal.Running {
		if _, ours := readSource(info); !ours {
			a.complain("it was not started by this command: its server or program continues it")
			return nil
		}
		words := []string{"resume", info.ID}
		if f := info.Failure; f != nil && f.Kind == budget.Kind { // with the same limit, the run would fail again
			if m := more.FindStringSubmatch(f.Reason); m != nil {
				words = append(words, "--"+m[1], m[2])
			}
		}
		a.complain("to continue: %s", a.command(s, words...))
	}
	return nil
}

// more matches the part of a failure's message that names a sufficient limit.
var more = regexp.MustCompile(`: set (max-[a-z]+) to at least ([0-9.]+)`)
