package stone

import (
	"context"
	"testing"

	"github.com/stonelayer/stone/dag"
)

func TestValidateSilentLoss(t *testing.T) {
	read, lane := first("read", ticketType), from("lane", itemType, draftType)
	sum := gather("sum", draftType, reportType)
	each := func(body Ashlar, opts ...FanOption) Ashlar {
		return Seq("p", read, overTickets("each", body, opts...), sum)
	}
	fan := func(lanes []Ashlar, opts ...FanOption) Ashlar {
		return Seq("p", Parallel("fan", Parts(lanes, opts...)...), sum)
	}
	a, b := first("a", draftType), first("b", draftType)
	rescued := func(name string, body Ashlar) Ashlar { return Rescue(name, body, first("instead-"+name, draftType)) }
	failures := Reduce(New("sum", reportType, func(context.Context, dag.DAG) (v noteDoc, err error) { return },
		Queries(dag.All(draftType), dag.All(dag.Failure))))
	const warning = "a lane that fails is dropped, and the others are the result: set AllLanes or Quorum(n), make its body a Rescue, or read the failures with dag.Lost"
	for _, tt := range []struct {
		name string
		p    Ashlar
		want string
	}{
		{"a map says nothing", each(lane), "each"},
		{"a map of all lanes", each(lane, AllLanes()), ""},
		{"a map with a quorum", each(lane, Quorum(1)), ""},
		{"a map of rescued lanes", each(rescued("safe", lane)), ""},
		{"a lane of which a part is rescued", each(Seq("body", rescued("safe", lane), from("rest", draftType, draftType))), "each"},
		{"a parallel says nothing", fan([]Ashlar{a, b}), "fan"},
		{"a parallel of all lanes", fan([]Ashlar{a, b}, AllLanes()), ""},
		{"one lane is not rescued", fan([]Ashlar{rescued("safe", a), b}), "fan"},
		{"every lane is rescued", fan([]Ashlar{rescued("safe", a), rescued("other", b)}), ""},
		{"the reducer reads the failures", Seq("p", read, overTickets("each", lane), failures), ""},
		{"a fan-out within a lane", each(Seq("inner", Parallel("fan", a), gather("join", draftType, draftType)), AllLanes()), "fan"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			for _, f := range Validate(tt.p, Given{}) {
				if f.Type != lossy {
					t.Errorf("beside it: %v", f)
					continue
				}
				if got += f.Ashlar; !f.Warning || f.Message != warning {
					t.Errorf("got %v", f)
				}
			}
			if got != tt.want {
				t.Errorf("warned of %q, want %q", got, tt.want)
			}
		})
	}
}

func TestValidateReduceOfNothing(t *testing.T) {
	read, sum := first("read", draftType), gather("sum", draftType, reportType)
	fan := Parallel("fan", first("a", draftType), AllLanes())
	const found = "\t\t\twarning [nothing-to-reduce] sum: no fan-out comes before it: add one, or use its body without Reduce (at p/sum)\n"
	input := mustAppend(dag.DAG{}, draftType, noteDoc{})
	checkPrograms(t, []program{
		{"after a leaf", Seq("p", read, sum), found, Config{}},
		{"after a fan-out", Seq("p", fan, sum), ``, Config{}},
		{"after one that is reduced already", Seq("p", fan, gather("first", draftType, draftType), sum), found, Config{}},
		{"after a branch with a fan-out", Seq("p", read, Match("m", On(draftType, textOf), Case("a", fan), Case("b", first("b", draftType))), sum), ``, Config{}},
		{"after an unknown input", Seq("p", sum), ``, Config{Input: input}},
		{"behind what failed", Seq("p", Rescue("r", first("body", draftType), first("heal", draftType)), sum), found, Config{}},
		{"after a fan-out that was read", Seq("p", fan, readingLeaf("after", draftType, dag.All(draftType)), sum), `
			[fanout-not-reduced] fan: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/fan)
			warning [nothing-to-reduce] sum: no fan-out comes before it: add one, or use its body without Reduce (at p/sum)
		`, Config{}},
	})
}
