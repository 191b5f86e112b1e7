package frontend

import (
	"context"

	"github.com/stonelayer/stone/ask"
)

// A Channel is a frontend over Go channels: receive questions from it in any goroutine, and
// answer them in any order.
type Channel chan Asked

// Asked is a question that waits for its answer.
type Asked struct {
	ask.Question
	answer chan<- ask.Answer
	done   <-chan struct{}
}

// NewChannel makes a Channel that buffers up to n questions.
func NewChannel(n int) Channel { return make(Channel, n) }

// Answer answers the question, by the person named, if that is known; only the first call
// counts.
func (a Asked) Answer(response, by string) {
	select {
	case a.answer <- ask.Answer{Response: response, By: by}:
	default:
	}
}

// Cancel cancels the question.
func (a Asked) Cancel() { a.Answer("", "") }

// Done returns a channel that is closed when the run no longer waits for the answer.
func (a Asked) Done() <-chan struct{} { return a.done }

// Ask implements ask.Frontend.
func (c Channel) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	answer := make(chan ask.Answer, 1)
	select {
	case c <- Asked{q, answer, ctx.Done()}:
	case <-ctx.Done():
		return ask.Answer{}, ctx.Err()
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return ask.Answer{}, ctx.Err()
	}
}
