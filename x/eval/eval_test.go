package eval_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/x/eval"
)

type question struct {
	Text string `json:"text"`
	Hard bool   `json:"hard,omitempty"`
}

var (
	asked = dag.NewType[question]("question")
	draft = dag.NewType[string]("draft")
	reply = dag.NewType[string]("reply")
)

// shout answers with the text in upper case, in two steps, and counts its answers. It is
// wrong about hard questions.
func shout(asks *atomic.Int32, options ...stone.LeafOption) stone.Ashlar {
	return stone.Seq("shout",
		stone.Func("draft", asked, draft, func(_ context.Context, q question) (string, error) { return strings.ToLower(q.Text), nil }),
		stone.Func2("reply", asked, draft, reply, func(_ context.Context, q question, d string) (string, error) {
			asks.Add(1)
			switch {
			case q.Text == "mute":
				return "", stone.Fail("refused", "I say nothing")
			case q.Text == "down":
				return "", stone.Fail(reasons.Unavailable, "no server")
			case q.Hard:
				return "?", nil
			}
			return strings.ToUpper(d), nil
		}, options...))
}

func rows(texts ...string) eval.Data {
	var d eval.Data
	for _, t := range texts {
		text, hard := strings.CutSuffix(t, "!")
		d.Rows = append(d.Rows, map[string]any{"text": text, "hard": hard, "expected": strings.ToUpper(text)})
	}
	return d
}

