package stone_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

type plan struct {
	Files []string `json:"files"`
	Done  bool     `json:"done"`
}

var (
	planned = dag.NewType[plan]("plan")
	file    = dag.NewType[string]("file")
	review  = dag.NewType[string]("review")
)

func makePlan(p plan) stone.Ashlar {
	return stone.Func0("plan", planned, func(context.Context) (plan, error) { return p, nil })
}

var (
	lookAt = stone.Func("look", file, review, func(_ context.Context, f string) (string, error) { return "fine: " + f, nil })
	sum    = stone.Reduce(stone.Func("sum", dag.All(review), word, func(_ context.Context, all []string) (string, error) { return strings.Join(all, ", "), nil }))
)

// A Map, a Loop, a Match and a leaf can all look into the latest node.
func TestLens(t *testing.T) {
	p := stone.Seq("p",
		stone.Loop("until-done", makePlan(plan{[]string{"a", "b"}, true}), dag.Lens[bool]("done"), 3),
		stone.Match("m", stone.On(dag.Lens[bool]("done"), func(done bool) string { return fmt.Sprint(done) }),
			stone.Case("true", stone.Map("each", dag.Lens[[]string]("files"), file, lookAt, stone.AllLanes()))),
		sum)
	if found := stone.Validate(p, stone.Given{}); len(found) > 0 {
		t.Error(found)
	}
	if got, err := stone.Produce(t.Context(), p, word, stone.Config{}); err != nil || got != "fine: a, fine: b" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Validate compares every lens with the schema of the latest node.
func TestValidateLens(t *testing.T) {
	first := makePlan(plan{})
	each := func(list dag.Reader[[]string]) stone.Ashlar {
		return stone.Seq("p", first, stone.Map("each", list, file, lookAt, stone.AllLanes()), sum)
	}
	for _, c := range []struct {
		name string
		p    stone.Ashlar
		want string
	}{
		{"a field that is missing", each(dag.Lens[[]string]("flies")),
			`[invalid-lens] each: lens path ["flies"] is not in the schema of the latest node, "plan": the fields there are done, files; did you mean "files"? (at p/each)`},
		{"a missing field is no option", each(dag.Derive(dag.Maybe(dag.Lens[[]string]("flies")), func(*[]string) []string { return nil })),
			`[invalid-lens] each: lens path ["flies"] is not in the schema of the latest node, "plan": the fields there are done, files; did you mean "files"? (at p/each)`},
		{"another type", each(dag.Lens[[]string]("done")),
			`[schema-mismatch] each: each cannot read ["done"] of the latest node, "plan": want array or null, the producer writes boolean (at p/each)`},
		{"a loop", stone.Loop("l", first, dag.Lens[bool]("files"), 2),
			`[schema-mismatch] l: l cannot read ["files"] of the latest node, "plan": want boolean, the producer writes array`},
		{"a type without a schema", stone.Seq("p", first, stone.Func("f", dag.Lens[chan int]("files"), word, func(context.Context, chan int) (string, error) { return "", nil })),
			`[bad-type] f: lens path ["files"]: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			if found := stone.Validate(c.p, stone.Given{}); len(found) != 1 || !strings.HasPrefix(found[0].String(), c.want) {
				t.Errorf("got\n%v\nwant\n%s", found, c.want)
			}
		})
	}
}
