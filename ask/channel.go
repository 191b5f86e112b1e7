package ask

import "context"

// A Channel is a Frontend that sends the questions of a run to the program that started the run. Receive questions from the
// channel in any goroutine, and answer them in any order. The channel's buffer holds questions that have not been received yet.
//
//	questions := make(ask.Channel)
//	go func() {
//		for q := range questions {
//			q.Answer(decide(q.Text, q.Choices), "ada")
//		}
//	}()
//	res, err := stone.Run(ctx, p, stone.Config{Frontend: questions})
type Channel chan Asked

// Asked is a question waiting for its answer.
type Asked struct {
	Question
	answer chan<- Answer
	done   <-chan struct{}
}

// Answer answers the question. By is the name of the person who answers, or "" if unknown. Later calls have no effect.
func (a Asked) Answer(response, by string) {
	select {
	case a.answer <- Answer{Response: response, By: by}:
	default:
	}
}

// Cancel cancels the question.
func (a Asked) Cancel() { a.Answer("", "") }

// Done returns a channel that is closed when the run no longer waits for the answer.
func (a Asked) Done() <-chan struct{} { return a.done }

// Ask implements Frontend.
func (c Channel) Ask(ctx context.Context, q Question) (Answer, error) {
	answer := make(chan Answer, 1)
	select {
	case c <- Asked{q, answer, ctx.Done()}:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}
