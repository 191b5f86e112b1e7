package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/kind"
)

// person is the Frontend that asks on standard error and reads answers, one a
// line, from standard input. One question is open at a time.
type person struct {
	in       io.Reader
	out      io.Writer
	display  *progress.Display // pauses while a question is open; may be nil
	terminal bool              // standard input is one: Ctrl-D cancels a question
	kept     bool              // the run can wait for an answer

	turn  chan struct{} // holds a token while no question is asked
	start sync.Once
	lines chan answer
	over  chan struct{} // closed at the end of the input, when all lines are taken
}

type answer struct {
	line string
	err  error
}

func (a *app) person(display *progress.Display, kept bool) *person {
	p := &person{in: a.Stdin, out: a.Stderr, display: display, terminal: terminal(a.Stdin) != nil, kept: kept}
	p.turn = make(chan struct{}, 1)
	p.turn <- struct{}{}
	p.lines, p.over = make(chan answer), make(chan struct{})
	return p
}

// maxRefused bounds the answers that are refused here. The last one is returned, to be
// refused by the run.
const maxRefused = 10

// Ask implements ask.Frontend. An answer that does not fit is asked for again at once.
func (p *person) Ask(ctx context.Context, q ask.Question) (string, error) {
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
	// A read cannot be taken back, so the reader lives as long as the process.
	p.start.Do(func() { go p.read() })
	if p.kept && !p.terminal && p.ends() {
		return "", kind.Waiting // what waits is listed at the end of the run
	}
	putQuestion(p.out, q)
	for refused := 0; ; {
		p.prompt("> ")
		select {
		case a := <-p.lines:
			if line := strings.TrimSpace(a.line); line != "" {
				err := q.Check(line)
				if refused++; err == nil || refused >= maxRefused {
					return line, nil
				}
				// Once more before another question comes, which the next line would answer.
				q.Problem = err.Error()
				putQuestion(p.out, q)
				continue
			}
			if a.err != nil {
				p.prompt("\n")
				return "", p.ended(q, a.err)
			}
		case <-ctx.Done():
			p.prompt("\n")
			return "", ctx.Err()
		}
	}
}

// ends reports whether the input has ended. It waits for that only briefly, so that
// a person does not notice.
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
	}
	if q.Problem != "" {
		fmt.Fprintln(w, "  "+text.Line(q.Problem))
	}
}

// prompt writes a text that only a person at a terminal needs.
func (p *person) prompt(s string) {
	if p.terminal {
		fmt.Fprint(p.out, s)
	}
}

// ended says what the end of the input means: at a terminal it is Ctrl-D, which
// cancels this question; otherwise no further one can be answered here.
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
	in, ended := bufio.NewReader(p.in), false
	for {
		line, err := in.ReadString('\n') // after the end every further read returns io.EOF again
		if line == "" && errors.Is(err, io.EOF) && !ended {
			ended = true
			close(p.over)
		}
		p.lines <- answer{line, err}
	}
}
