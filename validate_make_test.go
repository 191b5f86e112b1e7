package stone

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stonelayer/stone/dag"
)

type (
	chanDoc   struct{ C chan int }
	panicky   struct{}
	brokenDoc struct {
		Bad string `json:"bad" enum:""`
	}
)

func (panicky) Check() []Finding { panic("oh") }

type complaining []Finding

func (c complaining) Check() []Finding { return c }

func noText(struct{}) string { return "" }

// TestValidateNothing gives every constructor nothing, at all or in one place. None
// may panic.
func TestValidateNothing(t *testing.T) {
	zero := dag.Type[noteDoc]{}
	n := draftType
	checkPrograms(t, []program{
		{"Ashlar", Ashlar{}, `
			[nil-ashlar] ?: zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here
		`, Config{}},
		{"New", New[noteDoc]("", zero, nil), `
			[nil-body] "": the body is nil: pass a function
			[no-name] "": a leaf has no name: add one, since paths, events and findings need it
			[bad-type] "": it does not declare what it produces: give it a dag.Type made by dag.NewType with a name
		`, Config{}},
		{"New, no body", New[noteDoc]("a", n, nil), `
			[nil-body] a: the body is nil: pass a function
		`, Config{}},
		{"New, no type", New("a", zero, func(context.Context, dag.DAG) (v noteDoc, err error) { return }), `
			[bad-type] a: it does not declare what it produces: give it a dag.Type made by dag.NewType with a name
		`, Config{}},
		{"New, no name", New("", n, func(context.Context, dag.DAG) (v noteDoc, err error) { return }), ``, Config{}},
		{"New, no option", New("a", n, func(context.Context, dag.DAG) (v noteDoc, err error) { return }, nil, Version("1")), `
			[bad-option] a: one of its options is nil: remove it
		`, Config{}},
		{"Func0", Func0[noteDoc]("", zero, nil), `
			[nil-body] "": the body is nil: pass a function
			[no-name] "": a leaf has no name: add one, since paths, events and findings need it
			[bad-type] "": it does not declare what it produces: give it a dag.Type made by dag.NewType with a name
		`, Config{}},
		{"Func0, no body", Func0[noteDoc]("a", n, nil), `
			[nil-body] a: the body is nil: pass a function
		`, Config{}},
		{"Func", Func[noteDoc, noteDoc]("", zero, zero, nil), `
			[nil-body] "": the body is nil: pass a function
			[no-name] "": a leaf has no name: add one, since paths, events and findings need it
			[bad-type] "": it does not declare what it produces: give it a dag.Type made by dag.NewType with a name
		`, Config{}},
		{"Func, no body", Func[noteDoc, noteDoc]("a", n, n, nil), `
			[nil-body] a: the body is nil: pass a function
		`, Config{}},
		{"Func, no input type", from("a", zero, n), `
			[bad-type] a: one of its queries: zero dag.Type: make types with dag.NewType
		`, Config{}},
		{"Func2", Func2[noteDoc, noteDoc, noteDoc]("", zero, zero, zero, nil), `
			[nil-body] "": the body is nil: pass a function
			[no-name] "": a leaf has no name: add one, since paths, events and findings need it
			[bad-type] "": it does not declare what it produces: give it a dag.Type made by dag.NewType with a name
		`, Config{}},
		{"Func2, no body", Func2[noteDoc, noteDoc, noteDoc]("a", n, n, n, nil), `
			[nil-body] a: the body is nil: pass a function
		`, Config{}},
		{"Func of all", Func[[]noteDoc, noteDoc]("", dag.All(zero), zero, nil), `
			[nil-body] "": the body is nil: pass a function
			[no-name] "": a leaf has no name: add one, since paths, events and findings need it
			[bad-type] "": it does not declare what it produces: give it a dag.Type made by dag.NewType with a name
		`, Config{}},
		{"Func of all, no body", Func[[]noteDoc, noteDoc]("a", dag.All(n), n, nil), `
			[nil-body] a: the body is nil: pass a function
		`, Config{}},
		{"Leaf", Leaf("", nil, nil), `
			[nil-body] "": the body is nil: pass a function
			[no-name] "": a leaf has no name: add one, since paths, events and findings need it
			[bad-type] "": it does not declare what it produces: give it a dag.Type made by dag.NewType with a name
		`, Config{}},
		{"Leaf, no type", Leaf("a", nil, func(context.Context, dag.DAG) (*dag.Node, error) { return nil, nil }), `
			[bad-type] a: it does not declare what it produces: give it a dag.Type made by dag.NewType with a name
		`, Config{}},
		{"Leaf, no body", Leaf("a", n, nil), `
			[nil-body] a: the body is nil: pass a function
		`, Config{}},
		{"Ask", Ask[noteDoc]("", n, dag.Type[Answer]{}, nil), `
			[nil-body] "": the body is nil: pass a function
			[no-name] "": a leaf has no name: add one, since paths, events and findings need it
			[bad-type] "": it does not declare what it produces: give it a dag.Type made by dag.NewType with a name
		`, Config{}},
		{"Ask, no text", Ask[noteDoc]("a", n, dag.NewType[Answer]("answer"), nil), `
			[nil-body] a: the body is nil: pass a function
		`, Config{}},
		{"Seq", Seq(""), `
			[empty-composite] "": a sequence needs at least one step
			[no-name] "": a seq has no name: add one, since paths, events and findings need it
		`, Config{}},
		{"Seq of nothing", Seq("p"), `
			[empty-composite] p: a sequence needs at least one step
		`, Config{}},
		{"Seq of zero", Seq("p", Ashlar{}, first("a", n)), `
			[nil-ashlar] ?: zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here (at p/?)
		`, Config{}},
		{"Loop", Loop("", Ashlar{}, nil, 0), `
			[nil-body] "": the condition of the loop is empty: use Until with a function
			[bad-option] "": a loop of at most 0 rounds: want at least 1
			[no-name] "": a loop has no name: add one, since paths, events and findings need it
			[nil-ashlar] ?: zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here (at /?)
		`, Config{}},
		{"Loop, nil condition", Loop("p", first("a", n), Until[noteDoc](n, nil), -1), `
			[nil-body] p: the condition of the loop is empty: use Until with a function
			[bad-option] p: a loop of at most -1 rounds: want at least 1
		`, Config{}},
		{"Loop, nil reader", Loop("p", first("a", n), Until(nil, done), 1), `
			[bad-type] p: one of its reads has no type: give dag.All and dag.Since a dag.Type each, and pass no nil as a reader or a function
		`, Config{}},
		{"Loop, Until of nothing", Loop("p", first("a", n), Until(zero, done), 1), `
			[bad-type] p: one of its queries: zero dag.Type: make types with dag.NewType
		`, Config{}},
		{"Match", Match("", Extractor{}), `
			[nil-body] "": the matched value is missing: use Lens, or On with a function
			[empty-composite] "": a match needs at least one Case
			[no-name] "": a match has no name: add one, since paths, events and findings need it
			[missing-producer] "":  needs a node to match on, but nothing comes before it: add an earlier step that produces it
		`, Config{}},
		{"Match of nothing", Match("p", Lens()), `
			[empty-composite] p: a match needs at least one Case
		`, Config{Input: mustAppend(dag.DAG{}, n, noteDoc{})}},
		{"Match, zero Branch", Seq("p", first("a", n), Match("m", On[noteDoc, string](zero, nil), Branch{})), `
			[nil-body] m: the matched value is missing: use Lens, or On with a function (at p/m)
			[bad-type] m: one of its queries: zero dag.Type: make types with dag.NewType (at p/m)
			[nil-ashlar] ?: zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here (at p/m[null]/?)
		`, Config{}},
		{"Match, nil functions", Seq("p", first("a", n), Match("m", On[noteDoc, string](n, nil), Case(nil, first("b", n))), Match("o", On[any, any](nil, nil), Case(nil, first("b", n)))), `
			[nil-body] m: the matched value is missing: use Lens, or On with a function (at p/m)
			[nil-body] o: the matched value is missing: use Lens, or On with a function (at p/o)
			[bad-type] o: one of its reads has no type: give dag.All and dag.Since a dag.Type each, and pass no nil as a reader or a function (at p/o)
		`, Config{}},
		{"Map", Map[[]noteDoc]("", nil, zero, Ashlar{}), `
			[nil-body] "": its list is nil: pass a dag.Type or dag.Derive
			[no-name] "": a map has no name: add one, since paths, events and findings need it
			[bad-type] "": it does not declare the type of its items: give Map a dag.Type made by dag.NewType
		`, Config{}},
		{"Map, zero types", Seq("p", Map("m", dag.Derive(zero, notesOf), zero, first("a", n)), gather("sum", n, n)), `
			[bad-type] m: one of its queries: zero dag.Type: make types with dag.NewType (at p/m)
			[bad-type] m: it does not declare the type of its items: give Map a dag.Type made by dag.NewType (at p/m)
			[missing-producer] sum: sum reads "draft", but no earlier step produces it: p/sum does, but not before it (at p/sum)
		`, Config{}},
		{"Map, nil functions", Seq("p", Map("m", dag.Derive[noteDoc, []noteDoc](nil, nil), itemType, first("a", n)), gather("sum", n, n), Map[[]noteDoc]("o", nil, itemType, first("a", n)), gather("end", n, n)), `
			[bad-type] m: one of its reads has no type: give dag.All and dag.Since a dag.Type each, and pass no nil as a reader or a function (at p/m)
			[nil-body] o: its list is nil: pass a dag.Type or dag.Derive (at p/o)
		`, Config{}},
		{"Parallel", Parallel(""), `
			[empty-composite] "": a parallel needs at least one lane
			[no-name] "": a parallel has no name: add one, since paths, events and findings need it
		`, Config{}},
		{"Parallel of nil", Parallel("p", nil), `
			[bad-option] p: one of its parts is nil: remove it
			[empty-composite] p: a parallel needs at least one lane
		`, Config{}},
		{"Parallel of zero", Seq("p", Parallel("fan", Ashlar{}), gather("sum", n, n)), `
			[nil-ashlar] ?: zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here (at p/fan/?)
			[missing-producer] sum: sum reads "draft", but no earlier step produces it: p/sum does, but not before it (at p/sum)
		`, Config{}},
		{"Reduce", Reduce(Ashlar{}), `
			[nil-ashlar] ?: zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here
		`, Config{}},
		{"Rescue", Rescue("", Ashlar{}, Ashlar{}), `
			[no-name] "": a rescue has no name: add one, since paths, events and findings need it
			[nil-ashlar] ?: zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here (at /?)
			[nil-ashlar] ?: zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here (at /?#2)
		`, Config{}},
		{"Scoped", Scoped("", Walk{}, nil), `
			[nil-body] "": the body is nil: pass a function
			[no-name] "": a scoped has no name: add one, since paths, events and findings need it
		`, Config{}},
		{"Scoped of zero", Scoped("p", Walk{}.InOrder(Ashlar{}), noScope), `
			[nil-ashlar] ?: zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here (at p/?)
		`, Config{}},
		{"Queries of nothing", readingLeaf("a", n, nil, dag.Query{}, dag.Query{}.Optional(), dag.Query{}.All(), dag.Since(n, nil), dag.Query{}.Since(n), zero, dag.All(zero)), `
			[bad-type] a: one of its reads has no type: give dag.All and dag.Since a dag.Type each, and pass no nil as a reader or a function
			[bad-type] a: one of its reads has no type: give dag.All and dag.Since a dag.Type each, and pass no nil as a reader or a function
			[bad-type] a: one of its reads has no type: give dag.All and dag.Since a dag.Type each, and pass no nil as a reader or a function
			[bad-type] a: one of its reads has no type: give dag.All and dag.Since a dag.Type each, and pass no nil as a reader or a function
			[bad-type] a: one of its reads has no type: give dag.All and dag.Since a dag.Type each, and pass no nil as a reader or a function
			[bad-type] a: one of its queries: zero dag.Type: make types with dag.NewType
			[bad-type] a: one of its queries: zero dag.Type: make types with dag.NewType
		`, Config{}},
		{"Children of nothing", first("a", n).with(Children(Walk{}.InOrder(Ashlar{}))), `
			[nil-ashlar] ?: zero Ashlar: make steps with New, Func, Seq, … and check that the variable is set before it is used here (at a/?)
		`, Config{}},
		{"everything else", first("a", n).with(Detail{}).with(Effects()).with(Effects("")).with(Retry{}).with(Version("")), `
			[effect-not-granted] a: it needs the effect "", which the run does not grant: grant it, or remove this step
		`, Config{Grant: []string{}}},
	})
	Ask[noteDoc]("", n, dag.Type[Answer]{}, nil) // does not panic
}

