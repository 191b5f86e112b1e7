package eval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/boxtest"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/x/cel"
	"github.com/stonelayer/stone/x/eval"
)

var anything = dag.NewType[json.RawMessage]("anything")

// scoreOf evaluates a pipeline that answers with output on one case.
func scoreOf(t *testing.T, output, expected string, scorers []eval.Scorer) eval.ScoreReport {
	t.Helper()
	return reportOf(t, output, expected, scorers).Scores[0]
}

func reportOf(t *testing.T, output, expected string, scorers []eval.Scorer) eval.Report {
	t.Helper()
	p := stone.Func("say", asked, anything, func(context.Context, question) (json.RawMessage, error) { return json.RawMessage(output), nil })
	row := map[string]any{"text": "how many?"}
	if expected != "" {
		row["expected"] = json.RawMessage(expected)
	}
	r, err := eval.Run(t.Context(), eval.Config{Pipeline: p, Data: eval.Data{Rows: []any{row}}, Scorers: scorers}, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestScorers(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	fits := write("s.json.schema", `{"type":"object","required":["a"]}`, 0o600)
	list := write("scores.edn", `[{:name "price" :kind :number :argument "0.5" :of "items.1.price" :expected "price"}]`, 0o600)
	for _, c := range []struct {
		scorer, output, expected string
		want                     float64
	}{
		{"exact", `"A"`, `"A"`, 1},
		{"exact", `{"text":"A"}`, `"A"`, 1},
		{"exact", `"A "`, `"A"`, 0},
		{"exact", `{"b":1,"a":2}`, `{"a":2,"b":1.0}`, 1},
		{"exact", `"7"`, `7`, 0},
		{"normalised", `"  The **Answer**: Yes. "`, `"the answer yes"`, 1},
		{"normalised", `"no"`, `"yes"`, 0},
		{"number", `"#### 1,234.50"`, `1234.5`, 1},
		{"number", `"5 apples and 3 pears"`, `"3"`, 1},
		{"number:0.1", `3.05`, `3`, 1},
		{"number:0.01", `3.05`, `3`, 0},
		{"number", `"none"`, `3`, 0},
		{"contains", `"It is Paris, France."`, `"paris"`, 1},
		{"contains", `"It is Paris."`, `["paris","france"]`, .5},
		{"json", `"{\"a\": 1}"`, `{"a":1}`, 1},
		{"subset", `{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"c":2}}`, 1},
		{"subset", `{"a":1}`, `{"a":1,"b":2}`, 0},
		{"fields", `{"a":1,"b":2}`, `{"a":1,"b":3}`, .5},
		{"fields", `{"a":1}`, `{"a":1,"b":3}`, 2. / 3},
		{"fields", `{"a":[1,2],"x":0}`, `{"a":[1,2]}`, .8},
		{"schema:" + fits, `{"a":1}`, "", 1},
		{"schema:" + fits, `{"b":1}`, "", 0},
		{"cel:output.n > 3 && expected == null", `{"n":4}`, "", 1},
		{"cel:output == expected && node.anything.n == 4", `{"n":4}`, `{"n":4}`, 1},
		{"cel:double(output.n) / 8.0", `{"n":4}`, "", .5},
		{list, `{"items":[{"price":1},{"price":2.2}]}`, `{"price":2}`, 1},
		{list, `{"items":[]}`, `{"price":2}`, 0},
	} {
		s := scoreOf(t, c.output, c.expected, scorers(t, c.scorer))
		if s.Mean < c.want-1e-9 || s.Mean > c.want+1e-9 || s.Errors != 0 {
			t.Errorf("%s of %s for %s: %v with %d errors, want %v", c.scorer, c.output, c.expected, s.Mean, s.Errors, c.want)
		}
	}
	// A scorer that cannot score is an error and no wrong answer.
	for _, c := range [][3]string{{"number", `3`, `"none"`}, {"cel:output.none", `{}`, ""}, {"cel:'text'", `{}`, ""}, {"tools:order", `{}`, `[]`}} {
		if s := scoreOf(t, c[1], c[2], scorers(t, c[0])); s.Errors != 1 || s.N != 0 {
			t.Errorf("%s of %s for %q: %+v, want an error", c[0], c[1], c[2], s)
		}
	}
	for text, want := range map[string]string{
		"number:-1": "tolerance", "schema:none": "no such file", "cel:1 +": "scorer cel:", "tools:x": "tools:order",
		"exact:x": `unexpected argument "x"`, "command:/none": "no such file", "none.edn": "no such file",
	} {
		if _, err := eval.Read(withLanguage, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{"judge:x": "eval/grade", "cel:true": "set Language of the Applicator"} {
		if _, err := eval.Read(nil, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s without an applicator: got %v, want %q", text, err, want)
		}
	}
}

// withLanguage has the language of scorers.
var withLanguage = &call.Applicator{Language: cel.Language}

// A comparison of the whole output that no row can pass is refused before anything runs.
func TestNoExpectationFits(t *testing.T) {
	type count struct {
		N    int    `json:"n"`
		Word string `json:"word"`
	}
	type reply struct {
		Text string `json:"text"`
	}
	structs := stone.Func("count", asked, dag.NewType[count]("answer"), func(context.Context, question) (count, error) { return count{1, "a"}, nil })
	texts := stone.Func("say", asked, dag.NewType[reply]("answer"), func(context.Context, question) (reply, error) { return reply{"a"}, nil })
	const compares = "compares the whole output, of type answer, and no row has an expectation that fits it"
	for _, c := range []struct {
		of       stone.Ashlar
		scorer   string
		expected []any
		want     string
	}{
		{structs, "exact", []any{"1", "2"}, compares + `; that of case 1, "1": does not fit the schema: want object, got string "1"`},
		{structs, "json", []any{map[string]any{"n": "1", "word": "a"}}, `n: want integer, got string "1"`},
		{structs, "exact", []any{nil, 1}, compares},
		{structs, "exact", []any{"1", map[string]any{"n": 1, "word": "a"}}, ""},
		{structs, "exact", []any{`{"n":1,"word":"a"}`}, ""}, // as CSV has it
		{structs, "contains", []any{"a"}, ""},
		{texts, "exact", []any{"a"}, ""},
	} {
		var data eval.Data
		for i, want := range c.expected {
			row := map[string]any{"text": fmt.Sprint(i)}
			if want != nil {
				row["expected"] = want
			}
			data.Rows = append(data.Rows, row)
		}
		_, err := eval.Run(t.Context(), eval.Config{Pipeline: c.of, Data: data, Scorers: scorers(t, c.scorer)}, stone.Config{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s of %v: got %v, want %q", c.scorer, c.expected, err, c.want)
		}
	}
}

// A row without an expectation is an error of its case. If no row has one, the column is named wrongly,
// and nothing runs.
func TestNoExpectation(t *testing.T) {
	var ran atomic.Int64
	p := stone.Func("say", asked, anything, func(context.Context, question) (json.RawMessage, error) {
		ran.Add(1)
		return json.RawMessage(`"A"`), nil
	})
	run := func(scorer string, second map[string]any) (eval.Report, error) {
		rows := []any{map[string]any{"text": "how many?", "expectd": "A"}, second}
		return eval.Run(t.Context(), eval.Config{Pipeline: p, Data: eval.Data{Rows: rows}, Scorers: scorers(t, scorer)}, stone.Config{})
	}
	for _, scorer := range []string{"exact", "number", "tools:set"} {
		if _, err := run(scorer, map[string]any{"text": "which?"}); err == nil || !strings.Contains(err.Error(), `no row has the column "expected"`) || ran.Load() > 0 {
			t.Errorf("%s without expectations: %v after %d runs", scorer, err, ran.Load())
		}
	}
	r, err := run("exact", map[string]any{"text": "which?", "expected": "A"})
	if err != nil || r.Scores[0].Errors != 1 || r.Scores[0].Right != 1 {
		t.Errorf("one of two rows has an expectation: %+v, %v", r.Scores, err)
	}
}

func TestCommand(t *testing.T) {
	boxtest.NeedAny(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "check.sh")
	script := "#!/bin/sh\ngrep -q '\"output\":\"A\"' || { echo 'no A'; exit 1; }\necho \"$SECRET_KEY\" '{\"value\":0.5,\"reason\":\"half\"}' | tr -d ' '\n"
	if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := scorers(t, "command:"+file)
	if r := reportOf(t, `"A"`, "", s); r.Scores[0].Mean != .5 {
		t.Errorf("%+v", r)
	}
	if got := scoreOf(t, `"B"`, "", s); got.Wrong != 1 {
		t.Errorf("%+v", got)
	}
}

func TestTools(t *testing.T) {
	echo := func(name string) agent.Middleware {
		return tool.Func(name, "Looks.", func(context.Context, struct {
			Q int `json:"q"`
		}) (string, error) {
			return "ok", nil
		})
	}
	found := dag.NewType[question]("found")
	p := agent.New("look", found, script.New(script.Call("a", `{"q":1}`), script.Call("b", `{"q":2}`), script.Text(`{"text":"x"}`)), agent.Config{
		User: agent.Prompt(asked, func(q question) string { return q.Text }), Use: []agent.Middleware{echo("a"), echo("b")},
	})
	expected := []any{"a", map[string]any{"name": "b", "input": map[string]any{"q": 3}}, "c"}
	r, err := eval.Run(t.Context(), eval.Config{
		Pipeline: p, Data: eval.Data{Rows: []any{map[string]any{"text": "go", "expected": expected}}},
		Scorers: scorers(t, "order=tools:order", "set=tools:set", "arguments=tools:arguments"),
	}, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{2. / 3, .8, 1. / 3} {
		if s := r.Scores[i]; s.Mean < want-1e-9 || s.Mean > want+1e-9 {
			t.Errorf("%s is %v, want %v: %+v", s.Name, s.Mean, want, r.Failures)
		}
	}
}

func TestJudges(t *testing.T) {
	biased := func(_ context.Context, in map[string]any) (map[string]any, error) {
		if pair, ok := in["out"].([]any); ok { // prefers whatever is first, and the longer one
			if len(pair[1].(string)) > len(pair[0].(string))+3 {
				return map[string]any{"score": 1}, nil
			}
			return map[string]any{"score": 0}, nil
		}
		if in["expected"] == in["out"] {
			return map[string]any{"score": 0.75, "reasons": []string{"fine"}}, nil
		}
		return map[string]any{"score": 0}, nil
	}
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{
		ID: "judge", Intents: []string{terms.Grade}, Out: terms.EvalAnswer, Cost: call.Cost{USD: 0.25},
	}, biased))}
	read := func(text string) []eval.Scorer {
		s, err := eval.Read(app, text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := reportOf(t, `"A"`, `"A"`, read("judge:Is it right?"))
	if s := r.Scores[0]; s.Mean != .75 || s.Wrong != 1 || r.Cost.JudgesUSD != .25 || r.Cost.USD != 0 {
		t.Errorf("%+v", r)
	}
	for answer, want := range map[string]float64{`"same"`: .5, `"a much longer one"`: 1} {
		r := reportOf(t, answer, `"gold"`, read("pairwise:Which is better?"))
		if s := r.Scores[0]; s.Mean != want || r.Cost.JudgesUSD != .5 {
			t.Errorf("%s: %+v", answer, r)
		}
	}
	// A judge that fails is an error.
	down := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "judge", Intents: []string{terms.Grade}},
		func(context.Context, any) (string, error) { return "", stone.Fail(reasons.Unavailable, "down") }))}
	s, err := eval.Read(down, "judge:x")
	if err != nil {
		t.Fatal(err)
	}
	if got := scoreOf(t, `"A"`, `"A"`, s); got.Errors != 1 || got.N != 0 {
		t.Errorf("%+v", got)
	}
}

// TestJudgesAreNotPaidTwice adds a scorer to a run with a judge, which is not asked again.
func TestJudgesAreNotPaidTwice(t *testing.T) {
	var asks, grades atomic.Int32
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "judge", Intents: []string{terms.Grade}},
		func(context.Context, any) (map[string]any, error) {
			grades.Add(1)
			return map[string]any{"score": 1}, nil
		}))}
	db := memdb.New(t)
	for i, texts := range [][]string{{"judge:Is it right?"}, {"exact", "judge:Is it right?"}} {
		s, err := eval.Read(app, texts...)
		if err != nil {
			t.Fatal(err)
		}
		opts := journal.Options{}
		if i > 0 {
			opts.Reuse = "run0"
		}
		r, err := eval.Run(t.Context(), eval.Config{Pipeline: shout(&asks), Data: rows("a", "b"), Scorers: s, Trials: 2},
			stone.Config{RunID: fmt.Sprint("run", i), Recorder: journal.Keep(db, opts)})
		if err != nil || r.Scores[0].Mean != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if asks.Load() != 4 || grades.Load() != 4 {
		t.Errorf("%d answers and %d grades, want 4 of each", asks.Load(), grades.Load())
	}
}

// TestBudget stops when the budget is exhausted, and makes no score of that.
func TestBudget(t *testing.T) {
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "m", Cost: call.Cost{USD: 1}},
		func(_ context.Context, q question) (string, error) { return strings.ToUpper(q.Text), nil }))}
	p := call.New("ask", reply, call.Spec{Applicator: app, Cap: "m", Input: call.From(asked)})
	data := rows("a", "b", "c", "d")
	account := budget.New(budget.Limits{USD: new(2.0)})
	_, err := eval.Run(budget.With(t.Context(), account), eval.Config{Pipeline: p, Data: data, Scorers: scorers(t, "exact")}, stone.Config{})
	if err == nil || !strings.Contains(err.Error(), budget.Kind) {
		t.Fatalf("got %v, want %s", err, budget.Kind)
	}
	if spent := account.Spent().USD; spent != 2 {
		t.Errorf("spent $%v, want $2", spent)
	}
	r, err := eval.Run(t.Context(), eval.Config{Pipeline: p, Data: data, Scorers: scorers(t, "exact")}, stone.Config{})
	if err != nil || r.Cost.USD != 4 || r.Scores[0].Mean != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
