package stonetest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
)

// A Capability tells TestCapability how to make a capability and which requests to test it with.
type Capability struct {
	// Make returns a new capability. It must use t.Cleanup to stop everything that the capability starts.
	Make func(t *testing.T) call.Capability
	// OK is a request whose answers are always equal, apart from their usage. Slow, if not nil, is a request that takes at least
	// a minute to answer.
	OK, Slow *call.Request
	// Stream, if not nil, is a request whose answer is text that arrives in pieces.
	Stream *call.Request
}

// soon is the maximum time for an answer, and for returning after a request is cancelled. It is shorter than the time that Slow
// takes, and long enough for a process on a busy machine.
const soon = 30 * time.Second

// TestCapability checks that a capability meets the contract of call.Capability, in subtests of t.
func TestCapability(t *testing.T, c Capability) {
	t.Helper()
	for _, sub := range []struct {
		name string
		run  func(*testing.T, Capability)
	}{
		{"Metadata", testMetadata},
		{"Answer", testAnswer},
		{"Input", testInput},
		{"Stream", testStream},
		{"Concurrent", testConcurrent},
		{"Done", testDone},
		{"Cancel", testCancel},
		{"Deadline", testDeadline},
	} {
		t.Run(sub.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Run("case", func(t *testing.T) { sub.run(t, c) }) // the cleanups of the subtest run before the leak check
			goleak.VerifyNone(t, before)
		})
	}
}

func testMetadata(t *testing.T, c Capability) {
	m := c.Make(t)
	if m.ID == "" || m.Kind == "" || m.Invoke == nil {
		t.Errorf("the id is %q, the kind %q, Invoke is set: %v; want all three", m.ID, m.Kind, m.Invoke != nil)
	}
}

func testAnswer(t *testing.T, c Capability) {
	before := *c.OK
	before.Input, before.Context = append(call.JSON(nil), c.OK.Input...), append(call.JSON(nil), c.OK.Context...)
	input, about := c.OK.Input, c.OK.Context
	reply, err := c.Make(t).Invoke(t.Context(), c.OK)
	check(t, reply, err)
	if string(input) != string(before.Input) || string(about) != string(before.Context) || c.OK.Intent != before.Intent {
		t.Error("the request was changed")
	}
}

// check fails the test if an applicator could not use the reply.
func check(t *testing.T, reply *call.Reply, err error) {
	t.Helper()
	if err != nil || reply == nil {
		t.Fatalf("reply %v, error %v; want an answer", reply, err)
	}
	switch reply.Type {
	case "", call.Value, call.Stream:
		if !json.Valid(reply.Out) {
			t.Errorf("the out is no JSON: %.200q", reply.Out)
		}
	case call.Plan:
		if len(reply.Plan) == 0 {
			t.Error("a reply of type plan has none")
		}
	default:
		t.Errorf("type %q, want value, plan or stream", reply.Type)
	}
	if u := reply.Usage; u.InputTokens < 0 || u.OutputTokens < 0 || u.USD < 0 {
		t.Errorf("usage %+v is negative", u)
	}
}

// testInput sends meaningless inputs and checks that the capability answers or rejects each of them in time.
func testInput(t *testing.T, c Capability) {
	capability := c.Make(t)
	for _, input := range []string{"", "null", "{}", "[]", `"text"`, "17", `{"a":`, `{"input":{"x":[1,{"y":null}]}}`} {
		req := *c.OK
		req.Input = call.JSON(input)
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		reply, err := capability.Invoke(ctx, &req)
		if err == nil {
			check(t, reply, nil)
		} else {
			checkError(t, err)
		}
		if ctx.Err() != nil {
			t.Errorf("input %q took longer than %v", input, soon)
		}
		cancel()
	}
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var typed *call.Error
	if errors.As(err, &typed) && typed.Type == "" {
		t.Errorf("the error has no type: %v", err)
	}
	if err.Error() == "" {
		t.Error("the error says nothing")
	}
}

func testConcurrent(t *testing.T, c Capability) {
	capability := c.Make(t)
	first, err := capability.Invoke(t.Context(), c.OK)
	check(t, first, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			reply, err := capability.Invoke(t.Context(), c.OK)
			if err != nil || reply == nil {
				t.Errorf("reply %v, error %v while others ask too", reply, err)
			} else if !same(reply.Out, first.Out) {
				t.Errorf("out %.200s while others ask too, %.200s alone", reply.Out, first.Out)
			}
		})
	}
	wg.Wait()
}

func same(a, b call.JSON) bool {
	var x, y any
	return string(a) == string(b) || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func testDone(t *testing.T, c Capability) {
	req := c.Slow
	if req == nil {
		req = c.OK
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	capability := c.Make(t)
	start := time.Now()
	if _, err := capability.Invoke(ctx, req); err == nil && c.Slow != nil {
		t.Error("no error after the request was canceled")
	}
	if took := time.Since(start); took > soon {
		t.Errorf("it takes %v to notice that the request was canceled", took)
	}
}

func testCancel(t *testing.T, c Capability) {
	if c.Slow == nil {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	interrupted(t, ctx, c)
}

func testDeadline(t *testing.T, c Capability) {
	if c.Slow == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	interrupted(t, ctx, c)
}

func interrupted(t *testing.T, ctx context.Context, c Capability) {
	t.Helper()
	capability := c.Make(t)
	start := time.Now()
	reply, err := capability.Invoke(ctx, c.Slow)
	if took := time.Since(start); took > soon {
		t.Errorf("it continues for %v after the request was canceled", took)
	}
	if err == nil {
		t.Errorf("reply %v to a canceled request, want an error", reply)
	} else {
		checkError(t, err)
	}
}

func testStream(t *testing.T, c Capability) {
	if c.Stream == nil {
		return
	}
	var heard eventtest.Recorder
	ctx, req := eventtest.Context(t.Context(), &heard), *c.Stream
	req.Voice = event.At(ctx).Speak("streamed")
	reply, err := c.Make(t).Invoke(ctx, &req)
	if check(t, reply, err); err != nil {
		return
	}
	var out struct{ Text string }
	if err := json.Unmarshal(reply.Out, &out); err != nil {
		t.Errorf("the out of a streamed answer: %v", err)
	}
	said := ""
	for _, e := range heard.Events() {
		switch d := e.Data.(type) {
		case event.Delta:
			if d.Kind == event.Text {
				said += d.Text
			}
		case event.Retracted:
			said = ""
		}
	}
	if said == "" || said != out.Text {
		t.Errorf("the pieces are %q, want the pieces for the text %q", said, out.Text)
	}
	again, err := c.Make(t).Invoke(t.Context(), c.Stream)
	if check(t, again, err); err == nil && string(again.Out) != string(reply.Out) {
		t.Errorf("when nothing listens the out is %s, otherwise %s", again.Out, reply.Out)
	}
}
