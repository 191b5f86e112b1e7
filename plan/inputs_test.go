package plan_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/x/cel"
)

// TestNames checks that a keyword in an emit and a path into a slot mean something.
func TestNames(t *testing.T) {
	stock, err := schema.Parse([]byte(`{"type":"object","properties":{"stock":{"type":"integer"}},"required":["stock"]}`))
	if err != nil {
		t.Fatal(err)
	}
	app := &call.Applicator{Language: cel.Language, Schemas: map[string]*schema.Schema{"shop/stock": stock}, Registry: call.NewRegistry(
		call.Func(call.Metadata{ID: "shop/stock", Intents: []string{"stock"}}, func(context.Context, json.RawMessage) (any, error) { return map[string]int{"stock": 3}, nil }),
	)}
	const first = `{:op :call :intent :stock :as :stock :requires {:out-schema :shop/stock}}`
	for text, want := range map[string]string{
		first + ` {:op :emit :input {:n :stock}}`:                          "",
		first + ` {:op :emit :input {:n :stokc}}`:                          `did you mean "stock"?`,
		first + ` {:op :emit :input {:n :ready}}`:                          "", // a text that resembles no slot
		first + ` {:op :emit :input {:n "stokc"}}`:                         "",
		first + ` {:op :emit :input {:n {:slot/id [:stock :stock]}}}`:      "",
		first + ` {:op :emit :input {:n {:slot/id [:stock :stok]}}}`:       `stock has no "stok"; did you mean "stock"?`,
		first + ` {:op :emit :input {:n {:slot/record [:stock :cap/id]}}}`: "",
	} {
		p, err := plan.Read([]byte(`{:nodes [` + text + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(p.Check(app, plan.Options{}, stone.Config{}), func(f stone.Finding) bool { return f.Type == "unused-produce" })
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), want)) {
			t.Errorf("%s\nfound %v\nwant  %s", text, got, want)
		}
	}
}

// TestStatedInputs checks a plan that states what it is given.
func TestStatedInputs(t *testing.T) {
	const inputs = `:inputs {:n {:type "string" :minLength 2} :who :person}`
	person, err := schema.Parse([]byte(`{"type":"object","properties":{"name":{"type":"string"}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	app := &call.Applicator{Language: cel.Language, Schemas: map[string]*schema.Schema{"person": person}}
	given := func(slots map[string]any) stone.Config {
		d, err := plan.Bind(stone.Config{}.Input, slots)
		if err != nil {
			t.Fatal(err)
		}
		return stone.Config{Input: d}
	}
	both := map[string]any{"n": "go", "who": map[string]string{"name": "Ada"}}
	for _, test := range []struct {
		text, want string
		slots      map[string]any
	}{
		{`{` + inputs + ` :nodes [{:op :emit :input {:n :n :to {:slot/id [:who :name]}} :when "n == 'go'"}]}`, "", both},
		{`{` + inputs + ` :nodes [{:op :emit :input {:n {:slot/id [:who :nmae]} :m :n}}]}`, `[schema-mismatch] emit: 1:`, both},
		{`{` + inputs + ` :nodes [{:op :emit :input {:n {:slot/id :wo} :m :n}}]}`, `[missing-producer] emit: 1:`, both},
		{`{` + inputs + ` :nodes [{:op :emit :input {:n :n} :when {:present? :nn}}]}`, `[missing-producer] emit: 1:`, both},
		{`{` + inputs + ` :nodes [{:op :emit :input {:n :n :who :who}}]}`, `[missing-producer] emit-1: 1:`, map[string]any{"n": "go"}},
		{`{` + inputs + ` :nodes [{:op :emit :input {:n :n :who :who}}]}`, `[schema-mismatch] plan: 1:`, map[string]any{"n": "x", "who": both["who"]}},
		{`{:inputs {:n :nobody} :nodes [{:op :emit :input {:n :n}}]}`, `[unknown-schema] plan: 1:`, map[string]any{"n": "go"}},
		{`{:inputs {:n {:type "strin"}} :nodes [{:op :emit :input {:n :n}}]}`, `[bad-value] plan: 1:`, map[string]any{"n": "go"}},
		{`{:inputs {:stone/n {}} :nodes [{:op :emit :input {:n "n"}}]}`, `[reserved-name] plan: 1:`, nil},
		{`{:inputs [:n] :nodes [{:op :emit :input {:n "n"}}]}`, `[bad-value] plan: 1:`, nil},
	} {
		p, err := plan.Read([]byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		got := p.Check(app, plan.Options{}, given(test.slots))
		if test.want == "" && len(got) > 0 || test.want != "" && (len(got) == 0 || !strings.HasPrefix(got[0].String(), test.want)) {
			t.Errorf("%s\nfound %v\nwant  %s", test.text, got, test.want)
		}
	}

	// A server knows the slots without a run, also those that a guard alone reads.
	p, err := plan.Read([]byte(`{` + inputs + ` :nodes [{:op :emit :input {:to {:slot/id [:who :name]} :as :nobody} :when "n == 'go'"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Ashlar(app, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := tree.InputSchema(a)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"additionalProperties":false,"properties":{"n":{"minLength":2,"type":"string"},"who":{"additionalProperties":false,"properties":{"name":{"type":"string"}},"type":"object"}},"required":["n","who"],"type":"object"}`
	if got := string(s.JSON()); got != want {
		t.Errorf("the schema is\n%s\nwant\n%s", got, want)
	}
	again, err := plan.Read([]byte(p.String()))
	if err != nil || again.Digest() != p.Digest() {
		t.Errorf("%s is not printed as itself: %v", p, err)
	}
	if data, err := p.JSON(); err != nil {
		t.Error(err)
	} else if again, err := plan.Read(data); err != nil || again.Digest() != p.Digest() {
		t.Errorf("%s is not printed as itself: %v", data, err)
	}
	input, err := tree.ReadInput(t.Context(), a, []byte(`{"n":"go","who":{"name":"Ada"}}`))
	if err != nil {
		t.Fatal(err)
	}
	result, err := stone.Run(t.Context(), a, stone.Config{Input: input})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := plan.Emission.From(result.DAG); err != nil || string(out) != `{"as":"nobody","to":"Ada"}` {
		t.Errorf("emitted %s, %v", out, err)
	}
}
