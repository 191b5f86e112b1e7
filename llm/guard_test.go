package llm_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

var loop = strings.Repeat("I will check the file again. ", 40)

func ExampleGuard() {
	stuck := script.New(script.Text(loop), script.Text("The file is empty."))
	model := llm.Guard(stuck, llm.NewWatcher, 3)
	reply, err := llm.Collect(context.Background(), model, &llm.Request{Messages: []llm.Message{llm.User("What is in the file?")}})
	fmt.Println(reply.Text, err)
	asked := stuck.Requests()[1].Messages
	fmt.Println(asked[1].Role, asked[2].Role, asked[2].Text()[:55])
	// Output:
	// The file is empty. <nil>
	// assistant user Your last turn was stopped because it got stuck: the an
}

func TestGuard(t *testing.T) {
	thinking := script.Answer{Reply: llm.Reply{Reasoning: loop, Text: "never said"}}
	for _, c := range []struct {
		name    string
		answers []script.Answer
		retries int
		text    string
		err     string
		asked   int
	}{
		{"no loop", []script.Answer{script.Text("a")}, 3, "a", "", 1},
		{"loop in the text", []script.Answer{script.Text(loop), script.Text("b")}, 3, "b", "", 2},
		{"loop in the thinking", []script.Answer{thinking, script.Text("b")}, 3, "b", "", 2},
		{"loop for ever", []script.Answer{script.Text(loop), script.Text(loop), script.Text(loop)}, 2, loop,
			"llm: the model still repeats itself after 2 retries: the same 100 bytes again and again, noticed at byte 187", 3},
		{"bypassed", []script.Answer{script.Text(loop)}, -1, loop,
			"llm: the model got stuck in its response: the same 100 bytes again and again, noticed at byte 187", 1},
		{"no retry", []script.Answer{script.Text(loop)}, 0, loop, "llm: the model still repeats itself after 0 retries", 1},
		{"another error", []script.Answer{script.Text(loop), script.Status(500, "")}, 3, "", "llm: HTTP status 500", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := script.New(c.answers...)
			reply, err := llm.Collect(t.Context(), llm.Guard(m, llm.NewWatcher, c.retries), &llm.Request{Messages: []llm.Message{llm.User("hi")}})
			if reply.Text != c.text {
				t.Errorf("text %q, want %q", reply.Text, c.text)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			requests := m.Requests()
			if len(requests) != c.asked {
				t.Fatalf("asked %d times, want %d", len(requests), c.asked)
			}
			if n := len(requests[len(requests)-1].Messages); n != 2*c.asked-1 {
				t.Errorf("the last request has %d messages, want %d: two more for each retry", n, 2*c.asked-1)
			}
			if c.asked > 1 && requests[1].Messages[1].Text() != loop {
				t.Errorf("the partial was %q, want the text received", requests[1].Messages[1].Text())
			}
		})
	}
}

// rambler writes without end, with a tick after each kilobyte.
type rambler struct{ requests int }

func (r *rambler) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	r.requests++
	return func(yield func(llm.Delta, error) bool) {
		if !yield(llm.Delta{Kind: llm.Start, Reply: &llm.Reply{RequestID: "req_1"}}, nil) {
			return
		}
		for i := range 100 {
			text := strings.Repeat(fmt.Sprintf("and so on and on (%d), ", i), 50)
			if !yield(llm.Delta{Kind: llm.Reasoning, Text: text}, nil) || !yield(llm.Delta{Kind: llm.Progress}, nil) {
				return
			}
		}
		yield(llm.Delta{Kind: llm.Done, Reply: &llm.Reply{}}, nil)
	}
}

func TestGuardTicks(t *testing.T) {
	watch := func() *llm.Watcher { return &llm.Watcher{Compression: &llm.Compression{}} }
	m := &rambler{}
	_, err := llm.Collect(t.Context(), llm.Guard(m, watch, 1), &llm.Request{Messages: []llm.Message{llm.User("hi")}})
	var exhausted *llm.RepetitionExhaustedError
	if !errors.As(err, &exhausted) || exhausted.LastHit.Kind != "compression" || exhausted.RequestID != "req_1" || m.requests != 2 {
		t.Errorf("error %v after %d requests, want exhaustion by compression after 2", err, m.requests)
	}
}
