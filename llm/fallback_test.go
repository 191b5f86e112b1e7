package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/stonetest"
)

func ExampleFallback() {
	first := script.New(script.Status(529, `{"error":{"message":"overloaded"}}`))
	second := script.New(script.Text("Rayleigh scattering."))
	model := llm.Fallback(first, second)

	reply, err := llm.Collect(context.Background(), model, &llm.Request{Messages: []llm.Message{llm.User("Why is the sky blue?")}})
	fmt.Println(reply.Text, err)
	// Output: Rayleigh scattering. <nil>
}

func TestFallbackIsAModel(t *testing.T) {
	t.Run("answered by the first", func(t *testing.T) {
		stonetest.TestModel(t, func(t *testing.T, answers ...script.Answer) llm.Model {
			return llm.Fallback(script.New(answers...))
		})
	})
	t.Run("answered by the second", func(t *testing.T) {
		stonetest.TestModel(t, func(t *testing.T, answers ...script.Answer) llm.Model {
			broken := script.Answer{Reply: llm.Reply{Text: "It begins"}, Err: &llm.TruncatedError{}}
			return llm.Fallback(script.Func(func(int, *llm.Request) script.Answer { return broken }), script.New(answers...))
		})
	})
}

func used(in, out int) llm.Usage { return llm.Usage{InputTokens: &in, OutputTokens: &out} }

// Every answer is charged at the price of the model that gave it, also the one that broke off.
func TestFallbackCharges(t *testing.T) {
	dear := llm.Priced(script.New(script.Answer{Reply: llm.Reply{Text: "x", Usage: used(1000, 0)}, Err: &llm.TruncatedError{}}), budget.Price{In: 10, Out: 100})
	cheap := llm.Priced(script.New(script.Answer{Reply: llm.Reply{Text: "y", Usage: used(1000, 1000)}}), budget.Price{In: 1, Out: 1})
	m := llm.Fallback(dear, cheap)
	req := &llm.Request{Messages: []llm.Message{llm.User("?")}, MaxTokens: 1000}

	q := llm.Quote(t.Context(), m, req)
	if q.Most.USD < 0.1 || q.Least.USD > 0.0001 || q.Unpriced != "" || q.Most.Roundtrips != 1 {
		t.Errorf("quote %+v: want the most of the dear model and the least of the cheap one", q)
	}
	meter := llm.NewMeter(t.Context(), m, req)
	var last *llm.Reply
	for d, err := range m.Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		meter.Hear(&d)
		last = d.Reply
	}
	if got := meter.Spent(last, nil); fmt.Sprintf("%.4f", got.USD) != "0.0120" || got.InputTokens != 2000 {
		t.Errorf("spent %+v, want 0.010 by the dear model and 0.002 by the cheap one", got)
	}
}

func TestFallbackEnds(t *testing.T) {
	refused := &budget.ExhaustedError{}
	for name, tc := range map[string]struct {
		first script.Answer
		want  string // in the error; "" wants an answer
	}{
		"a refusal of the server": {script.Status(400, "no"), ""},
		"an exhausted budget":     {script.Fail(refused), refused.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			second := script.New(script.Text("yes"))
			reply, err := llm.Collect(t.Context(), llm.Fallback(script.New(tc.first), second), &llm.Request{Model: "a", Messages: []llm.Message{llm.User("?")}})
			switch {
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || len(second.Requests()) > 0):
				t.Errorf("error %v after %d requests to the second model, want %q after none", err, len(second.Requests()), tc.want)
			case tc.want == "" && (err != nil || reply.Text != "yes" || second.Requests()[0].Model != ""):
				t.Errorf("%q, %v: want the answer of the second model, asked under its own name", reply.Text, err)
			}
		})
	}
	_, err := llm.Collect(t.Context(), llm.Fallback(script.New(script.Status(400, "one")), script.New(script.Status(503, "two"))), &llm.Request{})
	var h *llm.HTTPError
	if !errors.As(err, &h) || h.Status != 503 || !llm.Retryable(err) || !strings.Contains(err.Error(), "400: one; then") {
		t.Errorf("error %v: want both, and the last one to decide", err)
	}
	if err := llm.Fallback().(llm.Checker).Check(); err == nil {
		t.Error("a Fallback of no models passes its check")
	}
}