func TestValidateOptions(t *testing.T) {
	a := first("a", draftType)
	fan := func(opts ...FanOption) Ashlar {
		return Seq("p", Parallel("fan", Parts([]Ashlar{a}, opts...)...), gather("sum", draftType, reportType))
	}
	checkPrograms(t, []program{
		{"bad values", fan(Lanes(0), Quorum(-1)), `
			[bad-option] fan: Lanes(0): want at least 1 (at p/fan)
			[bad-option] fan: Quorum(-1): want at least 1 (at p/fan)
		`, Config{}},
		{"bad timeout", a.with(Timeout(0)), `
			[bad-option] a: Timeout(0s): want more than zero
		`, Config{}},
		{"effects within the grant", a.with(Effects("net", "fs/write")), ``, Config{Grant: []string{"fs/write", "net"}}},
		{"effects beyond the grant", Seq("p", a.with(Effects("net", "fs/write")), Scoped("s", Walk{}.InOrder(from("b", draftType, reportType).with(Effects("git"))), noScope)), `
			[effect-not-granted] a: it needs the effect "net", which the run does not grant: grant it, or remove this step (at p/a)
			[effect-not-granted] b: it needs the effect "git", which the run does not grant: grant it, or remove this step (at p/s/b)
		`, Config{Grant: []string{"fs/write"}}},
		{"no grant allows all", a.with(Effects("net")), ``, Config{}},
		{"a detail that complains", a.with(Detail{Check: complaining{{Type: "no-candidate", Message: "no one can"}, {Type: "hint", Warning: true, Message: "but", Suggestion: "x"}}.Check}), `
			[no-candidate] a: no one can
			warning [hint] a: but; did you mean "x"?
		`, Config{}},
		{"a detail that panics", a.with(Detail{Check: panicky{}.Check}), `
			[bad-detail] a: the Check of its detail panicked: oh
		`, Config{}},
	})
}

