package agreement

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/x/eval"
)

func run(t *testing.T, args ...string) eval.RoutingReport {
	t.Helper()
	p, err := Pipeline(args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := stone.Produce(t.Context(), p, eval.Routed, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFive runs five short questions. The small models agree on a, b and d, and are wrong about d. The
// large model is wrong about b.
func TestFive(t *testing.T) {
	r := run(t, "--data", "testdata/five.jsonl", "--small", "a,b", "--large", "c")
	if r.Cases != 5 || r.Ways[0].Mean != 0.8 || r.LargeShare.Mean != 0.4 || r.Ways[3].Mean != 0.8 || r.Ways[1].Mean != 0.8 || r.GapRecovered.N != 0 {
		t.Errorf("%+v", r)
	}
}

// TestThesis checks the claim of the example on answers that real models gave.
func TestThesis(t *testing.T) {
	r := run(t, "--data", need.Recorded(t, "data/crux/responses.jsonl")[0])
	t.Log(r.Text)
	if r.Cases != 400 || r.GapRecovered.Mean < 0.80 || r.LargeShare.Mean > 0.42 {
		t.Errorf("%d cases, %.3f of the gap at %.3f large calls: want 400, at least 0.80, at most 0.42", r.Cases, r.GapRecovered.Mean, r.LargeShare.Mean)
	}
	for _, w := range r.Ways {
		if w.Errors > 0 {
			t.Errorf("%s has %d errors", w.Name, w.Errors)
		}
	}
}

// Only the scorer sees the expected answers: without them the same models are asked.
func TestBlind(t *testing.T) {
	data, err := os.ReadFile("testdata/five.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/blind.jsonl"
	var lines []string
	for line := range strings.Lines(string(data)) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		row["answer"] = "unknown"
		changed, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(changed))
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "--data", file, "--small", "a,b", "--large", "c"); r.LargeShare.Mean != 0.4 || r.Ways[0].Mean != 0 {
		t.Errorf("%+v", r)
	}
}

func TestValue(t *testing.T) {
	for _, same := range [][]string{
		{`{"answer": "[1, 'a']"}`, `{"answer": "[1,\"a\"]"}`, "so\n{\"reasoning\": \"x\", \"answer\": [1, \"a\"]}\n```", `{"answer": "[1, 'a']`},
		{`{"answer": "'it'"}`, `{"answer": "it"}`, `{"answer": "\"it\""}`},
		{`{"answer": "('it\\'s', 1.5)"}`, `{"answer": "(\"it's\",  1.5)"}`},
		{`{"answer": "True"}`, `{"answer": " True "}`},
		{`{"answer": "'a\\nb'"}`, `{"answer": "a\nb"}`},
	} {
		for _, text := range same {
			said := func(text string) string {
				v, err := value(text)
				if err != nil {
					t.Error(err)
				}
				return v
			}
			if got, want := said(text), said(same[0]); got != want {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
		}
	}
	if literal("[1, 'a']") == literal("[1, 'b']") || literal("[11]") == literal("[1 1]") || literal("'a b'") == literal("'ab'") {
		t.Error("different values have the same form")
	}
	if v, err := value("I cannot say."); err == nil {
		t.Errorf("got %s from a text without an answer", v)
	}
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"want --data FILE and two small models": {"--small", "a,b"},
		"two small models":                      {"--data", "testdata/five.jsonl", "--small", "a"},
		`x: testdata/five.jsonl has no answers with the text at "responses.x.text"`: {"--data", "testdata/five.jsonl", "--small", "a,b", "--large", "x"},
		"no such file":                        {"--data", "there.jsonl"},
		"flag provided but not defined: -dat": {"--dat", "x"},
	} {
		if _, err := Pipeline(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}
