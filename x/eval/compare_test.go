package eval_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/x/eval"
)

// TestCompare compares two runs, from the DAG of the first and from the file of its baseline.
func TestCompare(t *testing.T) {
	var asks atomic.Int32
	data := rows("a", "b", "c", "d", "e!", "f")
	for i, row := range data.Rows {
		row.(map[string]any)["kind"] = []string{"x", "y"}[i%2]
	}
	data.Slices = []string{"kind"}
	cfg := eval.Config{Pipeline: shout(&asks), Data: data, Scorers: scorers(t, "exact", "contains")}
	p, err := eval.Pipeline(t.Context(), cfg, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := stone.Run(t.Context(), p, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	before, err := eval.BaselineOf("before", result.DAG)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "base.jsonl")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Write(f); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	saved, err := eval.ReadBaseline(file)
	if err != nil {
		t.Fatal(err)
	}
	// Now a and b are wrong, e is right; f is new under another expectation.
	cfg.Pipeline = stone.Func("shout", asked, reply, func(_ context.Context, q question) (string, error) {
		if q.Text < "c" {
			return "?", nil
		}
		return strings.ToUpper(q.Text), nil
	})
	cfg.Data.Rows[5].(map[string]any)["expected"] = "?"
	cfg.Scorers = scorers(t, "exact")
	for _, b := range []*eval.Baseline{before, saved} {
		cfg.Against = b
		cfg.Gate = &eval.Gate{NoWorseThan: map[string]float64{"exact": .9}}
		r, err := eval.Run(t.Context(), cfg, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		c := r.Against
		if c.Cases != 5 || c.New != 1 || c.Missing != 1 || len(c.Scores) != 1 {
			t.Fatalf("%+v", c)
		}
		if path := c.Scores[0].Turned[0].Path; !strings.HasPrefix(path, "eval/groups[") || !strings.HasSuffix(path, "]/group/cases/each[0]") {
			t.Errorf("the path of a turned case is %s", path)
		}
		if s := c.Scores[0]; s.Lost != 2 || s.Gained != 1 || math.Abs(s.Mean+.2) > 1e-9 || s.P != 1 || len(s.Turned) != 3 || len(s.Slices) != 2 {
			t.Errorf("%+v", s)
		}
		if s := r.Scores[0]; len(s.Missed) != s.Wrong || string(s.Missed[0].Expected) != `"A"` || !strings.Contains(s.Missed[0].Input, "a") || string(c.Scores[0].Turned[0].Expected) != `"A"` {
			t.Errorf("what is wrong: %+v", s.Missed)
		}
		if r.Gate.Verdict != eval.CannotTell || r.Gate.Rules[0].Needed == 0 {
			t.Errorf("%+v", r.Gate)
		}
		for _, text := range []string{r.Text(), r.Markdown()} {
			if !strings.Contains(text, "cannot tell") || !strings.Contains(text, "-0.2000") {
				t.Error(text)
			}
		}
		if xml, err := r.JUnit(); err != nil || !strings.Contains(string(xml), `skipped="1"`) {
			t.Errorf("%s, %v", xml, err)
		}
	}
	if err := os.WriteFile(file, []byte("{\"scorers\":[\"a\"]}\n{\"case\":\"x\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := eval.ReadBaseline(file); err == nil || !strings.Contains(err.Error(), "base.jsonl:2: it is not a case: want one with 1 scores") {
		t.Errorf("got %v", err)
	}
}

func TestReadGate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gate.edn")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{:must ["ab"] :never ["refused"] :no-worse-than {:exact 0.02} :at-least {:exact 0.8} :usd-at-most 2.5 :errors-at-most 3
		:routing {:gap-at-least 0.6 :large-at-most 0.3 :cost-at-most 0.5}}`)
	g, err := eval.ReadGate(file)
	if err != nil || g.NoWorseThan["exact"] != .02 || g.AtLeast["exact"] != .8 || g.USDAtMost != 2.5 || g.ErrorsMost != 3 || g.Must[0] != "ab" || g.Never[0] != "refused" ||
		g.Routing != (eval.RoutingRules{GapAtLeast: .6, LargeAtMost: .3, CostAtMost: .5}) {
		t.Errorf("%+v, %v", g, err)
	}
	for text, want := range map[string]string{"{:at-leest {:exact 1}}": "at-least", `{:at-least {:exact "x"}}`: "at-least.exact", "[": "gate.edn"} {
		write(text)
		if _, err := eval.ReadGate(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestGateBounds checks that a gate is rejected if scores between 0 and 1 can never pass or never fail it.
func TestGateBounds(t *testing.T) {
	free := eval.Func("free", func(context.Context, eval.Case) (eval.Score, error) { return eval.Score{Value: 7}, nil })
	for _, c := range []struct {
		gate eval.Gate
		want string
	}{
		{eval.Gate{AtLeast: map[string]float64{"exact": 2}}, "the gate wants exact at least 2, which cannot pass"},
		{eval.Gate{AtLeast: map[string]float64{"exact": 1}}, "the gate wants exact at least 1, which cannot pass"},
		{eval.Gate{AtLeast: map[string]float64{"exact": 0.99, "free": 2, "size": 2}}, ""},
		{eval.Gate{NoWorseThan: map[string]float64{"exact": 5}}, "the gate allows exact to be 5 worse, which cannot fail"},
		{eval.Gate{NoWorseThan: map[string]float64{"exact": 0.99, "free": 5}}, ""},
	} {
		cfg := eval.Config{Pipeline: shout(new(atomic.Int32)), Data: rows("a"), Scorers: append(scorers(t, "exact", "size=cel:2"), free)}
		p, err := eval.Pipeline(t.Context(), cfg, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		result, err := stone.Run(t.Context(), p, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Against, err = eval.BaselineOf("base", result.DAG); err != nil {
			t.Fatal(err)
		}
		cfg.Gate = &c.gate
		_, err = eval.Pipeline(t.Context(), cfg, stone.Config{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.gate, err, c.want)
		}
	}
}