func TestValidateNames(t *testing.T) {
	a, other := first("a", draftType), first("a", draftType)
	ask := func(name string) Ashlar { return Ask(name, dag.Nothing, dag.NewType[Answer]("answer"), noText) }
	branches := func(cases ...Branch) Ashlar {
		return Seq("p", first("read", ticketType), Match("m", On(ticketType, textOf), cases...))
	}
	checkPrograms(t, []program{
		{"one ashlar twice", Seq("p", a, a, Seq("q", a)), ``, Config{}},
		{"two of one name", Seq("p", a, other), `
			[duplicate-name] p: two different steps under it have the name "a": rename one
		`, Config{}},
		{"three of one name", Seq("p", a, other, first("a", draftType)), `
			[duplicate-name] p: two different steps under it have the name "a": rename one
			[duplicate-name] p: two different steps under it have the name "a": rename one
		`, Config{}},
		{"two of one name among many", Seq("p", a, first("1", draftType), first("2", draftType), first("3", draftType), first("4", draftType), first("5", draftType), first("6", draftType), first("7", draftType), other), `
			[duplicate-name] p: two different steps under it have the name "a": rename one
		`, Config{}},
		{"two of one name under two parents", Seq("p", Seq("q", a), Seq("r", other)), ``, Config{}},
		{"one reducer twice", Seq("p", Parallel("f", first("b", draftType)), Reduce(a), Parallel("g", first("b", draftType)), Reduce(a)), ``, Config{}},
		{"one reducer, and another of its name", Seq("p", Parallel("f", first("b", draftType)), Reduce(a), Reduce(other)), `
			[duplicate-name] p: two different steps under it have the name "a": rename one
			warning [nothing-to-reduce] a: no fan-out comes before it: add one, or use its body without Reduce (at p/a#2)
		`, Config{}},
		{"a reduce has the name of its body", Seq("p", Parallel("a", first("b", draftType)), gather("a", draftType, reportType)), `
			[duplicate-name] p: two different steps under it have the name "a": rename one
		`, Config{}},
		{"one name in two branches", branches(Case("x", a), Case("y", other)), `
			[duplicate-name] m: two different steps under it have the name "a": rename one (at p/m)
		`, Config{}},
		{"one name in body and heal", Rescue("r", a, other), `
			[duplicate-name] r: two different steps under it have the name "a": rename one
		`, Config{}},
		{"duplicate branches", branches(Case("x", a), Case(noteDoc{"n"}, first("b", draftType)), Case("x", first("c", draftType)), Case(map[string]string{"text": "n"}, first("d", draftType))), `
			[duplicate-branch] m: two branches for "x": remove one (at p/m)
			[duplicate-branch] m: two branches for {"text":"n"}: remove one (at p/m)
			[unreachable-branch] m: no value selects the branch {"text":"n"}: want string, got an object (at p/m)
			[unreachable-branch] m: no value selects the branch {"text":"n"}: want string, got an object (at p/m)
		`, Config{}},
		{"a branch without JSON", branches(Case(math.NaN(), a), Case(make(chan int), first("b", draftType))), "[bad-branch] m: the value of a Case cannot be encoded as JSON: cannot be canonical JSON: NaN is not a JSON number (at p/m)\n" +
			"[bad-branch] m: the value of a Case cannot be encoded as JSON: cannot be canonical JSON: JSON cannot represent a Go chan int: leave the field out with the tag `json:\"-\"` or give the type a MarshalJSON method (at p/m)\n" +
			"[duplicate-branch] m: two branches for : remove one (at p/m)\n", Config{}},
		{"two questions of one name", Seq("p", ask("sure"), Seq("q", ask("sure"))), `
			[duplicate-question] sure: another Ask has the name "sure": a frontend could not tell them apart, rename one (at p/q/sure)
		`, Config{}},
		{"one question twice", func() Ashlar { q := ask("sure"); return Seq("p", q, Seq("q", q)) }(), ``, Config{}},
		{"no names", Seq("", Loop("", Rescue("", Seq("", first("", draftType)), a), Until(draftType, done), 2), scopedOver("", Walk{}.InOrder(a))), `
			[no-name] "": a seq has no name: add one, since paths, events and findings need it
			[duplicate-name] "": two different steps under it have the name "": rename one
			[no-name] "": a loop has no name: add one, since paths, events and findings need it (at /)
			[no-name] "": a rescue has no name: add one, since paths, events and findings need it (at //)
			[no-name] "": a seq has no name: add one, since paths, events and findings need it (at ///)
			[no-name] "": a scoped has no name: add one, since paths, events and findings need it (at /#2)
		`, Config{}},
		{"names of all kinds", Seq("päron/🍐", Seq("a\nb\x1b[2J", first("\xff", draftType)), from("[#@%]", draftType, reportType), readingLeaf("\u202ertl", reviewType, dag.NewType[noteDoc]("日本\n"), reportType)), `
			[bad-name] a\nb\x1b[2J: the name "a\nb\x1b[2J" has a control character: rename it (at päron/🍐/a\nb\x1b[2J)
			[bad-name] �: the name "\xff" is not UTF-8: rename it (at päron/🍐/a\nb\x1b[2J/�)
			[missing-producer] \u202ertl: \u202ertl reads "日本\n", but no earlier step produces it: add one that does, or give it with the input (at päron/🍐/\u202ertl)
		`, Config{}},
		{"a name that is too long", Seq(strings.Repeat("é", 3_000_000), first("a\nb", draftType)), fmt.Sprintf(`
			[bad-name] %[1]s: the name "%[1]s" has 6000000 bytes, where at most 512 are allowed: rename it (at %[2]s)
			[bad-name] a\nb: the name "a\nb" has a control character: rename it (at %[2]s)
		`, strings.Repeat("é", 20)+"…", strings.Repeat("é", 4<<10)+"…"), Config{}},
		{"names of types that are no UTF-8", Seq("p", first("a", dag.NewType[noteDoc]("\xff"))), `
			[bad-type] a: type name "\xff": want valid UTF-8 (at p/a)
		`, Config{}},
	})
}

