package stone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/runvalue"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/schema"
)

// Answer is a content type for nodes that Ask produces. It holds the person's answer as text.
type Answer struct {
	Response string `json:"response"` // empty if the question was cancelled
}

// maxAnswers is the maximum number of invalid answers to one question.
const maxAnswers = 10

// Ask returns a leaf that asks a person a question and produces a node of type out from the answer. The function text builds the
// question.
//
//	stone.Ask("approve", Plan, Approval, func(p PlanDoc) string { return "Deploy " + p.Version + "?" },
//		stone.Choices("yes", "no"))
//
// If the content type is Answer, the person's text is the answer. Otherwise the answer is JSON that fits the schema of out. A
// person may cancel the question. If there are no Choices, or one of them is empty, the Answer then has an empty response;
// otherwise the leaf fails with kind "declined".
func Ask[A, T any](name string, in dag.Reader[A], out dag.Type[T], text func(A) string, opts ...AskOption) Ashlar {
	declined := func() error {
		return Fail(kind.Declined, "question %q was cancelled", name)
	}
	if _, free := any(out).(dag.Type[Answer]); free {
		return asking(name, out, wording(in, text), nil, opts, func(s *spec, response string) (v T, err error) {
			if response == "" && len(s.question.Choices) > 0 && !s.mayDecline {
				return v, declined()
			}
			return any(Answer{response}).(T), nil
		})
	}
	return asking(name, out, wording(in, text), out.Schema, opts, func(_ *spec, response string) (v T, err error) {
		if response == "" {
			return v, declined()
		}
		if err := json.Unmarshal([]byte(response), &v); err != nil {
			return v, Fail(kind.Unanswered, "the answer to %q cannot be read: %w", name, err)
		}
		return v, nil
	})
}

// wording returns a reader that builds the text of the question, or nil if text is nil.
func wording[A any](in dag.Reader[A], text func(A) string) dag.Reader[string] {
	if text == nil {
		return nil
	}
	return dag.Derive(in, text)
}

func asking[T any](name string, out dag.Type[T], text dag.Reader[string], schemaOf func() *schema.Schema, opts []AskOption, read func(*spec, string) (T, error)) Ashlar {
	q := &ask.Question{Name: name}
	if schemaOf != nil {
		q.Schema = schemaOf()
	}
	var a Ashlar
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
			said, err := put(ctx, asked)
			if err != nil {
				return v, err
			}
			return read(a.s, said.Response)
		}
	}
	a = typed(name, out, body, queries, nil)
	a.s.question = q
	if text != nil {
		a.s.render = func(d dag.DAG) ([]byte, error) {
			asked, err := text.From(d)
			return []byte(asked), err
		}
	}
	with(a.s, opts)
	if err := q.Check(q.Default); err != nil {
		a.s.fault("bad-option", "Deadline: %v", err)
	}
	for i, choice := range q.Choices {
		if slices.Contains(q.Choices[:i], choice) {
			a.s.fault("bad-option", "Choices: %q occurs twice: remove one", choice)
		}
		if _, blank := ask.Blank(choice); !blank && q.Schema != nil {
			if err := q.Schema.Validate(context.Background(), []byte(choice)); err != nil {
				a.s.fault("bad-option", "Choices: %q is not a valid answer of the type %q: %v", choice, out.Name(), err)
			}
		}
	}
	return a
}

// Choices limits the answers that an Ask accepts. A choice that ends in "…" accepts any text in place of the "…": "no: …" accepts
// "no: not today". An empty choice is not shown; it lets a person cancel the question, which yields an empty Answer.
func Choices(choices ...string) AskOption {
	shown := slices.DeleteFunc(slices.Clone(choices), func(c string) bool { return c == "" })
	return askOption(func(s *spec) { s.question.Choices, s.mayDecline = shown, len(shown) < len(choices) })
}

// Deadline sets the answer that an Ask receives if nobody has answered after the given time. An empty answer cancels the
// question. Deadlines apply to runs waiting in a journal: a server applies them when it looks for runs to resume, and the command
// does so in "stone resume all".
func Deadline(after time.Duration, answer string) AskOption {
	return askOption(func(s *spec) {
		s.question.Deadline, s.question.Default = after, answer
		if after <= 0 {
			s.fault("bad-option", "Deadline(%v): want more than zero", after)
		}
	})
}

