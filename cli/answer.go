package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osuser "os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
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
		case len(args) == 2 && len(open) == 1 && slices.Contains(open[0].Choices, args[1]): // the argument QUESTION was omitted
			return fmt.Errorf("the question number is missing: %s", a.command(s, "answer", info.ID, strconv.Itoa(open[0].number), quoted(args[1])))
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

// user returns the operating system user as the author of answers; see ask.Answer.
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
	return fmt.Sprintf("run %s has no question: it is %s", info.ID, info.State)
}

// An asked is an open question with its number. All questions of a run, answered or
// open, are numbered from 1 in the order in which they were first asked.
type asked struct {
	journal.Question
	number int
}

// open returns the open questions of the given run.
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

// printAsking prints the runs with open questions, and the questions.
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
		a.complain("no run in %s has an open question", s.file)
	}
	return nil
}

// printQuestions prints open questions and the commands that answer them. If names are ambiguous, it also prints the questions'
// steps.
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

// person is the Frontend that asks on standard error and reads answers from standard input, one per line. Only one question is
// open at a time.
type person struct {
	in       io.Reader
	out      io.Writer
	by       string // name of the person
	display  pauser // may be nil
	terminal bool   // standard input is a terminal: Ctrl-D cancels a question
	kept     bool   // the run can wait for an answer after the process has ended

	editor    *editor     // if set, reads lines in place of in
	interrupt func()      // called for Ctrl-C while the editor reads an answer
	wanted    chan string // each value requests a line from the editor and is the hint to print for Ctrl-C
	pending   bool        // a line has been requested but not yet received

	turn  chan struct{} // holds a token while no question is asked
	start sync.Once
	lines chan answer
	over  chan struct{} // closed at the end of the input, after all lines
}

// A pauser stops writing to the terminal while a question is open.
type pauser interface {
	Pause()
	Resume()
}

type answer struct {
	line string
	err  error
}

func (a *app) person(display *progress.Display, kept bool) *person {
	p := &person{by: user(), in: a.Stdin, out: a.Stderr, terminal: terminal(a.Stdin) != nil, kept: kept}
	if display != nil {
		p.display = display
	}
	p.turn = make(chan struct{}, 1)
	p.turn <- struct{}{}
	p.lines, p.over = make(chan answer), make(chan struct{})
	return p
}

// maxRefused is the maximum number of answers that Ask checks for one question. It returns the last of them even if that is
// invalid; the run then rejects it.
const maxRefused = 10

// Ask implements ask.Frontend. After an invalid answer, it asks again at once.
func (p *person) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	response, err := p.ask(ctx, q)
	return ask.Answer{Response: response, By: p.by}, err
}

func (p *person) ask(ctx context.Context, q ask.Question) (string, error) {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if p.display != nil {
		p.display.Pause()
		defer p.display.Resume()
	}
	p.starts()
	if p.kept && !p.terminal && p.ends() {
		return "", kind.Waiting // waiting questions are listed at the end of the run
	}
	putQuestion(p.out, q)
	for refused := 0; ; {
		line, err := p.next(ctx, "")
		switch line = strings.TrimSpace(line); {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case errors.Is(err, errInterrupted):
			p.interrupt()
			<-ctx.Done()
			return "", ctx.Err()
		case line == "" && err != nil:
			p.prompt("\n")
			return "", p.ended(q, err)
		case line == "":
			continue
		}
		wrong := q.Check(line)
		if refused++; wrong == nil || refused >= maxRefused {
			return line, nil
		}
		// Explain the error at once: otherwise the next line could answer another question that appears meanwhile.
		q.Problem = wrong.Error()
		putQuestion(p.out, q)
	}
}

// starts starts the reader unless it is running. The reader runs until the process ends, because a pending read cannot be
// cancelled.
func (p *person) starts() { p.start.Do(func() { go p.read() }) }

// next returns the next line, or several lines from the editor. The last line may come with the error that ended the input.
// Ctrl-C prints the hint or, if there is none, returns errInterrupted.
func (p *person) next(ctx context.Context, hint string) (string, error) {
	p.starts()
	if p.editor == nil {
		p.prompt("> ")
	} else if !p.pending {
		p.pending = true
		p.wanted <- hint
	}
	select {
	case a := <-p.lines:
		p.pending = false
		return a.line, a.err
	case <-ctx.Done():
		p.prompt("\n")
		return "", ctx.Err()
	}
}

// ends reports whether the input has ended. It waits for the end only briefly, so that a person does not notice.
func (p *person) ends() bool {
	select {
	case <-p.over:
		return true
	case <-time.After(50 * time.Millisecond):
		return false
	}
}

// putQuestion writes a question.
func putQuestion(w io.Writer, q ask.Question) {
	fmt.Fprintf(w, "? %s: %s\n", text.Line(q.Name), strings.Join(text.Lines(q.Text), "\n  "))
	if len(q.Choices) > 0 {
		fmt.Fprintln(w, "  one of: "+text.Line(strings.Join(q.Choices, ", ")))
	} else if q.Schema != nil {
		const most = 1000 // width in characters
		fmt.Fprintln(w, "  JSON that fits "+text.Line(text.Cut(q.Schema.String(), most)))
	}
	if q.Problem != "" {
		fmt.Fprintln(w, "  "+text.Line(q.Problem))
	}
}

// prompt writes s to the terminal. If standard input is not a terminal, it does nothing.
func (p *person) prompt(s string) {
	if p.terminal {
		fmt.Fprint(p.out, s)
	}
}

// ended returns the error with which a question ends at the end of the input. At a terminal, it returns nil: Ctrl-D cancels this
// question. Otherwise no further question can be answered from this input.
func (p *person) ended(q ask.Question, err error) error {
	switch {
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read the answer to %q: %w", q.Name, err)
	case p.terminal:
		return nil
	case p.kept:
		return kind.Waiting
	}
	return stone.Fail(kind.Unanswered, "standard input ended before %q was answered: give it one line for each question, or run at a terminal", q.Name)
}

func (p *person) read() {
	if p.editor != nil {
		for hint := range p.wanted {
			line, err := p.editor.line(hint)
			p.lines <- answer{line, err}
		}
		return
	}
	in, ended := bufio.NewReader(p.in), false
	for {
		line, err := in.ReadString('\n') // after the end, every further read returns io.EOF again
		if line == "" && errors.Is(err, io.EOF) && !ended {
			ended = true
			close(p.over)
		}
		p.lines <- answer{line, err}
	}
}
