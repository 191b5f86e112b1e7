package stone

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
)

// The programs of the tables are made of leaves over these types.
type (
	noteDoc struct {
		Text string `json:"text"`
	}
	triageDoc struct {
		Area string   `json:"area" enum:"bug,billing"`
		Deep innerDoc `json:"deep"`
	}
	innerDoc struct {
		Count int `json:"count"`
	}
	countDoc struct {
		Text int `json:"text"` // a noteDoc has a string there
	}
	color string
)

func (color) Enum() []any { return []any{"red", "green"} }

var (
	ticketType  = dag.NewType[noteDoc]("ticket")
	draftType   = dag.NewType[noteDoc]("draft")
	reviewType  = dag.NewType[noteDoc]("review")
	triageType  = dag.NewType[triageDoc]("triage")
	reportType  = dag.NewType[noteDoc]("report")
	itemType    = dag.NewType[noteDoc]("item")
	countTicket = dag.NewType[countDoc]("ticket")
)

// first is a leaf that reads nothing.
func first[T any](name string, out dag.Type[T], opts ...LeafOption) Ashlar {
	return Func0(name, out, func(context.Context) (v T, err error) { return }, opts...)
}

// from is a leaf that reads the nearest node of a type.
func from[A, T any](name string, in dag.Type[A], out dag.Type[T]) Ashlar {
	return Func(name, in, out, func(context.Context, A) (v T, err error) { return })
}

// gather is a reducer that reads all nodes of a type.
func gather[A, T any](name string, in dag.Type[A], out dag.Type[T]) Ashlar {
	return Reduce(Func(name, dag.History(in), out, func(context.Context, []A) (v T, err error) { return }))
}

// readingLeaf is a leaf that reads what the queries name.
func readingLeaf[T any](name string, out dag.Type[T], queries ...dag.Querier) Ashlar {
	return New(name, out, func(context.Context, dag.DAG) (v T, err error) { return }, Queries(queries...))
}

func notesOf(noteDoc) []noteDoc { return nil }
func textOf(n noteDoc) string   { return n.Text }
func done(noteDoc) bool         { return true }

func nothingOf(context.Context, []noteDoc) (v noteDoc, err error) { return }
func keyOf(dag.DAG) (any, error)                                  { return "x", nil }
func noScope(_ context.Context, d dag.DAG) (dag.DAG, error)       { return d, nil }

// overTickets fans a body out over notes, in lanes of items.
func overTickets(name string, body Ashlar, opts ...FanOption) Ashlar {
	return Map(name, dag.Derive(ticketType, notesOf), itemType, body, opts...)
}

func scopedOver(name string, walk Walk) Ashlar { return Scoped(name, walk, noScope) }

// A program of a table and its findings, one per line.
type program struct {
	name string
	p    Ashlar
	want string
	cfg  Config
}

// lossy is the finding of fan-outs that do not declare how many lanes must survive.
const lossy = "lanes-may-be-lost"

