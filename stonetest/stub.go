package stonetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
)

// A Handler is the function that a tool calls.
type Handler = func(ctx context.Context, input json.RawMessage) (agent.Result, error)

// Answer returns a handler whose result is always text. The result's Meta contains "stub": true.
func Answer(text string) Handler {
	return func(context.Context, json.RawMessage) (agent.Result, error) {
		return agent.Result{Text: text, Meta: map[string]any{"stub": true}}, nil
	}
}

// Func returns a handler that decodes the tool's input and calls fn with it. If fn returns an error, the model receives the error
// instead of the text.
func Func[In any](fn func(In) (string, error)) Handler {
	return func(_ context.Context, input json.RawMessage) (agent.Result, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return agent.Result{}, err
		}
		text, err := fn(in)
		return agent.Result{Text: text}, err
	}
}

// Stub returns a copy of p in which handler replaces the handler of the named tool. The model is offered the same tools as
// before. If the tool already has a stub, the new handler replaces it.
//
// The argument name is the name of the tool, preceded by the names of as many enclosing ashlars as are needed to make it unique:
// "read_file", "fix/read_file" or "repair/fix/read_file". If the same tool is used in several places, it is replaced in all of
// them. The test fails at once if no tool or several tools have the name.
func Stub(t testing.TB, p stone.Ashlar, name string, handler Handler) stone.Ashlar {
	t.Helper()
	out, err := stub(p, name, handler)
	if err != nil {
		t.Fatalf("stonetest.Stub: %v", err)
	}
	return out
}

func stub(p stone.Ashlar, name string, handler Handler) (stone.Ashlar, error) {
	if handler == nil {
		return p, fmt.Errorf("the handler of %q is nil: pass one, such as Answer", name)
	}
	target, err := find(p, name)
	if err != nil {
		return p, err
	}
	ring := stubRing(target.Name, handler)
	return rebuild(p, func(use []agent.Middleware) []agent.Middleware {
		if !slices.ContainsFunc(use, func(m agent.Middleware) bool { return m.Tool == target }) {
			return use
		}
		use = slices.DeleteFunc(use, func(m agent.Middleware) bool { return m.Name == ring.Name })
		return append(use, ring)
	}), nil
}

// A place is a position of a tool in a pipeline.
type place struct {
	path string // the path of the tool, ending with its name
	tool *agent.Tool
}

// find returns the tool with the given name, or an error if no tool or several tools have it.
func find(p stone.Ashlar, name string) (*agent.Tool, error) {
	all := places(p, "")
	var tool *agent.Tool
	var paths, known []string
	ambiguous := false
	for _, at := range all {
		known = append(known, at.path)
		if strings.HasSuffix("/"+at.path, "/"+name) {
			paths = append(paths, at.path)
			ambiguous = ambiguous || tool != nil && tool != at.tool
			tool = at.tool
		}
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("there is no tool %q: no agent in %q has any", name, p.Name())
	case tool == nil:
		return nil, fmt.Errorf("there is no tool %q in %q; there are %s", name, p.Name(), list(known))
	case ambiguous:
		return nil, fmt.Errorf("several tools are called %q: %s; add enough of the path to make the name unique", name, list(paths))
	}
	return tool, nil
}

func list(names []string) string {
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// places returns the positions of all tools that a pipeline is known to have before a run.
func places(a stone.Ashlar, above string) []place {
	path := above + a.Name() + "/"
	var out []place
	use, _ := middlewares(a)
	for _, m := range use {
		if m.Tool != nil {
			out = append(out, place{path + m.Tool.Name, m.Tool})
		}
	}
	for _, c := range a.Children() {
		out = append(out, places(c, path)...)
	}
	return out
}

// rebuild returns a copy of p in which edit has changed the middlewares of every agent.
func rebuild(p stone.Ashlar, edit func([]agent.Middleware) []agent.Middleware) stone.Ashlar {
	return p.Replace(func(a stone.Ashlar) (stone.Ashlar, bool) { return agent.Rebuild(a, edit) })
}

// middlewares returns the middlewares of the agent a, without the middlewares of its judges, and true. If a is not an agent, it
// returns nil and false.
func middlewares(a stone.Ashlar) (use []agent.Middleware, ok bool) {
	asked := false
	_, ok = agent.Rebuild(a, func(list []agent.Middleware) []agent.Middleware {
		if !asked { // Rebuild starts with the agent itself
			use, asked = list, true
		}
		return list
	})
	return use, ok
}

// ringName is the name prefix of middlewares that are stubs.
const ringName = "stonetest.Stub/"

type harnessKey struct{}

// stubRing returns the innermost middleware, which replaces a tool's handler. Since it is innermost, it also replaces wrappers of
// the handler, such as a request for approval. The tool is offered under the same conditions as before.
func stubRing(tool string, handler Handler) agent.Middleware {
	return agent.Middleware{Name: ringName + tool, Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		if h, ok := ctx.Value(harnessKey{}).(*Harness); ok {
			h.knowStub(stone.In(ctx).Path(), tool)
		}
		c.Tools = slices.Clone(c.Tools)
		for i := range c.Tools {
			if c.Tools[i].Name == tool {
				c.Tools[i].Run = handler
			}
		}
		return next(ctx, c)
	}}
}

var errNotStubbed = errors.New("this tool is out of order: continue without it")

// guarded adds a middleware around the stubs of an agent. It disables all tools, and the stubs enable their own tools again.
func guarded(use []agent.Middleware) []agent.Middleware {
	at := slices.IndexFunc(use, func(m agent.Middleware) bool { return strings.HasPrefix(m.Name, ringName) })
	if at < 0 {
		at = len(use)
	}
	return slices.Insert(use, at, agent.Middleware{Name: "stonetest.Strict", Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		c.Tools = slices.Clone(c.Tools)
		for i := range c.Tools {
			c.Tools[i].Run = func(context.Context, json.RawMessage) (agent.Result, error) { return agent.Result{}, errNotStubbed }
		}
		return next(ctx, c)
	}})
}

// stubKey identifies a stub in one visit of an agent.
type stubKey struct{ path, tool string }

func (h *Harness) knowStub(path, tool string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stubbed[stubKey{path, tool}] = true
}

// checkStrict fails the test for every call of a tool without a stub in the last run.
func (h *Harness) checkStrict() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls[h.firstCall:] {
		if !h.stubbed[stubKey{c.Path, c.Name}] {
			h.t.Errorf("%s was called but has no stub: add one with Stub, or leave Strict off\n\t%s", c.Name, c)
		}
	}
}
