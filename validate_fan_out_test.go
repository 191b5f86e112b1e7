package stone

import (
	"context"
	"testing"

	"github.com/stonelayer/stone/dag"
)

func TestValidateFanOuts(t *testing.T) {
	read := first("read", ticketType)
	each := overTickets("each", from("lane", itemType, draftType))
	fan := Parallel("fan", first("a", draftType), first("b", draftType))
	sum := gather("sum", draftType, reportType)
	after := first("after", reportType)
	route := func(branches ...Branch) Ashlar { return Match("route", On(ticketType, textOf), branches...) }
	checkPrograms(t, []program{
		{"reduced", Seq("p", read, each, sum), ``, Config{}},
		{"reduced deeper", Seq("p", read, each, Seq("rest", sum, from("end", reportType, reviewType))), ``, Config{}},
		{"reduced by a sequence", Seq("p", read, each, Reduce(Seq("rest", Func("sum", dag.All(draftType), reportType, nothingOf), from("end", reportType, reviewType)))), ``, Config{}},
		{"reduced by every branch", Seq("p", read, Match("m", On(ticketType, textOf), Case("a", each), Case("b", fan)), sum), ``, Config{}},
		{"reduced in a round", Seq("p", read, Loop("l", Seq("round", each, sum), Until(reportType, done), 2)), ``, Config{}},
		{"reduced in the first round", Seq("p", read, each, Loop("l", Seq("round", sum, each, gather("again", draftType, reviewType)), Until(reviewType, done), 2)), `
			warning [unused-produce] sum: nothing reads "report", and it is not the result: remove it, or read it where it is needed (at p/l/round/sum)
		`, Config{}},
		{"reduced in a lane", Seq("p", read, Parallel("outer", Seq("lane", each, sum)), gather("all", reportType, reviewType)), ``, Config{}},
		{"reduced by a fan-out", Seq("p", read, each, Reduce(Parallel("two", Func("sum", dag.All(draftType), reportType, nothingOf), Func("other", dag.All(draftType), reportType, nothingOf))), gather("all", reportType, reviewType)), ``, Config{}},
		{"a failed body is joined by its failure", Seq("p", read, Rescue("r", Seq("body", each, sum), from("heal", ticketType, reportType))), ``, Config{}},

		{"the end of the pipeline", Seq("p", read, each), `
			[fanout-not-reduced] each: its lanes reach the result of the pipeline without a reducer between: follow it with stone.Reduce (at p/each)
		`, Config{}},
		{"the pipeline itself", fan, `
			[fanout-not-reduced] fan: its lanes reach the result of the pipeline without a reducer between: follow it with stone.Reduce
		`, Config{}},
		{"before a leaf", Seq("p", read, each, readingLeaf("after", reportType, dag.All(draftType))), `
			[fanout-not-reduced] each: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/each)
		`, Config{}},
		{"before a match", Seq("p", read, each, route(Case("a", sum))), `
			[fanout-not-reduced] each: its lanes reach "route" without a reducer between: follow it with stone.Reduce (at p/each)
		`, Config{}},
		{"before a map", Seq("p", read, each, overTickets("again", from("second", itemType, draftType)), sum), `
			[fanout-not-reduced] each: its lanes reach "again" without a reducer between: follow it with stone.Reduce (at p/each)
		`, Config{}},
		{"before a parallel", Seq("p", read, each, fan, sum), `
			[fanout-not-reduced] each: its lanes reach "fan" without a reducer between: follow it with stone.Reduce (at p/each)
		`, Config{}},
		{"before the condition of a loop", Seq("p", read, Loop("l", each, Until(ticketType, done), 2), sum), `
			[fanout-not-reduced] each: its lanes reach "l" at the end of a round without a reducer between: follow it with stone.Reduce (at p/l/each)
		`, Config{}},
		{"before the condition of a loop of one round", Seq("p", read, Loop("l", each, Until(ticketType, done), 1), sum), `
			[fanout-not-reduced] each: its lanes reach "l" without a reducer between: follow it with stone.Reduce (at p/l/each)
		`, Config{}},
		{"in the body of a loop", Seq("p", read, Loop("l", Seq("round", each, readingLeaf("after", reportType, dag.All(draftType))), Until(reportType, done), 2)), `
			[fanout-not-reduced] each: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/l/round/each)
		`, Config{}},
		{"before a loop", Seq("p", read, each, Loop("l", readingLeaf("round", reportType, dag.All(draftType)), Until(reportType, done), 2)), `
			[fanout-not-reduced] each: its lanes reach "round" without a reducer between: follow it with stone.Reduce (at p/each)
		`, Config{}},
		{"at the end of a branch", Seq("p", read, route(Case("a", Seq("way", each)), Case("b", first("b", draftType))), readingLeaf("after", reportType, dag.All(draftType))), `
			[fanout-not-reduced] each: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/route["a"]/way/each)
		`, Config{}},
		{"at the end of two branches", Seq("p", read, route(Case("a", each), Case("b", fan))), `
			[fanout-not-reduced] each: its lanes reach the result of the pipeline without a reducer between: follow it with stone.Reduce (at p/route["a"]/each)
			[fanout-not-reduced] fan: its lanes reach the result of the pipeline without a reducer between: follow it with stone.Reduce (at p/route["b"]/fan)
		`, Config{}},
		{"at the end of what is rescued", Seq("p", read, Rescue("r", each, first("heal", draftType)), readingLeaf("after", reportType, dag.All(draftType))), `
			[fanout-not-reduced] each: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/r/each)
		`, Config{}},
		{"at the end of a heal", Seq("p", read, Rescue("r", first("body", draftType), each), readingLeaf("after", reportType, dag.All(draftType))), `
			[fanout-not-reduced] each: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/r/each)
		`, Config{}},
		{"before a rescue", Seq("p", read, each, Rescue("r", readingLeaf("body", reportType, dag.All(draftType)), first("heal", reportType))), `
			[fanout-not-reduced] each: its lanes reach "body" without a reducer between: follow it with stone.Reduce (at p/each)
		`, Config{}},
		{"at the end of a lane", Seq("p", read, Parallel("outer", each, first("b", draftType)), sum), `
			[fanout-not-reduced] each: its lanes reach the fan-out around it without a reducer between: follow it with stone.Reduce (at p/outer/each)
		`, Config{}},
		{"at the end of the lanes of a map", Seq("p", read, overTickets("outer", Seq("lane", fan)), sum), `
			[fanout-not-reduced] fan: its lanes reach the fan-out around it without a reducer between: follow it with stone.Reduce (at p/outer/lane/fan)
		`, Config{}},
		{"inside a nested sequence", Seq("p", read, Seq("one", Seq("two", each)), Seq("three", after)), `
			[fanout-not-reduced] each: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/one/two/each)
			warning [unused-produce] lane: nothing reads "draft", and it is not the result: remove it, or read it where it is needed (at p/one/two/each/lane)
		`, Config{}},
		{"before a scoped", Seq("p", read, each, scopedOver("s", Walk{}.InOrder(sum))), `
			[fanout-not-reduced] each: its lanes reach "s" without a reducer between: follow it with stone.Reduce (at p/each)
		`, Config{}},
		{"in a scoped", Seq("p", read, scopedOver("s", Walk{}.InOrder(each, first("after", reportType)))), `
			[fanout-not-reduced] each: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/s/each)
			warning [unused-produce] lane: nothing reads "draft", and it is not the result: remove it, or read it where it is needed (at p/s/each/lane)
		`, Config{}},
		{"lanes of a scoped", Seq("p", scopedOver("s", Walk{}.Lanes(first("a", draftType), first("b", draftType))), readingLeaf("after", reportType, dag.All(draftType))), `
			[fanout-not-reduced] s: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/s)
		`, Config{}},
		{"at the end of a round of a scoped", Seq("p", read, scopedOver("s", Walk{}.Repeat(from("x", ticketType, reviewType), each)), sum), `
			warning [unused-produce] x: nothing reads "review", and it is not the result: remove it, or read it where it is needed (at p/s/x)
			[fanout-not-reduced] each: its lanes reach "s" at the end of a round without a reducer between: follow it with stone.Reduce (at p/s/each)
		`, Config{}},
		{"perhaps reduced", Seq("p", read, scopedOver("s", Walk{}.InOrder(each).Perhaps(sum)), after), `
			[fanout-not-reduced] each: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/s/each)
		`, Config{}},
		{"twice over", Seq("p", read, each, after, fan), `
			[fanout-not-reduced] each: its lanes reach "after" without a reducer between: follow it with stone.Reduce (at p/each)
			warning [unused-produce] after: nothing reads "report", and it is not the result: remove it, or read it where it is needed (at p/after)
			[fanout-not-reduced] fan: its lanes reach the result of the pipeline without a reducer between: follow it with stone.Reduce (at p/fan)
		`, Config{}},
	})
}

