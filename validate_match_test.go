package stone

import (
	"testing"

	"github.com/stonelayer/stone/dag"
)

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
