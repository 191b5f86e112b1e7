package stone

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

// A Question is what a person is asked.
type Question struct {
	Name    string   // of the ashlar that asks; unique in a pipeline
	Path    string   // its address
	Text    string   // for the person; empty in what Questions lists
	Choices []string // if not empty, the answer must be one of them
	Problem string   // why the answer before this one was refused, or ""
}

// Answer is the content that Ask produces.
type Answer struct {
	Response string `json:"response"` // empty if the question was cancelled
}

// A Frontend brings questions to a person and answers back. It is no part of
// the pipeline: the same pipeline runs under a terminal, a web page or a test.
type Frontend interface {
	// Ask returns the answer, or "" if the person cancelled the question. It
	// must return when ctx is done. It is called from several goroutines at
	// once when lanes ask. An error is a failure of the step.
	Ask(ctx context.Context, q Question) (string, error)
}

// maxAnswers is how many answers that are none of the choices a person may give.
const maxAnswers = 10

// Ask makes a leaf that asks a person. Text builds the question from the DAG, of
// which it reads what Queries declares.
func Ask(name string, out dag.Type[Answer], text func(dag.DAG) (string, error), opts ...Option) Ashlar {
	q := &Question{Name: name}
	var body func(context.Context, dag.DAG) (Answer, error)
	if text != nil {
		body = func(ctx context.Context, d dag.DAG) (Answer, error) {
			said, err := text(d)
			if err != nil {
				return Answer{}, err
			}
			asked := *q
			asked.Text, asked.Path = said, Path(ctx)
			return ask(ctx, asked)
		}
	}
	a := typed(name, out, body, nil, nil)
	a.s.question = q
	a.s.apply(opts)
	return a
}

// Choices are the answers that an Ask accepts.
func Choices(choices ...string) Option {
	return Option{"Choices", leaves, func(s *spec) {
		if s.question == nil {
			s.fault("misplaced-option", "Choices means nothing to a leaf that does not ask: remove it")
			return
		}
		s.question.Choices = choices
	}}
}

func ask(ctx context.Context, q Question) (Answer, error) {
	frontend := frameOf(ctx).run.frontend
	if frontend == nil {
		return Answer{}, Fail(kind.NoFrontend, "there is nobody to ask %q: set Config.Frontend", q.Name)
	}
	for range maxAnswers {
		Event(ctx, slog.LevelInfo, "question-asked", slog.String("ashlar-name", q.Name), slog.String("question", q.Text))
		response, err := frontend.Ask(ctx, q)
		if err != nil {
			return Answer{}, err
		}
		if response == "" || len(q.Choices) == 0 || slices.Contains(q.Choices, response) {
			Event(ctx, slog.LevelInfo, "question-answered", slog.String("ashlar-name", q.Name), slog.String("answer", response))
			return Answer{response}, nil
		}
		q.Problem = fmt.Sprintf("%q is no answer: want %s", response, strings.Join(q.Choices, ", "))
	}
	return Answer{}, Fail(kind.Unanswered, "no answer to %q after %d tries; the last: %s", q.Name, maxAnswers, q.Problem)
}

// Questions lists what a pipeline can ask, each name once, in the order of the
// tree: what a frontend has to expect.
func Questions(p Ashlar) []Question {
	var out []Question
	seen := map[*spec]bool{}
	p.each(func(s *spec) {
		if s.question != nil && !seen[s] {
			seen[s] = true
			out = append(out, *s.question)
		}
	})
	return out
}

// A Channel is a Frontend over Go channels: receive from it, and answer what
// comes.
type Channel chan Asked

// Asked is a question that waits for its answer.
type Asked struct {
	Question
	answer chan<- string
}

// NewChannel makes a Channel that holds up to n questions nobody received yet.
func NewChannel(n int) Channel { return make(Channel, n) }

// Answer gives the answer; only the first call counts.
func (a Asked) Answer(response string) {
	select {
	case a.answer <- response:
	default:
	}
}

// Cancel answers that there will be no answer.
func (a Asked) Cancel() { a.Answer("") }

// Ask implements Frontend.
func (c Channel) Ask(ctx context.Context, q Question) (string, error) {
	answer := make(chan string, 1)
	select {
	case c <- Asked{q, answer}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	select {
	case response := <-answer:
		return response, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
