package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osuser "os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/schema"
)

func (a *app) answer(c *cobra.Command) {
	a.overStore(c, func(ctx context.Context, s *store, args []string) error {
		if len(args) == 0 {
			return a.printAsking(ctx, s)
		}
		info, err := s.find(ctx, args[0])
		if err != nil {
			return err
		}
		open, err := s.open(ctx, info.ID)
		if err != nil {
			return err
		}
		switch {
		case len(args) == 1 && len(open) == 0:
			a.complain("%s", a.asksNothing(s, info))
			return nil
		case len(open) == 0:
			return errors.New(a.asksNothing(s, info))
		case len(args) == 1:
			return output(a.printQuestions(a.Stdout, s, open, false))
		case len(args) == 2 && len(open) == 1 && slices.Contains(open[0].Choices, args[1]): // the question was left out
			return fmt.Errorf("the number of the question is missing: %s", a.command(s, "answer", info.ID, strconv.Itoa(open[0].number), quoted(args[1])))
		case len(args) == 2:
			return fmt.Errorf("TEXT is missing: %s", a.command(s, "answer", info.ID, quoted(args[1]), "TEXT"))
		}
		switch err := journal.Answer(ctx, s, info.ID, args[1], ask.Answer{Response: args[2], By: user()}); {
		case err != nil:
			return err
		case info.State == journal.Running:
			a.complain("answered: the run is active and continues")
		case len(open) > 1:
			a.complain("answered; more is open: %s", a.command(s, "answer", info.ID))
		default:
			a.complain("answered; to continue: %s", a.command(s, "resume", info.ID))
		}
		return nil
	})
}

// user is the user of the operating system, as the one who answers: see ask.Answer.
func user() string {
	name := os.Getenv("USER")
	if u, err := osuser.Current(); err == nil {
		name = u.Username
	}
	if name == "" {
		return ""
	}
	return "user " + name
}

func (a *app) asksNothing(s *store, info journal.RunInfo) string {
	if info.State == journal.Answered {
		return fmt.Sprintf("run %s has no open question; to continue: %s", info.ID, a.command(s, "resume", info.ID))
	}
	return fmt.Sprintf("run %s asks nothing: it is %s", info.ID, info.State)
}

// An asked is an open question with its number. All questions of a run, answered or
// open, are numbered from 1 in the order in which they were first asked.
type asked struct {
	journal.Question
	number int
}

// open returns the open questions of a run.
func (s *store) open(ctx context.Context, run string) (open []asked, err error) {
	questions, err := s.Questions(ctx, run)
	if err != nil {
		return nil, failed("%w", err)
	}
	for i, q := range questions {
		if q.Open() {
			open = append(open, asked{q, i + 1})
		}
	}
	return open, nil
}

// printAsking prints the runs that ask something, with their open questions.
func (a *app) printAsking(ctx context.Context, s *store) error {
	none := true
	for info, err := range s.each(ctx, journal.Query{Asking: true}) {
		if err != nil {
			return failed("%w", err)
		}
		open, err := s.open(ctx, info.ID)
		if err != nil {
			return err
		}
		if !none {
			fmt.Fprintln(a.Stdout)
		}
		none = false
		fmt.Fprintf(a.Stdout, "run %s of %s, %s\n", info.ID, text.Line(info.Pipeline), info.State)
		if err := a.printQuestions(a.Stdout, s, open, true); err != nil {
			return output(err)
		}
	}
	if none {
		a.complain("no run in %s asks a question", s.file)
	}
	return nil
}

// printQuestions prints open questions and how each is answered, with their steps where names leave these open.
func (a *app) printQuestions(w io.Writer, s *store, open []asked, steps bool) error {
	names := map[string]int{}
	for _, q := range open {
		names[q.Name]++
	}
	var b strings.Builder
	for _, q := range open {
		wanted, form := (*schema.Schema)(nil), "TEXT"
		if len(q.Choices) == 0 && len(q.Schema) > 0 {
			var err error
			if wanted, err = schema.Parse(q.Schema); err != nil {
				return err
			}
			form = "JSON"
		}
		putQuestion(&b, ask.Question{Name: q.Name, Text: q.Text, Choices: q.Choices, Schema: wanted, Problem: q.Problem})
		if steps || names[q.Name] > 1 {
			fmt.Fprintf(&b, "  asked at: %s\n", text.Line(address.Readable(q.Path)))
		}
		fmt.Fprintf(&b, "  to answer: %s\n", a.command(s, "answer", q.Run, strconv.Itoa(q.number), form))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