func checkPrograms(t *testing.T, programs []program) {
	for _, tt := range programs {
		t.Run(tt.name, func(t *testing.T) {
			var got strings.Builder
			given := tt.cfg.Given()
			given.Unattended = false // which is what TestValidateGiven is about
			for _, f := range Validate(tt.p, given) {
				if f.Type == lossy && !strings.Contains(tt.want, lossy) {
					continue // most tables are about something else
				}
				if f.Warning {
					got.WriteString("warning ")
				}
				got.WriteString(f.String() + "\n")
			}
			want := strings.TrimPrefix(strings.ReplaceAll(tt.want, "\t", ""), "\n")
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func mustAppend[T any](d dag.DAG, typ dag.Type[T], v T) dag.DAG {
	d, err := typ.Append(d, v)
	if err != nil {
		panic(err)
	}
	return d
}

func TestValidateQueries(t *testing.T) {
	checkPrograms(t, []program{
		{"nothing wrong", Seq("p", first("read", ticketType), from("write", ticketType, draftType)), ``, Config{}},
		{"nothing produces it", Seq("p", from("write", ticketType, draftType)), `
			[missing-producer] write: write reads "ticket", but no earlier step produces it: add one that does, or give it with the input (at p/write)
		`, Config{}},
		{"a typo", Seq("p", first("read", ticketType), readingLeaf("write", draftType, dag.NewType[noteDoc]("tikcet"), ticketType)), `
			[missing-producer] write: write reads "tikcet", but no earlier step produces it: add one that does, or give it with the input; did you mean "ticket"? (at p/write)
		`, Config{}},
		{"another case", Seq("p", first("read", ticketType), readingLeaf("write", draftType, dag.NewType[noteDoc]("Ticket"), ticketType)), `
			[missing-producer] write: write reads "Ticket", but no earlier step produces it: add one that does, or give it with the input; did you mean "ticket"? (at p/write)
		`, Config{}},
		{"nothing like it", Seq("p", first("read", ticketType), readingLeaf("write", draftType, reviewType, ticketType)), `
			[missing-producer] write: write reads "review", but no earlier step produces it: add one that does, or give it with the input (at p/write)
		`, Config{}},
		{"produced later only", Seq("p", from("write", ticketType, draftType), first("read", ticketType), from("end", draftType, reportType)), `
			[missing-producer] write: write reads "ticket", but no earlier step produces it: p/read does, but not before it (at p/write)
		`, Config{}},
		{"it is in the input", Seq("p", from("write", ticketType, draftType)), ``, Config{Input: mustAppend(dag.DAG{}, ticketType, noteDoc{})}},
		{"all of a type that nothing produces", Seq("p", readingLeaf("write", draftType, dag.All(ticketType))), `
			[missing-producer] write: write reads "ticket", but no earlier step produces it: add one that does, or give it with the input (at p/write)
		`, Config{}},
		{"since a type that nothing produces", Seq("p", first("read", ticketType), readingLeaf("write", draftType, dag.Since(ticketType, reviewType))), `
			[missing-producer] write: write reads "review", but no earlier step produces it: add one that does, or give it with the input (at p/write)
		`, Config{}},
		{"optional", Seq("p", readingLeaf("write", draftType, dag.Maybe(ticketType), dag.Maybe(dag.All(ticketType)), dag.Maybe(dag.Since(ticketType, reviewType)))), ``, Config{}},
		{"failures of lanes need no producer", Seq("p", readingLeaf("write", draftType, dag.All(dag.Failure))), ``, Config{}},
		{"the nearest failure does", Seq("p", readingLeaf("write", draftType, dag.Failure)), `
			[missing-producer] write: write reads "failure", but no earlier step produces it: add one that does, or give it with the input (at p/write)
		`, Config{}},
		{"the latest node of nothing", Seq("p", readingLeaf("write", draftType, dag.Latest)), `
			[missing-producer] write: write needs the latest node, but nothing comes before it: add an earlier step that produces it (at p/write)
		`, Config{}},
		{"the latest node of nothing, optional", Seq("p", readingLeaf("write", draftType, dag.Maybe(dag.Latest))), ``, Config{}},
		{"the latest node perhaps of nothing", Seq("p", scopedOver("s", Walk{}.Perhaps(first("read", ticketType))), readingLeaf("write", draftType, dag.Latest)), `
			warning [maybe-unavailable] write: write needs the latest node, but perhaps nothing comes before it: add an earlier step that always runs (at p/write)
		`, Config{}},
		{"everything reads all there is", Seq("p", first("read", ticketType), readingLeaf("write", draftType, dag.Everything)), ``, Config{}},
		{"everything, optional", Seq("p", first("read", ticketType), readingLeaf("write", draftType, dag.Maybe(dag.Everything))), ``, Config{}},
		{"nothing reads it", Seq("p", first("read", ticketType), first("write", draftType)), `
			warning [unused-produce] read: nothing reads "ticket", and it is not the result: remove it, or read it where it is needed (at p/read)
		`, Config{}},
		{"it is there for its effect", Seq("p", first("send", ticketType, Effects(effect.Ask, "mail/send")), first("write", draftType)), ``, Config{}},
		{"its effect changes nothing", Seq("p", first("read", ticketType, Effects(effect.FSRead)), first("write", draftType)), `
			warning [unused-produce] read: nothing reads "ticket", and it is not the result: remove it, or read it where it is needed (at p/read)
		`, Config{}},
		{"the latest node reads it", Seq("p", first("read", ticketType), readingLeaf("write", draftType, dag.Latest)), ``, Config{}},
		{"every branch is the result", Seq("p", first("read", ticketType), Match("m", On(ticketType, textOf), Case("a", first("a", draftType)), Case("b", first("b", reportType)))), ``, Config{}},
	})
}

func TestValidateBranches(t *testing.T) {
	route := func(branches ...Branch) Ashlar { return Match("route", On(ticketType, textOf), branches...) }
	some := route(Case("a", first("a", draftType)), Case("b", first("b", reviewType)))
	checkPrograms(t, []program{
		{"all branches produce it", Seq("p", first("read", ticketType), route(Case("a", first("a", draftType)), Case("b", first("b", draftType))), from("end", draftType, reportType)), ``, Config{}},
		{"some branches produce it", Seq("p", first("read", ticketType), some, readingLeaf("end", reportType, draftType, dag.All(reviewType))), `
			warning [maybe-unavailable] end: end reads "draft", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
			warning [maybe-unavailable] end: end reads "review", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
		`, Config{}},
		{"some branches produce it, optional", Seq("p", first("read", ticketType), some, readingLeaf("end", reportType, dag.Maybe(draftType), dag.Maybe(reviewType))), ``, Config{}},
		{"a branch does not see its sibling", Seq("p", first("read", ticketType), route(Case("a", first("a", draftType)), Case("b", from("b", draftType, draftType)))), `
			[missing-producer] b: b reads "draft", but no earlier step produces it: p/route["a"]/a does, but not before it (at p/route["b"]/b)
		`, Config{}},
		{"it was there before", Seq("p", first("read", ticketType), first("old", draftType), some, readingLeaf("end", reportType, draftType, dag.Maybe(reviewType))), ``, Config{}},
		{"rescue: both ways", Seq("p", Rescue("r", first("body", draftType), first("heal", draftType)), from("end", draftType, reportType)), ``, Config{}},
		{"rescue: one way", Seq("p", Rescue("r", first("body", draftType), first("heal", reviewType)), readingLeaf("end", reportType, draftType, reviewType, dag.Failure)), `
			warning [maybe-unavailable] end: end reads "draft", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
			warning [maybe-unavailable] end: end reads "review", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
			warning [maybe-unavailable] end: end reads "failure", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/end)
		`, Config{}},
		{"heal reads the failure", Seq("p", Rescue("r", first("body", draftType), from("heal", dag.Failure, draftType))), ``, Config{}},
		{"heal reads what body may have done", Seq("p", Rescue("r", Seq("body", first("one", ticketType), from("two", ticketType, draftType)), from("heal", ticketType, draftType))), `
			warning [maybe-unavailable] heal: heal reads "ticket", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/r/heal)
		`, Config{}},
		{"heal reads what body did in lanes", Seq("p", first("read", ticketType), Rescue("r", Seq("body", overTickets("each", from("lane", itemType, reviewType)), gather("sum", reviewType, draftType)), readingLeaf("heal", draftType, dag.All(reviewType), reviewType))), `
			warning [maybe-unavailable] heal: heal reads "review", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/r/heal)
			[lane-type-read-as-one] heal: heal reads "review", which only the lanes of a fan-out before it produce: read it with dag.Lanes in the Reduce that closes the fan-out (at p/r/heal)
		`, Config{}},
	})
}

func TestValidateLoops(t *testing.T) {
	loop := func(body Ashlar, max int) Ashlar { return Loop("l", body, Until(draftType, done), max) }
	draft := Seq("try", readingLeaf("draft", draftType, reviewType), from("review", draftType, reviewType))
	checkPrograms(t, []program{
		{"a round reads the round before", Seq("p", loop(draft, 3)), `
			warning [maybe-unavailable] draft: draft reads "review", which only an earlier round can produce: produce it before the loop, or read it with dag.Maybe (at p/l/try/draft)
		`, Config{}},
		{"a round reads the round before, optional", Seq("p", loop(Seq("try", readingLeaf("draft", draftType, dag.Maybe(reviewType)), from("review", draftType, reviewType)), 3)), ``, Config{}},
		{"there is no round before", Seq("p", loop(draft, 1)), `
			[missing-producer] draft: draft reads "review", but no earlier step produces it: p/l/try/review does, but not before it (at p/l/try/draft)
		`, Config{}},
		{"the outer loop has rounds too", Seq("p", Loop("outer", Seq("o", loop(readingLeaf("draft", draftType, reviewType), 1), from("review", draftType, reviewType)), Until(reviewType, done), 2)), `
			warning [maybe-unavailable] draft: draft reads "review", which only an earlier round can produce: produce it before the loop, or read it with dag.Maybe (at p/outer/o/l/draft)
		`, Config{}},
		{"lanes of the round before", Seq("p", first("read", ticketType), loop(Seq("try", readingLeaf("draft", draftType, reviewType), overTickets("each", from("lane", itemType, reviewType)), gather("sum", reviewType, draftType)), 3)), `
			[lane-type-read-as-one] draft: draft reads "review", which only the lanes of a fan-out before it produce: read it with dag.Lanes in the Reduce that closes the fan-out (at p/l/try/draft)
		`, Config{}},
		{"the condition reads a type without a producer", Seq("p", Loop("l", first("read", ticketType), Until(draftType, done), 2), from("end", ticketType, reportType)), `
			[missing-producer] l: l reads "draft", but no earlier step produces it: add one that does, or give it with the input (at p/l)
		`, Config{}},
		{"the condition reads what the body may produce", Seq("p", first("read", ticketType), Loop("l", Rescue("r", from("body", ticketType, draftType), first("heal", reportType)), Until(draftType, done), 2)), `
			warning [maybe-unavailable] l: l reads "draft", which not every branch before it produces: produce it in all of them, or read it with dag.Maybe (at p/l)
		`, Config{}},
		{"the round before writes what the reader cannot read", Seq("p", loop(Seq("try", readingLeaf("draft", draftType, dag.Maybe(countTicket)), from("review", draftType, ticketType)), 3)), `
			[schema-mismatch] draft: draft cannot read the "ticket" that p/l/try/review writes: text: want integer, the producer writes string (at p/l/try/draft)
		`, Config{}},
		{"the lens meets the round before", Seq("p", first("read", triageType), loop(Match("m", Lens("area"), Case("bug", first("bug", draftType)), Case("billing", first("billing", draftType))), 3)), `
			[invalid-lens] m: lens path ["area"] is not in the schema of the latest node, "draft": the fields there are text (at p/l/m)
		`, Config{}},
	})
}

func TestValidateMatches(t *testing.T) {
	triage := first("triage", triageType)
	bug := first("bug", reportType)
	on := func(e Extractor, branches ...Branch) Ashlar { return Seq("p", triage, Match("route", e, branches...)) }
	paint := func(triageDoc) color { return "red" }
	checkPrograms(t, []program{
		{"a lens that fits", on(Lens("area"), Case("bug", bug), Case("billing", first("b", reportType))), ``, Config{}},
		{"a lens deeper", on(Lens("deep", "count"), Case(3, bug)), ``, Config{}},
		{"the whole content", on(Lens(), Case(map[string]any{"area": "bug", "deep": map[string]any{"count": 1}}, bug)), ``, Config{}},
		{"a field that is not there", on(Lens("aera"), Case("bug", bug)), `
			[invalid-lens] route: lens path ["aera"] is not in the schema of the latest node, "triage": the fields there are area, deep; did you mean "area"? (at p/route)
		`, Config{}},
		{"a field that is not there, deeper", on(Lens("deep", "cuont"), Case(3, bug)), `
			[invalid-lens] route: lens path ["deep" "cuont"] is not in the schema of the latest node, "triage": the fields there are count; did you mean "count"? (at p/route)
		`, Config{}},
		{"below a field that is no object", on(Lens("area", "name"), Case("x", bug)), `
			[invalid-lens] route: lens path ["area" "name"] is not in the schema of the latest node, "triage": the value there has no fields (at p/route)
		`, Config{}},
		{"nothing before the lens", Seq("p", Match("route", Lens("area"), Case("bug", bug))), `
			[missing-producer] route: route needs the latest node, but nothing comes before it: add an earlier step that produces it (at p/route)
		`, Config{}},
		{"nothing before the extractor", Seq("p", Match("route", On(dag.ReaderFunc(keyOf), func(v any) any { return v }), Case("bug", bug))), `
			[missing-producer] route: route needs a node to match on, but nothing comes before it: add an earlier step that produces it (at p/route)
		`, Config{}},
		{"nothing of the type before", Seq("p", Match("route", On(triageType, func(triageDoc) string { return "" }), Case("bug", bug))), `
			[missing-producer] route: route reads "triage", but no earlier step produces it: add one that does, or give it with the input (at p/route)
		`, Config{}},
		{"an input before the lens", Match("route", Lens("area"), Case("bug", bug)), ``, Config{Input: mustAppend(dag.DAG{}, ticketType, noteDoc{})}},
		{"behind branches of one type", Seq("p", triage, Match("m", Lens("area"), Case("bug", first("a", ticketType)), Case("billing", first("b", ticketType))), Match("route", Lens("txet"), Case("x", bug))), `
			[invalid-lens] route: lens path ["txet"] is not in the schema of the latest node, "ticket": the fields there are text; did you mean "text"? (at p/route)
		`, Config{}},
		{"behind branches of several unknown types", Seq("p", triage, Match("m", Lens("area"), Case("bug", first("a", ticketType)), Case("billing", triage)), Match("route", Lens("txet"), Case("x", bug))), ``, Config{}},
		{"a lane begins with its marker", Seq("p", triage, Parallel("fan", Match("route", Lens("area"), Case("bug", first("bug", draftType)))), gather("sum", draftType, reportType)), `
			warning [unused-produce] triage: nothing reads "triage", and it is not the result: remove it, or read it where it is needed (at p/triage)
			[invalid-lens] route: lens path ["area"] is not in the schema of the latest node, "stone/lane": it is the marker at the beginning of a lane, use On to look at an earlier node (at p/fan/route)
		`, Config{}},
		{"a lane begins with its item", Seq("p", first("read", ticketType), overTickets("each", Match("route", Lens("area"), Case("bug", first("bug", draftType)))), gather("sum", draftType, reportType)), `
			[invalid-lens] route: lens path ["area"] is not in the schema of the latest node, "item": the fields there are text (at p/each/route)
		`, Config{}},
		{"enum of a schema tag", on(Lens("area"), Case("bug", bug), Case("biling", first("b", reportType))), `
			[unreachable-branch] route: no value selects the branch "biling": the values are "bug", "billing"; did you mean "billing"? (at p/route)
			[missing-branch] route: no branch for "billing": add a Case for each of the values, "bug", "billing" (at p/route)
		`, Config{}},
		{"enum of the key type", on(On(triageType, paint), Case("red", bug), Case("blue", first("blue", reportType)), Case(color("green"), first("green", reportType))), `
			[unreachable-branch] route: no value selects the branch "blue": the values are "red", "green" (at p/route)
		`, Config{}},
		{"enum of an Enum method", Seq("p", first("paint", dag.NewType[color]("color")), Match("route", Lens(), Case("red", bug), Case(7, first("blue", reportType)))), `
			[unreachable-branch] route: no value selects the branch 7: the values are "red", "green" (at p/route)
			[missing-branch] route: no branch for "green": add a Case for each of the values, "red", "green" (at p/route)
		`, Config{}},
		{"no enum, nothing said", on(On(triageType, func(triageDoc) string { return "" }), Case("whatever", bug)), ``, Config{}},
	})
}

// The types of the input are there from the start, with their schemas.
func TestValidateGiven(t *testing.T) {
	read := from("answer", ticketType, draftType)
	other := dag.NewType[struct {
		Count int `json:"count"`
	}]("ticket")
	for _, tt := range []struct {
		name  string
		p     Ashlar
		given Given
		want  string
	}{
		{"nothing", read, Given{}, `[missing-producer] answer: answer reads "ticket", but no earlier step produces it: add one that does, or give it with the input` + "\n"},
		{"what it reads", read, Given{Input: []dag.AnyType{ticketType}}, ""},
		{"another schema", read, Given{Input: []dag.AnyType{other}}, `[schema-mismatch] answer: answer cannot read the "ticket" that the input has: text: required, but the producer never writes it` + "\n"},
		{"another schema is written", Seq("p", first("read", ticketType), read), Given{Input: []dag.AnyType{other}}, `[schema-mismatch] read: it produces "ticket", which the input has with another schema: give the type another name (at p/read)
[schema-mismatch] answer: answer cannot read the "ticket" that the input has: text: required, but the producer never writes it (at p/answer)
`},
		{"a lens", Seq("p", Match("m", Lens("txt"), Case("x", first("a", draftType)))), Given{Input: []dag.AnyType{ticketType}}, `[invalid-lens] m: lens path ["txt"] is not in the schema of the latest node, "ticket": the fields there are text; did you mean "text"? (at p/m)` + "\n"},
		{"nil and zero", first("a", draftType), Given{Input: []dag.AnyType{nil, dag.Type[int]{}}}, "[bad-type] a: type 1 of the input: nil: pass a dag.Type\n[bad-type] a: type 2 of the input: zero dag.Type: make types with dag.NewType\n"},
		{"a question", Ask("sure", ticketType, dag.NewType[Answer]("sure"), func(noteDoc) string { return "?" }), Given{Input: []dag.AnyType{ticketType}, Unattended: true}, `[no-frontend] sure: no one answers the question "sure": set Config.Frontend, or a journal in which it can wait` + "\n"},
		{"a question with a frontend", Ask("sure", ticketType, dag.NewType[Answer]("sure"), func(noteDoc) string { return "?" }), Given{Input: []dag.AnyType{ticketType}}, ""},
		{"an effect", first("a", draftType).with(Effects("net")), Given{Grant: []string{}}, `[effect-not-granted] a: it needs the effect "net", which the run does not grant: grant it, or remove this step` + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			for _, f := range Validate(tt.p, tt.given) {
				got += f.String() + "\n"
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

type flagDoc struct {
	Urgent bool    `json:"urgent"`
	Level  int     `json:"level"`
	Area   string  `json:"area" enum:"bug,billing,other"`
	Maybe  *string `json:"maybe" enum:"a,b"`
	Free   string  `json:"free"`
}

func TestValidateClosedLists(t *testing.T) {
	flags := dag.NewType[flagDoc]("flags")
	a, b := first("a", draftType), first("b", draftType)
	on := func(e Extractor, branches ...Branch) Ashlar {
		return Seq("p", first("flag", flags), Match("m", e, branches...))
	}
	urgent := On(flags, func(f flagDoc) bool { return f.Urgent })
	level := On(flags, func(f flagDoc) int { return f.Level })
	checkPrograms(t, []program{
		{"every value of a field", on(Lens("area"), Case("bug", a), Case("billing", b), Case("other", b)), ``, Config{}},
		{"a field, and two values without a branch", on(Lens("area"), Case("billing", a)), `
			[missing-branch] m: no branch for "bug", "other": add a Case for each of the values, "bug", "billing", "other" (at p/m)
		`, Config{}},
		{"a misspelled value", on(Lens("area"), Case("bug", a), Case("biling", a), Case("other", b)), `
			[unreachable-branch] m: no value selects the branch "biling": the values are "bug", "billing", "other"; did you mean "billing"? (at p/m)
			[missing-branch] m: no branch for "billing": add a Case for each of the values, "bug", "billing", "other" (at p/m)
		`, Config{}},
		{"both values of a bool", on(urgent, Case(true, a), Case(false, b)), ``, Config{}},
		{"one value of a bool", on(urgent, Case(true, a)), `
			[missing-branch] m: no branch for false: add a Case for each of the values, true, false (at p/m)
		`, Config{}},
		{"one value of a bool field", on(Lens("urgent"), Case(false, a)), `
			[missing-branch] m: no branch for true: add a Case for each of the values, true, false (at p/m)
		`, Config{}},
		{"a bool as a string", on(urgent, Case("true", a), Case(true, a), Case(false, b)), `
			[unreachable-branch] m: no value selects the branch "true": the values are true, false; write Case(true) (at p/m)
		`, Config{}},
		{"a list with null", on(Lens("maybe"), Case("a", a), Case("b", b)), `
			[missing-branch] m: no branch for null: add a Case for each of the values, "a", "b", null (at p/m)
		`, Config{}},
		{"a Case per value of a type with Enum", on(On(flags, func(flagDoc) color { return "red" }), Case("red", a)), `
			[missing-branch] m: no branch for "green": add a Case for each of the values, "red", "green" (at p/m)
		`, Config{}},
		{"a string on an integer", on(level, Case("1", a), Case(2, b)), `
			[unreachable-branch] m: no value selects the branch "1": want integer, got string "1"; write Case(1) (at p/m)
		`, Config{}},
		{"a string on an integer field", on(Lens("level"), Case("one", a), Case(2, b)), `
			[unreachable-branch] m: no value selects the branch "one": want integer, got string "one" (at p/m)
		`, Config{}},
		{"an integer on a string field", on(Lens("free"), Case(1, a)), `
			[unreachable-branch] m: no value selects the branch 1: want string, got integer 1 (at p/m)
		`, Config{}},
		{"an open list", on(Lens("free"), Case("anything", a)), ``, Config{}},
		{"a key of any type", on(On(flags, func(flagDoc) any { return 1 }), Case("x", a), Case(1, b)), ``, Config{}},
		{"a value unknown before the run", Seq("p", first("read", ticketType), Match("m", On(dag.ReaderFunc(keyOf, ticketType), func(v any) any { return v }), Case("x", a))), ``, Config{}},
		{"no branch at all", on(urgent), `
			[empty-composite] m: a match needs at least one Case (at p/m)
		`, Config{}},
	})
}
