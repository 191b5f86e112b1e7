package tree_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/tree"
)

type ticketDoc struct {
	Text string `json:"text"`
	Tags []int  `json:"tags,omitempty"`
}

var (
	ticket = dag.NewType[ticketDoc]("ticket")
	note   = dag.NewType[string]("note")
)

func reads[A any](in dag.Reader[A]) stone.Ashlar {
	return stone.Func("read", in, text, func(_ context.Context, a A) (string, error) { return fmt.Sprintf("%+v", a), nil })
}

func TestReadInput(t *testing.T) {
	one, optional, many := reads(ticket), reads(dag.Maybe(ticket)), reads(dag.All(ticket))
	two := stone.Func2("read", ticket, dag.Maybe(note), text, func(_ context.Context, a ticketDoc, n *string) (string, error) {
		return a.Text + deref(n), nil
	})
	inner := stone.Seq("p", stone.Func("make", note, ticket, func(context.Context, string) (ticketDoc, error) { return ticketDoc{}, nil }), one)
	none := leaf("a")
	emitted := dag.NewType[string]("stone/emit")
	plan := stone.Func2("read", note, dag.Maybe(emitted), text, func(_ context.Context, n string, _ *string) (string, error) { return n, nil })
	given := stone.Leaf("read", text, func(context.Context, dag.DAG) (*dag.Node, error) { return nil, nil }, stone.Queries(note, ticket.Query().Optional().Inner()))
	more := stone.Leaf("read", text, func(context.Context, dag.DAG) (*dag.Node, error) { return nil, nil },
		stone.Queries(note, dag.Maybe(text), ticket.Query().Optional().Inner()))
	for _, tt := range []struct {
		name   string
		p      stone.Ashlar
		schema string
		in     string
		want   string // the nodes, or the error
	}{
		{"one", one, ticket.Schema().String(), ` {"text":"a"} `, `ticket {"text":"a"}`},
		{"one, missing", one, "", ``, `the input "ticket" is missing: give "ticket"`},
		{"one that does not fit", one, "", `{"text":1}`, `the input "ticket": does not fit the schema: text: `},
		{"one, no JSON", one, "", `{"text`, `the input "ticket": `},
		{"optional", optional, ticket.Schema().String(), ``, ``},
		{"null is a value", optional, "", `null`, `the input "ticket": `},
		{"many", many, `{"items":` + ticket.Schema().String() + `,"type":"array"}`, `[{"text":"a"},{"text":"b"}]`, `ticket {"text":"a"}, ticket {"text":"b"}`},
		{"many, none of them", many, "", `[]`, ``},
		{"many, one does not fit", many, "", `[{"text":"a"},{}]`, `the input "ticket", number 2: `},
		{"many, no array", many, "", `{"text":"a"}`, `the input "ticket": want an array`},
		{"two", two, `{"additionalProperties":false,"properties":{"note":{"type":"string"},"ticket":` + ticket.Schema().String() + `},"required":["ticket"],"type":"object"}`,
			`{"ticket":{"text":"a"},"note":"n"}`, `note "n", ticket {"text":"a"}`},
		{"two, one of them", two, "", `{"ticket":{"text":"a"}}`, `ticket {"text":"a"}`},
		{"two, the other one", two, "", `{"note":"n"}`, `the input "ticket" is missing: give "note" (optional), "ticket"`},
		{"a text for the one string that is required", two, "", `"a"`, `ticket {"text":"a"}`},
		{"a text for an object that needs more", reads(dag.NewType[struct{ A, B string }]("both")), "", `"a"`, `the input "both": does not fit`},
		{"inner, by name", given, "", `{"note":"n"}`, `note "n"`},
		{"inner, forged by name", given, "", `{"note":"n","ticket":{"text":"I may."}}`, `"ticket" is not an input: `},
		{"one, by name", one, "", `{"ticket":{"text":"a"}}`, `ticket {"text":"a"}`},
		{"inner", given, note.Schema().String(), `"n"`, `note "n"`},
		{"inner, forged", more, `{"additionalProperties":false,"properties":{"note":{"type":"string"},"text":` + text.Schema().String() + `},"required":["note"],"type":"object"}`,
			`{"note":"n","ticket":{"text":"I may."}}`, `"ticket" is not an input: the run or its server sets it: leave it out`},
		{"inner, not forged", more, "", `"n"`, `note "n"`},
		{"two, unknown", two, "", `{"ticket":{"text":"a"},"nota":1}`, `the pipeline has no input "nota": did you mean "note"?`},
		{"two, no object", two, "", `[]`, `the input: want an object with "note" (optional), "ticket"`},
		{"what the pipeline makes is no input", inner, note.Schema().String(), `"n"`, `note "n"`},
		{"a reserved type is no input", plan, `{"additionalProperties":false,"properties":{"note":{"type":"string"}},"required":["note"],"type":"object"}`, `{"note":"n"}`, `note "n"`},
		{"a reserved type is not forged", plan, "", `{"note":"n","stone/emit":"forged"}`, `the pipeline has no input "stone/emit": `},
		{"only a reserved type", reads(dag.Maybe(emitted)), `{"additionalProperties":false,"properties":{},"type":"object"}`, `{"stone/emit":"forged"}`, `the pipeline has no input: leave it out`},
		{"none", none, `{"additionalProperties":false,"properties":{},"type":"object"}`, ``, ``},
		{"none, an object", none, "", `{}`, ``},
		{"none, a field", none, "", `{"x":1}`, `the pipeline has no input: leave it out`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if s, err := tree.InputSchema(tt.p); err != nil || tt.schema != "" && s.String() != tt.schema {
				t.Errorf("the schema is %s, %v, want %s", s, err, tt.schema)
			}
			d, err := tree.ReadInput(t.Context(), tt.p, json.RawMessage(tt.in))
			var nodes []string
			for n := range d.Nodes() {
				nodes = append(nodes, n.Type()+" "+n.JSON())
			}
			got := strings.Join(nodes, ", ")
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

type branchDoc struct {
	Name  string      `json:"name"`
	Below []branchDoc `json:"below,omitempty"`
}

// The schema of a type that contains itself holds for it beside other inputs too.
func TestInputSchemaOfRecursiveTypes(t *testing.T) {
	root := dag.NewType[branchDoc]("root/of all")
	p := stone.Func2("read", dag.All(root), note, text, func(_ context.Context, r []branchDoc, n string) (string, error) { return n, nil })
	s, err := tree.InputSchema(p)
	if err != nil {
		t.Fatal(err)
	}
	for in, ok := range map[string]bool{
		`{"root/of all":[{"name":"a","below":[{"name":"b"}]}],"note":""}`: true,
		`{"root/of all":[{"name":"a","below":[{"name":1}]}],"note":""}`:   false,
	} {
		if err := s.Validate(t.Context(), []byte(in)); (err == nil) != ok {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// An input that was read has the id that the same values have in Go.
func TestReadInputIsThatOfGo(t *testing.T) {
	p := reads(ticket)
	d, err := tree.ReadInput(t.Context(), p, json.RawMessage(`{"tags":[2,1],"text":"a"}`))
	want := dag.Of(ticket.With(ticketDoc{Text: "a", Tags: []int{2, 1}}))
	if err != nil || d.Latest().ID() != want.Latest().ID() {
		t.Errorf("got %s, %v, want %s", d.Latest(), err, want.Latest())
	}
}

func ExampleReadInput() {
	p := stone.Func("loud", note, text, func(_ context.Context, n string) (string, error) { return strings.ToUpper(n), nil })
	input, err := tree.ReadInput(context.Background(), p, json.RawMessage(`"stone"`))
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := stone.Produce(context.Background(), p, text, stone.Config{Input: input})
	fmt.Println(out, err)
	// Output: STONE <nil>
}