func TestValidateTypes(t *testing.T) {
	chans := dag.NewType[chanDoc]("chans")
	narrow := dag.NewType[struct{ Text, More string }]("ticket")
	same := dag.NewType[noteDoc]("ticket")
	alike := dag.NewType[struct {
		Text string `json:"text"`
	}]("ticket")
	checkPrograms(t, []program{
		{"a type that JSON cannot hold", Seq("p", first("a", chans), from("b", chans, reportType)), "[bad-type] a: type \"chans\": cannot be canonical JSON: C: JSON cannot represent a Go chan int: leave the field out with the tag `json:\"-\"` or give the type a MarshalJSON method (at p/a)\n" +
			"[bad-type] b: type \"chans\": cannot be canonical JSON: C: JSON cannot represent a Go chan int: leave the field out with the tag `json:\"-\"` or give the type a MarshalJSON method (at p/b)\n", Config{}},
		{"a type that JSON cannot hold is read only", from("b", chans, reportType), "[bad-type] b: type \"chans\": cannot be canonical JSON: C: JSON cannot represent a Go chan int: leave the field out with the tag `json:\"-\"` or give the type a MarshalJSON method\n", Config{Input: mustAppend(dag.DAG{}, dag.NewType[noteDoc]("chans"), noteDoc{})}},
		{"a type with a broken tag", first("a", dag.NewType[brokenDoc]("broken")), `
			[bad-type] a: type "broken": schema: stone.brokenDoc.Bad: the tag enum:"" needs a string field and at least one value
		`, Config{}},
		{"items that JSON cannot hold", Seq("p", first("read", ticketType), Map("m", dag.Derive(ticketType, func(noteDoc) []chanDoc { return nil }), chans, first("a", draftType)), gather("sum", draftType, reportType)), "[bad-type] m: type \"chans\": cannot be canonical JSON: C: JSON cannot represent a Go chan int: leave the field out with the tag `json:\"-\"` or give the type a MarshalJSON method (at p/m)\n", Config{}},
		{"the reader needs what is not written", Seq("p", first("read", ticketType), from("b", narrow, reportType)), `
			[schema-mismatch] b: b cannot read the "ticket" that p/read writes: Text: required, but the producer never writes it (at p/b)
		`, Config{}},
		{"the reader wants another type", Seq("p", first("read", ticketType), from("b", countTicket, reportType)), `
			[schema-mismatch] b: b cannot read the "ticket" that p/read writes: text: want integer, the producer writes string (at p/b)
		`, Config{}},
		{"the reader wants less", Seq("p", first("read", dag.NewType[triageDoc]("ticket")), from("b", dag.NewType[struct {
			Area string `json:"area"`
		}]("ticket"), reportType)), ``, Config{}},
		{"two types of one name and schema", Seq("p", first("read", ticketType), from("b", same, alike), from("c", alike, same)), ``, Config{}},
		{"two types of one name", Seq("p", first("read", ticketType), first("b", countTicket)), `
			[schema-mismatch] b: it produces "ticket" with another schema than p/read does: use one dag.Type for one name (at p/b)
		`, Config{}},
		{"two types of one name in two branches", Seq("p", first("x", draftType), Match("m", On(draftType, textOf), Case("a", first("read", ticketType)), Case("b", first("b", countTicket)))), `
			[schema-mismatch] b: it produces "ticket" with another schema than p/m["a"]/read does: use one dag.Type for one name (at p/m["b"]/b)
		`, Config{}},
		{"an item of the name of another type", Seq("p", first("read", draftType), Map("m", dag.Derive(draftType, func(noteDoc) []countDoc { return nil }), countTicket, from("a", countTicket, ticketType)), gather("sum", ticketType, reportType)), `
			[schema-mismatch] a: it produces "ticket" with another schema than p/m does: use one dag.Type for one name (at p/m/a)
			[schema-mismatch] sum: sum cannot read the "ticket" that p/m writes: text: want string, the producer writes integer (at p/sum)
		`, Config{}},
		{"a type of the run itself", Seq("p", first("a", dag.NewType[noteDoc]("failure")), first("b", dag.NewType[noteDoc]("stone/lane")), readingLeaf("c", reportType, dag.Everything)), `
			[schema-mismatch] a: it produces "failure", which the run itself writes with another schema: give the type another name (at p/a)
			[schema-mismatch] b: it produces "stone/lane", which the run itself writes with another schema: give the type another name (at p/b)
		`, Config{}},
		{"a failure as anybody writes one", first("a", dag.NewType[dag.FailureContent]("failure")), ``, Config{}},
	})
}
