package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/schema"
)

func (a *app) answer() *cobra.Command {
	var db string
	c := overRun(&cobra.Command{
		Use:   "answer RUN [QUESTION TEXT] [flags]",
		Short: "Answer a question of a run, or list the open ones",
		Long: "Answer gives the answer TEXT to an open QUESTION of a run: its number, its name, its path, or the end of its\n" +
			"path. The run continues when it is resumed, or at once if it is running. Without QUESTION, answer lists the\n" +
			"open questions with their numbers. An empty TEXT cancels the question.",
		Example: a.example("answer last", `answer last 1 yes`),
	}, 1, 3, func(c *cobra.Command, args []string) error {
		return withStore(c.Context(), db, func(s *store) error { return a.answerRun(c.Context(), s, args) })
	})
	dbFlag(c.Flags(), &db)
	return c
}

func (a *app) answerRun(ctx context.Context, s *store, args []string) error {
	info, err := s.find(ctx, args[0])
	if err != nil {
		return err
	}
	open, err := s.open(ctx, info.ID)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1:
		return a.listQuestions(s, info, open)
	case len(args) == 2:
		return fmt.Errorf("TEXT is missing: %s", a.command(s, "answer", info.ID, quoted(args[1]), "TEXT"))
	case len(open) == 0:
		return errors.New(a.asksNothing(s, info))
	}
	q, err := openQuestion(info.ID, open, args[1])
	if err != nil {
		return err
	}
	switch err := journal.Answer(ctx, s, info.ID, q.Path, args[2]); {
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

// opened returns the open ones among all questions of a run.
func opened(all []journal.Question) (open []asked) {
	for i, q := range all {
		if q.Open() {
			open = append(open, asked{q, i + 1})
		}
	}
	return open
}

// open returns the open questions of a run.
func (s *store) open(ctx context.Context, run string) ([]asked, error) {
	questions, err := s.Questions(ctx, run)
	if err != nil {
		return nil, failed("%w", err)
	}
	return opened(questions), nil
}

// openQuestion returns the question that a word means: its path or name, else its
// number, else the end of its path.
func openQuestion(run string, open []asked, word string) (asked, error) {
	for _, means := range []func(q asked) bool{
		func(q asked) bool { return q.Path == word },
		func(q asked) bool { return q.Name == word },
		func(q asked) bool { return strconv.Itoa(q.number) == word },
		func(q asked) bool { return strings.HasSuffix(q.Path, "/"+word) },
	} {
		var found []asked
		for _, q := range open {
			if means(q) {
				found = append(found, q)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return asked{}, fmt.Errorf("run %s asks %q at %d places: name one by its number: %s", run, word, len(found), numbers(found))
		}
	}
	return asked{}, fmt.Errorf("run %s asks no %q: it asks %s", run, word, numbers(open))
}

// maxNamed is how many questions an error names.
const maxNamed = 10

func numbers(open []asked) string {
	names := make([]string, min(len(open), maxNamed))
	for i := range names {
		names[i] = fmt.Sprintf("%d %s", open[i].number, quoted(open[i].Path))
	}
	said := strings.Join(names, ", ")
	if n := len(open) - len(names); n > 0 {
		said += fmt.Sprintf(" and %d more", n)
	}
	return said
}

func (a *app) listQuestions(s *store, info journal.RunInfo, open []asked) error {
	if len(open) == 0 {
		a.complain("%s", a.asksNothing(s, info))
		return nil
	}
	return output(a.printQuestions(a.Stdout, s, open))
}

// printQuestions prints open questions and how each is answered.
func (a *app) printQuestions(w io.Writer, s *store, open []asked) error {
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
		if names[q.Name] > 1 {
			fmt.Fprintf(&b, "  asked at: %s\n", text.Line(q.Path))
		}
		fmt.Fprintf(&b, "  to answer: %s\n", a.command(s, "answer", q.Run, strconv.Itoa(q.number), form))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
