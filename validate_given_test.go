package stone

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/dag"
)

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
		{"nil and zero", first("a", draftType), Given{Input: []dag.AnyType{nil, dag.Type[int]{}}}, "[bad-type] a: type 1 of the input: nil: give it a dag.Type\n[bad-type] a: type 2 of the input: zero dag.Type: make types with dag.NewType\n"},
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