// Ask passes the question q to the run's frontend, as the leaf made by the function Ask does. It sets q's RunID and Path. It
// returns the answer, or "" if the person cancelled the question.
//
// Call Ask at most once within a Step, because the path of the Step identifies the question. If no answer arrives while the
// process is running, Ask returns an error that is kind.Waiting, and the body must return it: a resumed run calls the Step again,
// and Ask returns the answer.
func (b Body) Ask(q ask.Question) (string, error) {
	f := frameOf(b.ctx)
	if f == nil {
		return "", errNoRun
	}
	q.RunID, q.Path, q.Text = f.run.id, f.path(), strings.ToValidUTF8(q.Text, "\uFFFD") // as a journal stores it
	if len(q.Standing) == 0 {
		a, err := put(b.ctx, q)
		return a.Response, err
	}
	t := runvalue.Of(b.ctx, topicKey(q.Name), func() *topic { return &topic{turn: make(chan struct{}, 1)} })
	select { // only one question is open at a time, because its answer may also apply to the others
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-b.ctx.Done():
		return "", b.ctx.Err()
	}
	if slices.Contains(q.Standing, t.answer.Response) {
		return f.stands(b.ctx, q, t.answer)
	}
	a, err := put(b.ctx, q)
	if err == nil && slices.Contains(q.Standing, a.Response) {
		if a.Given.IsZero() {
			a.Given = time.Now()
		}
		t.answer = a
	}
	return a.Response, err
}

// A keeper is a frontend that stores each standing answer with every question that it answers.
type keeper interface {
	Keep(ctx context.Context, q ask.Question, a ask.Answer) error
}

// stands answers q with the standing answer a. The frontend does not ask a person.
func (f *frame) stands(ctx context.Context, q ask.Question, a ask.Answer) (string, error) {
	if k, ok := f.run.frontend.(keeper); ok {
		if err := k.Keep(ctx, q, a); err != nil {
			return "", err
		}
	}
	if f.Wants(slog.LevelInfo) {
		f.tell(q.Name, q.Path, event.QuestionAnswered{Answer: a.Response, By: a.By, Client: q.Call != nil && q.Call.Client})
	}
	return a.Response, nil
}

// topicKey is the name that all questions with the same standing answer share.
type topicKey string

// topic holds a run's standing answer to all questions with one name.
type topic struct {
	turn   chan struct{} // holds a token while a question is open; guards answer
	answer ask.Answer
}

// put passes the question to the frontend until it returns a valid answer, but at most maxAnswers times.
func put(ctx context.Context, q ask.Question) (ask.Answer, error) {
	f := frameOf(ctx)
	frontend := f.run.frontend
	if frontend == nil {
		return ask.Answer{}, Fail(kind.NoFrontend, "no frontend to ask %q: set Config.Frontend", q.Name)
	}
	for range maxAnswers {
		if f.Wants(slog.LevelInfo) {
			f.tell(q.Name, q.Path, event.QuestionAsked{Question: q.Text, Problem: q.Problem})
		}
		a, err := frontend.Ask(ctx, q)
		if errors.Is(err, kind.Waiting) {
			return ask.Answer{}, &Failure{Kind: kind.Waiting, Reason: fmt.Sprintf("question %q waits for an answer: resume the run once it has one", q.Name), Cause: err}
		}
		if err != nil {
			return ask.Answer{}, err
		}
		if err = q.Check(a.Response); err == nil {
			if f.Wants(slog.LevelInfo) {
				f.tell(q.Name, q.Path, event.QuestionAnswered{Answer: a.Response, By: a.By, Client: q.Call != nil && q.Call.Client})
			}
			return a, nil
		}
		q.Problem = err.Error()
	}
	return ask.Answer{}, Fail(kind.Unanswered, "no valid answer to %q after %d attempts; the last error: %s", q.Name, maxAnswers, q.Problem)
}
