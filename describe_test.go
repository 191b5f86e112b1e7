package stone_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
)

// TestUndeclared: who says nothing of effects is named; who says that there are none is not.
func TestUndeclared(t *testing.T) {
	word := dag.NewType[string]("word")
	said := dag.NewType[agent.Text]("said")
	answered := dag.NewType[string]("answered")
	id := func(_ context.Context, s string) (string, error) { return s, nil }
	leaf := func(name string, opts ...stone.LeafOption) stone.Ashlar {
		return stone.Func0(name, word, func(context.Context) (string, error) { return name, nil }, opts...)
	}
	type in struct{ Q string }
	fn := func(_ context.Context, i in) (string, error) { return i.Q, nil }
	talk := agent.New("talk", said, script.New(), agent.Config{User: agent.Say("go"), Use: []agent.Middleware{
		tool.Func("refund", "pays", fn), tool.Func("look", "looks", fn, tool.Effects()), tool.Func("get", "gets", fn, tool.Effects("net")),
	}})
	asks := func(capability call.Capability) stone.Ashlar {
		return call.New("asks", answered, call.Spec{Intent: "answer", Input: call.From(word), Applicator: &call.Applicator{Registry: call.NewRegistry(capability)}})
	}
	inner := stone.Func("inner", word, answered, id)
	app := &call.Applicator{}
	self := stone.Seq("self", inner, call.New("again", answered, call.Spec{Intent: "answer", Input: call.From(word), Applicator: app}))
	app.Registry = call.NewRegistry(call.Pipeline(call.Metadata{ID: "self"}, self, word, answered))

	for _, c := range []struct {
		name string
		a    stone.Ashlar
		want []string
	}{
		{"says nothing", leaf("a"), []string{"a"}},
		{"none", leaf("a", stone.Effects()), nil},
		{"none by name", leaf("a", stone.Effects("none")), nil},
		{"some", leaf("a", stone.Effects("net")), nil},
		{"twice", stone.Seq("all", leaf("a"), leaf("b"), leaf("a")), []string{"a", "b"}},
		{"an ask", stone.Ask("sure", word, dag.NewType[stone.Answer]("reply"), func(string) string { return "?" }), nil},
		{"an agent", talk, []string{"talk/refund"}},
		{"a function", asks(call.Func(call.Metadata{ID: "pay"}, id)), []string{"pay"}},
		{"a function without effects", asks(call.Func(call.Metadata{ID: "pay", Needs: []string{}}, id)), nil},
		{"a function with effects", asks(call.Func(call.Metadata{ID: "pay", Needs: []string{"net"}}, id)), nil},
		{"a pipeline", asks(call.Pipeline(call.Metadata{ID: "p"}, inner, word, answered)), []string{"inner"}},
		{"a pipeline that calls itself", self, []string{"inner"}},
	} {
		if got := c.a.Undeclared(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestDescribe: a description changes nothing but itself.
func TestDescribe(t *testing.T) {
	word := dag.NewType[string]("word")
	a := stone.Func0("a", word, func(context.Context) (string, error) { return "a", nil })
	described := a.Describe("Says a.")
	if described.Description() != "Says a." || a.Description() != "" {
		t.Errorf("%q, %q", described.Description(), a.Description())
	}
	if described.Fingerprint() != a.Fingerprint() || described.Name() != a.Name() {
		t.Error("it has another fingerprint or name")
	}
}