func TestValidateLanes(t *testing.T) {
	read := first("read", ticketType)
	both := []Ashlar{first("a", draftType), first("b", reviewType)}
	end := func(queries ...dag.Querier) Ashlar { return Reduce(readingLeaf("end", reportType, queries...)) }
	checkPrograms(t, []program{
		{"every lane produces it", Seq("p", Parallel("fan", first("a", draftType), first("b", draftType)), end(dag.All(draftType))), ``, Config{}},
		{"some lanes produce it", Seq("p", Parallel("fan", Parts(both)...), end(dag.All(draftType), dag.All(reviewType))), `
			warning [maybe-unavailable] end: end reads "draft", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
			warning [maybe-unavailable] end: end reads "review", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
		`, Config{}},
		{"some lanes produce it, all survive", Seq("p", Parallel("fan", Parts(both, AllLanes())...), end(dag.All(draftType), dag.All(reviewType))), ``, Config{}},
		{"some lanes produce it, a quorum has one", Seq("p", Parallel("fan", Parts(append(both, first("c", draftType)), Quorum(2))...), end(dag.All(draftType), dag.All(reviewType))), `
			warning [maybe-unavailable] end: end reads "review", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
		`, Config{}},
		{"a lane does not see its sibling", Seq("p", Parallel("fan", first("a", draftType), from("b", draftType, reviewType)), end(dag.All(draftType), dag.All(reviewType))), `
			[missing-producer] b: b reads "draft", but no earlier step produces it: p/fan/a does, but not before it (at p/fan/b)
			warning [maybe-unavailable] end: end reads "draft", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
			warning [maybe-unavailable] end: end reads "review", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
		`, Config{}},
		{"a lane sees what was before", Seq("p", read, Parallel("fan", from("a", ticketType, draftType)), end(dag.All(draftType), ticketType)), ``, Config{}},
		{"a lane type is read as one", Seq("p", Parallel("fan", first("a", draftType)), end(draftType)), `
			[lane-type-read-as-one] end: end reads "draft", which only the lanes of a fan-out before it produce: read it with dag.Lanes in the Reduce that closes the fan-out (at p/end)
		`, Config{}},
		{"a lane type is read as one, optional", Seq("p", Parallel("fan", first("a", draftType)), end(dag.Maybe(draftType))), `
			[lane-type-read-as-one] end: end reads "draft", which only the lanes of a fan-out before it produce: read it with dag.Lanes in the Reduce that closes the fan-out (at p/end)
		`, Config{}},
		{"a lane type is read as one, later", Seq("p", Parallel("fan", first("a", draftType)), end(dag.All(draftType)), from("late", draftType, reviewType)), `
			warning [unused-produce] end: nothing reads "report", and it is not the result: remove it, or read it where it is needed (at p/end)
			[lane-type-read-as-one] late: late reads "draft", which only the lanes of a fan-out before it produce: read it with dag.Lanes in the Reduce that closes the fan-out (at p/late)
		`, Config{}},
		{"a lane type is read since", Seq("p", read, Parallel("fan", first("a", draftType)), end(dag.Since(draftType, ticketType))), `
			[lane-type-read-as-one] end: end reads "draft", which only the lanes of a fan-out before it produce: read it with dag.Lanes in the Reduce that closes the fan-out (at p/end)
		`, Config{}},
		{"items are lane types", Seq("p", read, overTickets("each", from("lane", itemType, draftType)), end(dag.All(draftType), itemType)), `
			[lane-type-read-as-one] end: end reads "item", which only the lanes of a fan-out before it produce: read it with dag.Lanes in the Reduce that closes the fan-out (at p/end)
		`, Config{}},
		{"all items, and all results", Seq("p", read, overTickets("each", from("lane", itemType, draftType)), end(dag.All(draftType), dag.All(itemType))), `
			[mixed-lanes] end: it reads "draft" and "item" of the lanes of p/each as two lists, which need not pair: read the lanes with dag.Lanes2, or the history with dag.History (at p/end)
		`, Config{}},
		{"all items, and all results, in two steps of a Reduce", Seq("p", read, overTickets("each", from("lane", itemType, draftType)), Reduce(Seq("both", readingLeaf("one", reviewType, dag.All(draftType)), readingLeaf("two", reportType, dag.All(itemType), reviewType)))), `
			[mixed-lanes] two: it reads "draft" and "item" of the lanes of p/each as two lists, which need not pair: read the lanes with dag.Lanes2, or the history with dag.History (at p/both/two)
		`, Config{}},
		{"the history of items and results", Seq("p", read, overTickets("each", from("lane", itemType, draftType)), end(dag.History(draftType), dag.History(itemType))), ``, Config{}},
		{"rows", Seq("p", read, overTickets("each", from("lane", itemType, draftType)), end(dag.Lanes2(itemType, draftType))), ``, Config{}},
		{"rows of lanes of which some make it", Seq("p", Parallel("fan", Parts(both, AllLanes())...), end(dag.Lanes(draftType))), `
			warning [unused-produce] b: nothing reads "review", and it is not the result: remove it, or read it where it is needed (at p/fan/b)
			[missing-producer] end: end reads "draft" of each lane, but lane "b" of p/fan does not produce it: produce it in every lane, or read the existing nodes with dag.All (at p/end)
		`, Config{}},
		{"rows of lanes that make it in a branch", Seq("p", read, overTickets("each", Match("m", On(itemType, textOf), Case("a", first("a", draftType)), Case("b", first("b", reviewType)))), end(dag.Lanes2(itemType, draftType), dag.Maybe(dag.All(reviewType)))), `
			warning [maybe-unavailable] end: end reads "draft" of each lane, but a lane does not produce it on every path: produce it on all of them (at p/end)
		`, Config{}},
		{"rows of what lanes within lanes make", Seq("p", read, overTickets("each", Seq("lane", Parallel("inner", first("a", draftType)), gather("sum", draftType, reviewType))), end(dag.Lanes2(reviewType, draftType))), `
			[missing-producer] end: end reads "draft" of each lane, but lane "lane" of p/each does not produce it: produce it in every lane, or read the existing nodes with dag.All (at p/end)
		`, Config{}},
		{"rows outside of a Reduce", Seq("p", read, overTickets("each", from("lane", itemType, draftType)), gather("sum", draftType, reviewType), readingLeaf("end", reportType, dag.Lanes(draftType), reviewType)), `
			[lanes-outside-reduce] end: end reads "draft" of the lanes of a fan-out, but closes none: put it into the Reduce after the fan-out, or read the history with dag.All (at p/end)
		`, Config{}},
		{"rows of a fan-out on some ways", Seq("p", read, Match("m", On(ticketType, textOf), Case("a", overTickets("each", from("lane", itemType, draftType))), Case("b", first("b", draftType))), end(dag.Lanes(draftType))), `
			[lanes-outside-reduce] end: end reads "draft" of the lanes of a fan-out, but only some branches before it have a fan-out: close each fan-out within its branch (at p/end)
		`, Config{}},
		{"rows of one of two fan-outs", Seq("p", read, Match("m", On(ticketType, textOf), Case("a", overTickets("each", from("lane", itemType, draftType))), Case("b", Parallel("fan", first("b", draftType)))), end(dag.Lanes(draftType))), ``, Config{}},
		{"all of an earlier fan-out too", Seq("p", Parallel("one", first("a", draftType)), gather("sum", draftType, reviewType), Parallel("two", from("b", reviewType, draftType)), end(dag.All(draftType))), `
			[mixed-lanes] end: it reads every "draft", also those made before p/two: read those of its lanes with dag.Lanes, or the history with dag.History (at p/end)
		`, Config{}},
		{"rows after an earlier fan-out", Seq("p", Parallel("one", first("a", draftType)), gather("sum", draftType, reviewType), Parallel("two", from("b", reviewType, draftType)), end(dag.Lanes(draftType))), ``, Config{}},
		{"all of earlier rounds too", Seq("p", read, Loop("l", Seq("round", overTickets("each", from("lane", itemType, draftType)), end(dag.All(draftType))), Until(reportType, done), 2)), `
			[mixed-lanes] end: it reads every "draft", also of the rounds before: read those of this round with dag.Lanes, or the history with dag.History (at p/l/round/end)
		`, Config{}},
		{"rows of each round", Seq("p", read, Loop("l", Seq("round", overTickets("each", from("lane", itemType, draftType)), end(dag.Lanes(draftType))), Until(reportType, done), 2)), ``, Config{}},
		{"all, in a loop within the Reduce", Seq("p", read, overTickets("each", from("lane", itemType, draftType)), Reduce(Loop("l", readingLeaf("end", reportType, dag.All(draftType)), Until(reportType, done), 2))), ``, Config{}},
		{"items that are not read", Seq("p", read, overTickets("each", first("sample", draftType)), end(dag.All(draftType))), ``, Config{}},
		{"one before, more in lanes", Seq("p", first("old", draftType), Parallel("fan", from("a", draftType, draftType)), end(draftType, dag.All(draftType))), `
			[mixed-lanes] end: it reads every "draft", also those made before p/fan: read those of its lanes with dag.Lanes, or the history with dag.History (at p/end)
		`, Config{}},
		{"one before, more in lanes, as history", Seq("p", first("old", draftType), Parallel("fan", from("a", draftType, draftType)), end(draftType, dag.History(draftType))), ``, Config{}},
		{"the latest node of lanes", Seq("p", Parallel("fan", first("a", draftType)), end(dag.Latest)), `
			[lane-type-read-as-one] end: end reads the latest node, which belongs to whichever lane is the last one: read the nodes of the lanes with dag.Lanes (at p/end)
		`, Config{}},
		{"the latest node of lanes in some branch", Seq("p", first("read", ticketType), Match("m", On(ticketType, textOf), Case("a", first("a", draftType)), Case("b", Parallel("fan", first("b", draftType)))), end(dag.Latest)), `
			[lane-type-read-as-one] end: end reads the latest node, which belongs to whichever lane is the last one: read the nodes of the lanes with dag.Lanes (at p/end)
		`, Config{}},
		{"a lens on lanes", Seq("p", Parallel("fan", first("a", draftType)), Reduce(Match("route", Lens("text"), Case("a", first("end", reportType))))), `
			[lane-type-read-as-one] route: route reads the latest node, which belongs to whichever lane is the last one: read the nodes of the lanes with dag.Lanes (at p/route)
		`, Config{}},
		{"more survivors than lanes", Seq("p", Parallel("fan", both[0], Quorum(2)), end(dag.All(draftType))), `
			[bad-option] fan: Quorum(2): want at most 1, the number of lanes (at p/fan)
		`, Config{}},
	})
}

