package cel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/stonetest"
	"github.com/stonelayer/stone/x/cel"
)

func Example() {
	adds, err := cel.Check("out.total == call.input.a + call.input.b")
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	req := &call.Request{Intent: "sum", Input: call.JSON(`{"a":2,"b":3}`)}
	fmt.Println(adds(ctx, call.Subject{Request: req, Out: call.JSON(`{"total":6}`)}))

	solver := cel.New(call.Metadata{}, cel.Config{})
	reply, err := solver.Invoke(ctx, &call.Request{Input: call.JSON(`{"expression":"a + b","vars":{"a":2,"b":3}}`)})
	fmt.Println(string(reply.Out), err)
	// Output:
	// out.total == call.input.a + call.input.b does not hold
	// 5 <nil>
}

func TestCapability(t *testing.T) {
	stonetest.TestCapability(t, stonetest.Capability{
		Make: func(*testing.T) call.Capability { return cel.New(call.Metadata{}, cel.Config{}) },
		OK:   &call.Request{Intent: "cel/eval", Input: call.JSON(`{"expression":"xs.map(x, x * 2)","vars":{"xs":[1,2,3]}}`)},
	})
	stonetest.TestCapability(t, stonetest.Capability{
		Make: func(*testing.T) call.Capability {
			return cel.New(call.Metadata{ID: "mine/size"}, cel.Config{Expression: "has(call.input) ? call.intent : ''"})
		},
		OK: &call.Request{Intent: "text/size", Input: call.JSON(`{"text":"abc"}`)},
	})
}

func TestErrors(t *testing.T) {
	for _, test := range []struct{ input, kind, message string }{
		{`{"expression":"a +","vars":{"a":1}}`, "expression/invalid", "1:4: "},
		{`{"expression":"1 + b","vars":{"a":1}}`, "expression/invalid", "1:5: unknown name b"},
		{`{"expression":"a / 0","vars":{"a":1}}`, "expression/failed", "division by zero"},
		{`{"expression":"a.map(x, a.map(y, a.map(z, a.map(q, 1))))","vars":{"a":[` + strings.Repeat("1,", 200) + `1]}}`, "expression/too-costly", "too much work"},
		{`{"vars":{}}`, reasons.InvalidRequest, "the input must be"},
		{`{"expression":1}`, reasons.InvalidRequest, "the input must be"},
	} {
		_, err := cel.New(call.Metadata{}, cel.Config{}).Invoke(t.Context(), &call.Request{Input: call.JSON(test.input)})
		var typed *call.Error
		if !errors.As(err, &typed) || typed.Type != test.kind || !strings.Contains(typed.Message, test.message) {
			t.Errorf("%.60s: %v, want %s: %s", test.input, err, test.kind, test.message)
		}
	}
	if err := (cel.Config{Expression: "out.x"}).Check(); err == nil || !strings.Contains(err.Error(), "unknown name out") {
		t.Errorf("a capability sees no out: %v", err)
	}
}

func TestCheck(t *testing.T) {
	req := &call.Request{Intent: "text/respond", Input: call.JSON(`{"max":4}`), Context: call.JSON(`{"who":"x"}`)}
	for _, test := range []struct{ expression, out, want string }{
		{"size(out.text) <= 6", `{"text":"short"}`, ""},
		{"size(out.text) <= call.input.max", `{"text":"longer"}`, "does not hold"},
		{"call.intent == 'text/respond' && call.context.who == 'x' && !has(call.constraints)", `{}`, ""},
		{"out.missing == 1", `{}`, "no such key: missing"},
		{"out.text", `{"text":"x"}`, "must be true or false"},
		{"out == null", `null`, ""},
	} {
		check, err := cel.Check(test.expression)
		if err != nil {
			t.Fatal(err)
		}
		err = check(t.Context(), call.Subject{Request: req, Out: call.JSON(test.out)})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s of %s: %v, want %q", test.expression, test.out, err, test.want)
		}
	}
	if _, err := cel.Check("input.x == 1"); err == nil {
		t.Error("an unknown name is no error")
	}
}
