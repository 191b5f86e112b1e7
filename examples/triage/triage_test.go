package triage

import (
	"context"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
)

// person gives the same answer to every question.
type person string

func (p person) Ask(context.Context, ask.Question) (ask.Answer, error) {
	return ask.Answer{Response: string(p)}, nil
}

// A person decides about the refund, and the customer is told.
func TestRefund(t *testing.T) {
	t.Setenv("STONE_MODEL", "") // the script answers
	ticket := dag.Of(OneTicket.With(Ticket{1, "I was charged twice for order 7."}))
	for answer, want := range map[person]string{
		"yes":              "We have paid 39.00 back.",
		"no: ask the bank": "We will look into your payment.",
	} {
		got, err := stone.Produce(t.Context(), handle(chooseModel()), Outcomes, stone.Config{Input: ticket, Frontend: answer})
		if err != nil || got.Reply != want {
			t.Errorf("%s: %q, %v; want %q", answer, got.Reply, err, want)
		}
	}
}

// Nobody can approve more than was charged too much.
func TestRefundIsBounded(t *testing.T) {
	for _, input := range []string{`{"order":7,"amount":39.01}`, `{"order":9,"amount":1}`, `{"order":8,"amount":1}`, `{"order":7,"amount":-1}`} {
		if r, err := refund.Tool.Run(t.Context(), []byte(input)); err == nil {
			t.Errorf("%s: %s", input, r.Text)
		}
	}
}
