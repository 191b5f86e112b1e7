package stone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/schema"
)

// A Question is what a person is asked. In a program that serves several runs,
// RunID and Path together tell the questions that are open apart.
type Question struct {
	Name    string         // of the ashlar that asks; unique in a pipeline
	RunID   string         // the id of the run; empty in what Questions lists
	Path    string         // the address of the ashlar; empty in what Questions lists
	Text    string         // for the person; empty in what Questions lists
	Choices []string       // if not empty, the answer must be one of them
	Schema  *schema.Schema // if not nil, the answer must be JSON that fits it
	Problem string         // why the answer before this one was refused, or ""
}

// Check returns why a response is refused, or nil. The empty response, which cancels
// the question, is never refused. A [Frontend] that calls Check can ask again at once.
func (q *Question) Check(response string) error {
	if response == "" {
		return nil
	}
	if len(q.Choices) > 0 && !slices.Contains(q.Choices, response) {
		return fmt.Errorf("%.200q is no answer: want one of %q", response, q.Choices)
	}
	if q.Schema != nil {
		if err := q.Schema.Validate(context.Background(), []byte(response)); err != nil {
			return fmt.Errorf("%.200q is no answer: want JSON that fits the schema: %w", response, err)
		}
	}
	return nil
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
	// once when lanes ask. It is called again, with the Problem, if the answer
	// is none. An error is a failure of the step, except [kind.Waiting]: return it,
	// or an error that wraps it, if the question has been passed on but this
	// process shall not wait for the answer. Other lanes go on, with questions of
	// their own; then the run fails with that kind. The failure is neither rescued
	// nor recorded, so that the same run with the same Recorder asks again and
	// continues once there is an answer.
	Ask(ctx context.Context, q Question) (string, error)
}

// maxAnswers is how many answers that are none a person may give.
const maxAnswers = 10

// Ask makes a leaf that asks a person. Text makes the question from what the reader
// finds. A cancelled question gives an Answer without a response.
func Ask[A any](name string, in dag.Reader[A], out dag.Type[Answer], text func(A) string, opts ...AskOption) Ashlar {
	return asking(name, out, wording(in, text), nil, opts, func(response string) (Answer, error) { return Answer{response}, nil })
}

// AskFor makes a leaf that asks a person for a value: the answer is its JSON, and
// must fit the schema of out. A cancelled question is a failure of kind
// "unanswered".
func AskFor[A, T any](name string, in dag.Reader[A], out dag.Type[T], text func(A) string, opts ...AskOption) Ashlar {
	return asking(name, out, wording(in, text), out.Schema, opts, func(response string) (v T, err error) {
		if response == "" {
			return v, Fail(kind.Unanswered, "question %q was cancelled", name)
		}
		if err := json.Unmarshal([]byte(response), &v); err != nil {
			return v, Fail(kind.Unanswered, "the answer to %q cannot be read: %w", name, err)
		}
		return v, nil
	})
}

// wording is what is asked, nil if there is no text.
func wording[A any](in dag.Reader[A], text func(A) string) dag.Reader[string] {
	if text == nil {
		return nil
	}
	return dag.Derive(in, text)
}

func asking[T any](name string, out dag.Type[T], text dag.Reader[string], schemaOf func() *schema.Schema, opts []AskOption, read func(string) (T, error)) Ashlar {
	q := &Question{Name: name}
	if schemaOf != nil {
		q.Schema = schemaOf()
	}
	var body func(context.Context, dag.DAG) (T, error)
	var queries []dag.Query
	if text != nil {
		queries = text.Queries()
		body = func(ctx context.Context, d dag.DAG) (v T, err error) {
			asked := *q
			if asked.Text, err = text.From(d); err != nil {
				return v, err
			}
			asked.RunID, asked.Path = In(ctx).RunID(), In(ctx).Path()
			response, err := ask(ctx, asked)
			if err != nil {
				return v, err
			}
			return read(response)
		}
	}
	a := typed(name, out, body, queries, nil)
	a.s.question = q
	if text != nil {
		a.s.render = func(d dag.DAG) ([]byte, error) {
			asked, err := text.From(d)
			return []byte(asked), err
		}
	}
	with(a.s, opts)
	return a
}

// Choices are the answers that an Ask accepts.
func Choices(choices ...string) AskOption {
	return askOption(func(s *spec) { s.question.Choices = choices })
}

func ask(ctx context.Context, q Question) (string, error) {
	f := frameOf(ctx)
	frontend := f.run.frontend
	if frontend == nil {
		return "", Fail(kind.NoFrontend, "there is nobody to ask %q: set Config.Frontend", q.Name)
	}
	for range maxAnswers {
		if f.Wants(slog.LevelInfo) {
			f.tell(q.Name, q.Path, event.QuestionAsked{Question: q.Text, Problem: q.Problem})
		}
		response, err := frontend.Ask(ctx, q)
		if errors.Is(err, kind.Waiting) {
			return "", &Failure{Kind: kind.Waiting, Reason: fmt.Sprintf("question %q waits for an answer: resume the run when there is one", q.Name), Cause: err}
		}
		if err != nil {
			return "", err
		}
		if err = q.Check(response); err == nil {
			if f.Wants(slog.LevelInfo) {
				f.tell(q.Name, q.Path, event.QuestionAnswered{Answer: response})
			}
			return response, nil
		}
		q.Problem = err.Error()
	}
	return "", Fail(kind.Unanswered, "no answer to %q after %d tries; the last: %s", q.Name, maxAnswers, q.Problem)
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
