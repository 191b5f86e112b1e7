package stonetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/bounds"
)

// A ToolCall is a model's tool call together with its result.
type ToolCall struct {
	Name string
	// Input is the input that the model wrote. Truncated arguments are represented as a JSON string.
	Input json.RawMessage
	// Text is the result in the form that the model received.
	Text string
	// Meta is the metadata stored with the result, as a JSON object.
	Meta json.RawMessage
	// Failed is true if the tool returned an error, or if the call did not run because the tool does not exist or the input does
	// not match its schema.
	Failed bool

	Agent    string // the name of the ashlar that made the call
	Path     string // the address of the calling ashlar in the run
	Turn     int    // the agent's turn, counted from 1
	Position int    // the position of the call in the turn, counted from 1
}

// String returns the call on one line.
func (c ToolCall) String() string {
	arrow := "→"
	if c.Failed {
		arrow = "✗"
	}
	return fmt.Sprintf("%s/%s %s %s %s", c.Agent, c.Name, clip(string(c.Input)), arrow, clip(c.Text))
}

// clip shortens a text to one line.
func clip(s string) string {
	return bounds.Cut(strings.Join(strings.Fields(s), " "), 200)
}

// is reports whether name names the call's tool, or its agent and tool.
func (c ToolCall) is(name string) bool {
	return name == c.Name || name == c.Agent+"/"+c.Name
}

// Calls returns the tool calls of all runs in the harness, in the order of the pipeline. If names are given, it returns only the
// calls of the named tools. A name is either the name of a tool, as in "ask_user", or the name of an agent and its tool, as in
// "discover/ask_user".
func (h *Harness) Calls(names ...string) []ToolCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(names) == 0 {
		return slices.Clone(h.calls)
	}
	var out []ToolCall
	for _, c := range h.calls {
		if slices.ContainsFunc(names, c.is) {
			out = append(out, c)
		}
	}
	return out
}

// Called fails the test if the named tool was not called. The text of why is added to the message.
func (h *Harness) Called(name string, why ...string) {
	h.t.Helper()
	if len(h.Calls(name)) == 0 {
		h.t.Errorf("%s was not called%s%s", name, because(why), h.trail())
	}
}

// NotCalled fails the test if the named tool was called. The text of why is added to the message.
func (h *Harness) NotCalled(name string, why ...string) {
	h.t.Helper()
	if n := len(h.Calls(name)); n > 0 {
		h.t.Errorf("%s was called %s, want no call%s%s", name, times(n), because(why), h.trail())
	}
}

// CallCount fails the test unless the named tool was called want times. The text of why is added to the message.
func (h *Harness) CallCount(name string, want int, why ...string) {
	h.t.Helper()
	if n := len(h.Calls(name)); n != want {
		h.t.Errorf("%s was called %s, want %s%s%s", name, times(n), times(want), because(why), h.trail())
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func because(why []string) string {
	if len(why) == 0 {
		return ""
	}
	return ": " + strings.Join(why, " ")
}

// trail returns a list of the calls, one a line, for failure messages.
func (h *Harness) trail() string {
	calls := h.Calls()
	if len(calls) == 0 {
		return "\n\tno tool was called"
	}
	var b strings.Builder
	b.WriteString("\n\tthe tools were called with")
	for _, c := range calls {
		b.WriteString("\n\t" + c.String())
	}
	return b.String()
}

// watch records a tool call if the event reports one.
func (h *Harness) watch(e event.Event) {
	d, ok := e.Data.(event.ToolDone)
	if !ok {
		return
	}
	c := ToolCall{Name: d.Tool, Text: d.Text, Failed: !d.OK, Agent: e.Name, Path: e.Path, Turn: d.Turn, Position: d.Position}
	c.Input, _ = d.Input.(json.RawMessage)
	if c.Meta, _ = d.Meta.(json.RawMessage); c.Meta == nil {
		c.Meta = json.RawMessage("{}")
	}
	h.record(c)
}

// record inserts a call at its position in the order of the pipeline. Calls of concurrent lanes and calls of the same turn arrive
// in any order; all other calls arrive in order.
func (h *Harness) record(c ToolCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := len(h.calls)
	for at > h.firstCall && c.before(h.calls[at-1]) {
		at--
	}
	h.calls = slices.Insert(h.calls, at, c)
}

// before reports whether c belongs before other, which arrived earlier.
func (c ToolCall) before(other ToolCall) bool {
	if c.Path == other.Path {
		return c.Turn == other.Turn && c.Position < other.Position
	}
	return address.Before(c.Path, other.Path)
}