func TestValidateWalks(t *testing.T) {
	a, b := first("a", draftType), first("b", reviewType)
	end := readingLeaf("end", reportType, draftType, reviewType)
	rule := func(walk Walk) Ashlar { return Seq("p", scopedOver("s", walk), end) }
	result := func(out dag.Type[noteDoc], walk func(a, b Ashlar) Walk) Ashlar {
		return Scoped("s", walk(first("a", draftType), from("b", draftType, out)), noScope, out)
	}
	checkPrograms(t, []program{
		{"in order", Seq("p", scopedOver("s", Walk{}.InOrder(a, b)), end), ``, Config{}},
		{"in order, the wrong one", Seq("p", scopedOver("s", Walk{}.InOrder(from("x", draftType, reviewType), a)), end), `
			[missing-producer] x: x reads "draft", but no earlier step produces it: p/s/a does, but not before it (at p/s/x)
		`, Config{}},
		{"one of", rule(Walk{}.OneOf(a, b)), `
			warning [maybe-unavailable] end: end reads "draft", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
			warning [maybe-unavailable] end: end reads "review", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
		`, Config{}},
		{"perhaps", rule(Walk{}.InOrder(a).Perhaps(b)), `
			warning [maybe-unavailable] end: end reads "review", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
		`, Config{}},
		{"repeat", rule(Walk{}.Repeat(a, b)), ``, Config{}},
		{"repeat: a round reads the round before", Seq("p", scopedOver("s", Walk{}.Repeat(from("x", draftType, reviewType), a)), end), `
			warning [maybe-unavailable] x: x reads "draft", which only an earlier round can produce: produce it before the loop, or read it with dag.Maybe (at p/s/x)
		`, Config{}},
		{"lanes", Seq("p", scopedOver("s", Walk{}.Lanes(a, b)), Reduce(readingLeaf("end", reportType, dag.All(draftType), reviewType))), `
			[lane-type-read-as-one] end: end reads "review", which only the lanes of a fan-out before it produce: read it with dag.Lanes in the Reduce that closes the fan-out (at p/end)
		`, Config{}},
		{"the body reads before its children", result(reportType, func(a, b Ashlar) Walk { return Walk{}.InOrder(a, b) }), `
			[missing-producer] s: s reads "report", but no earlier step produces it: s/b does, but not before it
		`, Config{}},
		{"the body reads after its children", result(reportType, func(a, b Ashlar) Walk { return Walk{}.InOrder(a, b).Reads() }), ``, Config{}},
		{"the body appends a node", rule(Walk{}.InOrder(a).Writes(reviewType)), ``, Config{}},
		{"the body appends a node for a child", Seq("p", scopedOver("s", Walk{}.Writes(draftType).InOrder(from("x", draftType, reviewType))), end), ``, Config{}},
		{"the body appends a node that its child needs before", Seq("p", scopedOver("s", Walk{}.InOrder(from("x", draftType, reviewType)).Writes(draftType)), end), `
			[missing-producer] x: x reads "draft", but no earlier step produces it: p/s does, but not before it (at p/s/x)
		`, Config{}},
		{"nothing reads what the body appends", Seq("p", scopedOver("s", Walk{}.InOrder(a, b).Writes(itemType)), end), `
			warning [unused-produce] s: nothing reads "item", and it is not the result: remove it, or read it where it is needed (at p/s)
		`, Config{}},
		{"the body appends no type", rule(Walk{}.InOrder(a, b).Writes(nil)), `
			[bad-type] s: it does not declare what it produces: give it a dag.Type made by dag.NewType with a name (at p/s)
		`, Config{}},
		{"the body appends after lanes", Seq("p", scopedOver("s", Walk{}.Lanes(a).Writes(reviewType)), Reduce(readingLeaf("end", reportType, dag.All(draftType), reviewType))), `
			[fanout-not-reduced] s: its lanes reach "s" without a reducer between: follow it with stone.Reduce (at p/s)
			warning [nothing-to-reduce] end: no fan-out comes before it: add one, or use its body without Reduce (at p/end)
		`, Config{}},
		{"a lens on what the body appends", Seq("p", scopedOver("s", Walk{}.Writes(draftType)), Match("m", Lens("txt"), Case("x", first("end", reportType)))), `
			[invalid-lens] m: lens path ["txt"] is not in the schema of the latest node, "draft": the fields there are text; did you mean "text"? (at p/m)
		`, Config{}},
		{"a child twice", Seq("p", scopedOver("s", Walk{}.InOrder(a, b).InOrder(a, b)), end), ``, Config{}},
		{"nothing said of nothing", rule(Walk{}.InOrder().OneOf().Perhaps().Repeat().Lanes().InOrder(a, b)), ``, Config{}},
		{"a leaf sees what comes before it and its draft", Seq("p", first("read", ticketType), from("write", ticketType, draftType).with(Children(Walk{}.InOrder(readingLeaf("judge", reviewType, ticketType, draftType))))), ``, Config{}},
		{"a leaf's children see a draft of another type", Seq("p", first("read", ticketType), from("write", ticketType, draftType).with(Children(Walk{}.Writes(itemType).InOrder(from("judge", itemType, reviewType))))), ``, Config{}},
		{"a leaf's children do not see its result", Seq("p", first("read", ticketType), from("write", ticketType, draftType).with(Children(Walk{}.Writes(itemType).InOrder(from("judge", draftType, reviewType))))), `
			[missing-producer] judge: judge reads "draft", but no earlier step produces it: p/write does, but not before it (at p/write/judge)
		`, Config{}},
		{"of a leaf's children nothing stays", Seq("p", readingLeaf("write", draftType).with(Children(Walk{}.InOrder(readingLeaf("judge", reviewType, ticketType)))), from("end", reviewType, reportType)), `
			warning [unused-produce] write: nothing reads "draft", and it is not the result: remove it, or read it where it is needed (at p/write)
			[missing-producer] judge: judge reads "ticket", but no earlier step produces it: add one that does, or give it with the input (at p/write/judge)
			[missing-producer] end: end reads "review", but no earlier step produces it: p/write/judge does, but not before it (at p/end)
		`, Config{}},
		{"a leaf's child is a fan-out", Seq("p", first("read", ticketType), from("write", ticketType, draftType).with(Children(Walk{}.InOrder(overTickets("each", from("lane", itemType, reviewType)))))), `
			[fanout-not-reduced] each: its lanes reach the body of "write" without a reducer between: follow it with stone.Reduce (at p/write/each)
		`, Config{}},
	})
}

// with is a with an option that it was not made with.
func (a Ashlar) with(o LeafOption) Ashlar { return Ashlar{with(a.s.clone(), []LeafOption{o})} }

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