func scorers(t testing.TB, texts ...string) []eval.Scorer {
	t.Helper()
	all, err := eval.Read(withLanguage, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRun(t *testing.T) {
	var asks atomic.Int32
	r, err := eval.Run(t.Context(), eval.Config{
		Pipeline: shout(&asks), Data: rows("a", "b", "c!", "mute"), Scorers: scorers(t, "exact", "contains"), Trials: 2,
	}, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Scores[0]
	if r.Cases != 4 || s.Mean != .5 || s.Right != 4 || s.Wrong != 2 || s.NoAnswer != 2 || s.Errors != 0 || asks.Load() != 8 {
		t.Errorf("report %+v after %d answers", r, asks.Load())
	}
	if len(r.Failures) != 2 || r.Failures[0].Why != "refused: I say nothing" {
		t.Errorf("failures %+v", r.Failures)
	}
}

// TestReuse adds a scorer to a run: no answer is made again.
func TestReuse(t *testing.T) {
	var asks atomic.Int32
	db := memdb.New(t)
	data := rows("a", "b", "c!")
	run := func(id string, data eval.Data, scores ...string) eval.Report {
		opts := journal.Options{}
		if id != "first" {
			opts.Reuse = "first"
		}
		r, err := eval.Run(t.Context(), eval.Config{Pipeline: shout(&asks), Data: data, Scorers: scorers(t, scores...), Trials: 2},
			stone.Config{RunID: id, Recorder: journal.Keep(db, opts)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	run("first", data, "exact")
	if n := asks.Swap(0); n != 6 {
		t.Fatalf("%d answers, want 6", n)
	}
	if r := run("second", data, "exact", "contains"); asks.Load() != 0 || r.Reused != 6 || r.Scores[1].Mean != r.Scores[0].Mean {
		t.Errorf("%d answers were made again, %+v", asks.Load(), r)
	}
	// Answers from another version of the pipeline are not taken.
	other := eval.Config{Pipeline: shout(&asks, stone.Version("2")), Data: data, Scorers: scorers(t, "exact")}
	if r, err := eval.Run(t.Context(), other, stone.Config{Recorder: journal.Keep(db, journal.Options{Reuse: "first"})}); err != nil || asks.Swap(0) != 3 || r.Reused != 0 {
		t.Errorf("the answers of another version were taken: %+v, %v", r, err)
	}
	more := rows("z", "a", "c!", "b")
	if r := run("third", more, "exact"); asks.Load() != 2 || r.Reused != 6 {
		t.Errorf("%d answers for one further case, want 2; %d reused", asks.Load(), r.Reused)
	}
}

// TestOneStepChanged changes one of five reusable steps. A run that reuses makes the calls that
// differ between the first run and a run that reuses nothing, as the journal explains them.
func TestOneStepChanged(t *testing.T) {
	db := memdb.New(t)
	var ran [5]atomic.Int32
	pipeline := func(changed int, suffix string) stone.Ashlar {
		var steps []stone.Ashlar
		var before dag.Reader[string] = dag.Derive(asked, func(q question) string { return q.Text })
		for i := range ran {
			version := "1"
			if i == changed {
				version = "2"
			}
			out := dag.NewType[string](fmt.Sprint("out", i))
			steps = append(steps, stone.Func(fmt.Sprint("step", i), before, out, func(_ context.Context, s string) (string, error) {
				ran[i].Add(1)
				if i == changed {
					return s + "." + suffix, nil
				}
				return s + ".", nil
			}, stone.Reusable(), stone.Version(version)))
			before = out
		}
		return stone.Seq("five", steps...)
	}
	run := func(id, reuse string, p stone.Ashlar) (made [5]int32) {
		if _, err := eval.Run(t.Context(), eval.Config{Pipeline: p, Data: rows("a", "b", "c"), Scorers: scorers(t, "exact")},
			stone.Config{RunID: id, Recorder: journal.Keep(db, journal.Options{Reuse: reuse})}); err != nil {
			t.Fatal(err)
		}
		for i := range ran {
			made[i] = ran[i].Swap(0)
		}
		return made
	}
	differing := func(id string) (steps [5]int32) {
		differences, err := journal.Diff(t.Context(), db, "first", id)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range differences {
			if n, ok := strings.CutPrefix(d.Name, "step"); ok {
				steps[n[0]-'0']++
			}
		}
		return steps
	}
	if made := run("first", "", pipeline(-1, "")); made != [5]int32{3, 3, 3, 3, 3} {
		t.Errorf("the first run makes %v calls", made)
	}
	for changed := range ran {
		p := pipeline(changed, "!")
		fresh, reusing := fmt.Sprint("fresh", changed), fmt.Sprint("reusing", changed)
		run(fresh, "", p)
		predicted := differing(fresh)
		if predicted[changed] != 3 {
			t.Errorf("step %d is changed, and %v calls are predicted", changed, predicted)
		}
		if made := run(reusing, "first", p); made != predicted {
			t.Errorf("step %d is changed: %v calls are made, %v predicted", changed, made, predicted)
		}
		if after := differing(reusing); after != predicted {
			t.Errorf("step %d is changed: afterwards %v calls differ, %v were predicted", changed, after, predicted)
		}
	}
	// The calls of a step that is changed and returns the same are no difference.
	if made := run("same", "first", pipeline(2, "")); made != [5]int32{2: 3} || differing("same") != [5]int32{} {
		t.Errorf("step 2 returns the same: %v calls are made, %v differ", made, differing("same"))
	}
}

// TestOutage reports a provider that is down as an error, which is no score, and which a later
// run does not reuse.
func TestOutage(t *testing.T) {
	var asks atomic.Int32
	db := memdb.New(t)
	for _, id := range []string{"first", "second"} {
		opts := journal.Options{}
		if id == "second" {
			opts.Reuse = "first"
		}
		r, err := eval.Run(t.Context(), eval.Config{Pipeline: shout(&asks), Data: rows("a", "down"), Scorers: scorers(t, "exact")},
			stone.Config{RunID: id, Recorder: journal.Keep(db, opts)})
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Scores[0]; s.Mean != 1 || s.N != 1 || s.Errors != 1 || len(r.Failures) != 1 {
			t.Errorf("report %+v", r)
		}
	}
	if n := asks.Load(); n != 1+3+3 {
		t.Errorf("%d attempts, want 1 and twice 3", n)
	}
}

func TestData(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var asks atomic.Int32
	for _, c := range []struct{ name, text, want string }{
		{"a.jsonl", `{"text":"a","expected":"A"}` + "\n\n" + `{"text":"b","hard":true,"expected":"B"}`, ""},
		{"b.jsonl", `{"question":{"text":"a"},"expected":"A"}`, ""},
		{"c.jsonl", `{"input":{"text":"a"},"expected":"A"}`, ""},
		{"d.csv", "text,hard,expected\na,false,A\nb,true,B\n", ""},
		{"e.csv", "input,expected\n\"{\"\"text\"\":\"\"a\"\"}\",A\n", ""},
		{"f.jsonl", `{"text":"a"}` + "\n" + `{"text":3}`, "row 2: column text: want string"},
		{"g.jsonl", `{"text":"a"}` + "\nx\n" + `{"other":1}`, "row 2: want a JSON object on one line; row 3: no column for the input \"question\": name one \"question\" or \"hard\" or \"text\" or \"input\""},
		{"h.csv", "text,hard\na,maybe\n", "row 1: column hard: want boolean"},
		{"i.csv", "text,hard\na\n", "row 1: 1 columns, but the header has 2"},
		{"j.csv", "text,text\n", `two columns are named "text"`},
		{"k.jsonl", "", "has no rows"},
		{"l.jsonl", "\ufeff" + `{"text":"a","expected":"A"}` + "\r\n", ""},
		{"m.csv", "\ufeff\"text\",expected\r\na,A\r\n", ""},
		{"n.csv", "text,expected,,\na,A,,\nb,B,,x\n", ""},
	} {
		_, err := eval.Pipeline(t.Context(), eval.Config{Pipeline: shout(&asks), Data: eval.Data{File: file(c.name, c.text)}, Scorers: scorers(t, "exact")}, stone.Config{})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if asks.Load() != 0 {
		t.Error("something ran before the data was checked")
	}
}

func TestSample(t *testing.T) {
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprint("q", i))
	}
	cases := func(change func(*eval.Data)) map[string]bool {
		seen := map[string]bool{}
		d := rows(all...)
		change(&d)
		var asks atomic.Int32
		_, err := eval.Run(t.Context(), eval.Config{Pipeline: shout(&asks), Data: d, Scorers: []eval.Scorer{
			eval.Func("seen", func(_ context.Context, c eval.Case) (eval.Score, error) { return eval.Score{Value: 1}, nil }),
		}}, stone.Config{Watch: nil})
		if err != nil {
			t.Fatal(err)
		}
		seen[fmt.Sprint(asks.Load())] = true
		return seen
	}
	if got := cases(func(d *eval.Data) { d.N, d.Seed = 20, 7 }); !got["20"] {
		t.Errorf("got %v cases, want 20", got)
	}
	dev := cases(func(d *eval.Data) { d.Split = "dev" })
	test := cases(func(d *eval.Data) { d.Split = "test" })
	if dev["0"] || test["0"] || dev["100"] {
		t.Errorf("dev has %v cases, test has %v", dev, test)
	}
	if got := cases(func(d *eval.Data) { d.N = 101 }); !got["100"] {
		t.Errorf("got %v cases, want all 100", got)
	}
	d := rows(all...)
	d.N = -1
	if _, err := eval.Pipeline(t.Context(), eval.Config{Pipeline: shout(new(atomic.Int32)), Data: d, Scorers: scorers(t, "exact")}, stone.Config{}); err == nil || !strings.Contains(err.Error(), "-1 cases") {
		t.Errorf("got %v", err)
	}
}

// TestQuestionWaits ends the run, which is resumed when the question is answered.
func TestQuestionWaits(t *testing.T) {
	db := memdb.New(t)
	who := stone.Ask("who", asked, dag.NewType[stone.Answer]("said"), func(q question) string { return q.Text })
	cfg := eval.Config{Pipeline: who, Data: eval.Data{Rows: []any{map[string]any{"text": "a", "expected": map[string]any{"response": "yes"}}}}, Scorers: scorers(t, "json")}
	run := func() (eval.Report, error) {
		return eval.Run(t.Context(), cfg, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})})
	}
	if _, err := run(); err == nil || !strings.Contains(err.Error(), "waiting") {
		t.Fatalf("got %v, want a run that waits", err)
	}
	qs, err := db.Questions(t.Context(), "r")
	if err != nil || len(qs) != 1 {
		t.Fatal(qs, err)
	}
	if err := journal.Answer(t.Context(), db, "r", qs[0].Path, ask.Answer{Response: "yes"}); err != nil {
		t.Fatal(err)
	}
	r, err := run()
	if err != nil || r.Scores[0].Mean != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestConfigErrors(t *testing.T) {
	var asks atomic.Int32
	p := shout(&asks)
	for want, cfg := range map[string]eval.Config{
		"no pipeline":         {},
		"no scorer":           {Pipeline: p},
		"two scorers":         {Pipeline: p, Scorers: scorers(t, "exact", "exact")},
		"-1 trials":           {Pipeline: p, Scorers: scorers(t, "exact"), Trials: -1},
		"has no data":         {Pipeline: p, Scorers: scorers(t, "exact")},
		"no such file":        {Pipeline: p, Scorers: scorers(t, "exact"), Data: eval.Data{File: "/none.jsonl"}},
		"column answer is mi": {Pipeline: p, Scorers: scorers(t, "exact"), Data: eval.Data{Rows: []any{map[string]any{"text": "a"}}, Expected: "answer"}},
	} {
		if _, err := eval.Pipeline(t.Context(), cfg, stone.Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := eval.Read(nil, "exakt"); err == nil || !strings.Contains(err.Error(), "did you mean exact?") {
		t.Errorf("got %v", err)
	}
}
