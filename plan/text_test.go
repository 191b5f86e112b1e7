package plan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/x/cel"
)

// A value can be a text with slots in it, and an expression over slots.
func TestTextsAndExpressions(t *testing.T) {
	for value, want := range map[string]string{
		`{:slot/text ["Deploy " {:slot/id :v} "?"]}`:                       `"Deploy 1.4?"`,
		`{:slot/text [{:slot/id :n} " of " {:slot/id [:all :items]} "."]}`: `"2 of [\"a\",\"b\"]."`,
		`{:slot/text ["a" "b"]}`:                                           `"ab"`,
		`{:slot/text ["n " {:cel "n + 1"} ", " {:slot/text [":" :x]}]}`:    `"n 3, :x"`,
		`{:cel "'Deploy ' + v + '?'"}`:                                     `"Deploy 1.4?"`,
		`{:cel "{'n': n * 2, 'items': all.items.filter(i, i != 'a')}"}`:    `{"items":["b"],"n":4}`,
		`{:deep [{:cel "n > 1"} {:q {:slot/text [{:slot/id :v}]}}]}`:       `{"deep":[true,{"q":"1.4"}]}`,
		`{"cel" "n + 1"}`:     `{"cel":"n + 1"}`, // a key of text is data
		`{:cel 1}`:            `{"cel":1}`,
		`{:cel "n" :or 1}`:    `{"cel":"n","or":1}`,
		`{"slot/text" ["a"]}`: `{"slot/text":["a"]}`,
	} {
		const slots = `{:op :let :value "1.4" :as :v} {:op :let :value 2 :as :n} {:op :let :value {:items ["a" "b"]} :as :all}`
		text := `{:nodes [` + slots + ` {:op :emit :input ` + value + `}]}`
		p := read(t, text)
		if got := emitted(t, p); got != want {
			t.Errorf("%s is %s, want %s", value, got, want)
		}
		if again := read(t, p.String()); again.Digest() != p.Digest() || emitted(t, again) != want {
			t.Errorf("%s is printed as %s", text, p)
		}
		data, err := p.JSON()
		if strings.Contains(value, `{"`) && value != `{:cel 1}` {
			if err == nil {
				t.Errorf("%s has the JSON %s, which is an expression or a slot", text, data)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if again := read(t, string(data)); again.Digest() != p.Digest() {
			t.Errorf("%s has the JSON %s, which is %s", p, data, again)
		}
	}
}

func emitted(t *testing.T, p *plan.Plan) string {
	t.Helper()
	a, err := p.Ashlar(&call.Applicator{Language: cel.Language}, plan.Options{})
	if err != nil {
		t.Fatalf("%s: %v", p, err)
	}
	result, err := stone.Run(context.Background(), a, stone.Config{})
	if err != nil {
		t.Fatalf("%s: %v", p, err)
	}
	out, err := plan.Emission.From(result.DAG)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Texts and expressions are checked before anything runs.
func TestTextsAndExpressionsAreChecked(t *testing.T) {
	for value, want := range map[string]string{
		`{:slot/text "Deploy"}`:                             "bad-value nodes[1].input.slot/text: 1:",
		`{:slot/text ["a" {:slot/id :vv}]}`:                 "missing-producer nodes[1].input.slot/text[1]",
		`{:slot/text ["a"] :b 1}`:                           "unknown-field nodes[1].input.b",
		`{:q {:cel "v +"}}`:                                 "bad-expression nodes[1].input.q",
		`{:q {:cel "vv + 'a'"}}`:                            "bad-expression nodes[1].input.q",
		`{:q {:cel "later"}}`:                               "missing-producer nodes[1].input.q",
		`{:q "Deploy {{v}}?"}`:                              `warning not-expanded nodes[1].input.q: 1:74: texts are not expanded: write {:slot/text ["…" {:slot/id :v} "…"]}`,
		`{:q "${v}"}`:                                       `warning not-expanded nodes[1].input.q: 1:74: texts are not expanded: write {:slot/id :v} for the value`,
		`{:q "{{ v.text | upper }}"}`:                       `warning not-expanded nodes[1].input.q`,
		`{:q ["x" :v]}`:                                     `warning not-expanded nodes[1].input.q[1]: 1:79: the name "v" is data here`,
		`{:q (str "Deploy " v)}`:                            `warning not-expanded nodes[1].input.q: 1:74: forms such as (str …) are not evaluated`,
		`{:q "{{other}} ${x} {v}"}`:                         "",
		`{:q :v}`:                                           "", // an emit reads it
		`{:q {:slot/text ["Deploy " {:slot/id :v} " {}"]}}`: "",
	} {
		p := read(t, `{:inputs {} :nodes [{:op :let :value "1.4" :as :v} {:op :emit :input `+value+`} {:op :let :value 1 :as :later}]}`)
		var got []string
		for _, f := range p.Check(&call.Applicator{Language: cel.Language}, plan.Options{}, stone.Config{}) {
			if f.Type == "unused-produce" {
				continue
			}
			level := ""
			if f.Warning {
				level = "warning "
			}
			got = append(got, fmt.Sprintf("%s%s %s: %s", level, f.Type, f.Path, f.Message))
		}
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("%s\nfound %q\nwant  %q", value, got, want)
		}
	}
}

// A question is a sentence.
func TestQuestionIsASentence(t *testing.T) {
	for question, want := range map[string]string{
		`["Deploy " {:slot/id :v} "?"]`:              "Deploy 1.4?",
		`["Deploy " "now?"]`:                         "Deploy now?",
		`{:slot/text ["Deploy " {:slot/id :v} "?"]}`: "Deploy 1.4?",
		`{:cel "'Deploy ' + v + '?'"}`:               "Deploy 1.4?",
		`"Deploy?"`:                                  "Deploy?",
	} {
		p := read(t, `{:nodes [{:op :let :value "1.4" :as :v} {:op :ask :question `+question+` :as :go} {:op :emit :input :go}]}`)
		for _, p := range []*plan.Plan{p, read(t, p.String())} {
			a, err := p.Ashlar(&call.Applicator{Language: cel.Language}, plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			asked := ""
			_, err = stone.Run(context.Background(), a, stone.Config{Frontend: asking{&asked}})
			if err != nil || asked != want {
				t.Errorf("%s asks %q, want %q: %v", p, asked, want, err)
			}
		}
	}
}

// asking keeps the text of the question, and says yes.
type asking struct{ text *string }

func (a asking) Ask(_ context.Context, q ask.Question) (ask.Answer, error) {
	*a.text = q.Text
	return ask.Answer{Response: "yes"}, nil
}

// In a plan that a capability wrote, a text that looks like a slot is refused.
func TestReturnedPlanWithTemplates(t *testing.T) {
	app := registry(map[string]func(*call.Request) (string, error){
		"cap/planner": func(*call.Request) (string, error) {
			return `{:nodes [{:op :emit :input {:q "Dear {{who}}"}}]}`, nil
		},
	})
	app.Plans = plan.Planner(plan.Options{})
	_, err := stone.Run(context.Background(), compile(t, app, `{:nodes [{:op :let :value "Ada" :as :who} {:op :call :intent :a/b :as :out}]}`, plan.Options{}), stone.Config{})
	if err == nil || !strings.Contains(err.Error(), "not-expanded") {
		t.Errorf("the error is %v", err)
	}
}
