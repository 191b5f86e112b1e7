package cascade

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/x/eval"
)

// recording returns the file with the answers of the two models.
func recording(t *testing.T) string {
	t.Helper()
	return need.Recorded(t, "data/gsm8k/responses.jsonl")[0]
}

func route(t *testing.T, args ...string) eval.RoutingReport {
	t.Helper()
	p, err := Pipeline(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range stone.Validate(p, stone.Given{}) {
		t.Errorf("finding: %s", f)
	}
	r, err := stone.Produce(t.Context(), p, eval.Routed, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The claim of the example: on the test split, which chose nothing, and with its interval of 95 %.
func TestThesis(t *testing.T) {
	r := route(t, "--data", recording(t), "--split", eval.TestSplit)
	t.Log(r.Text)
	for _, w := range r.Ways {
		if w.N != 313 || w.Errors+w.NoAnswer > 0 {
			t.Errorf("%s: %d questions, %d errors, %d without an answer, want 313 answers", w.Name, w.N, w.Errors, w.NoAnswer)
		}
	}
	for _, c := range []struct {
		name            string
		got             eval.Estimate
		mean, low, high float64
	}{
		{"of the gap", r.GapRecovered, .592, .455, .759},
		{"large calls", r.LargeShare, .214, .172, .263},
		{"of the cost", r.CostShare, .280, .224, .336},
	} {
		if near := func(a, b float64) bool { return math.Abs(a-b) < .0005 }; !near(c.got.Mean, c.mean) || !near(c.got.Low, c.low) || !near(c.got.High, c.high) {
			t.Errorf("%s: %.3f, %.3f to %.3f; want %.3f, %.3f to %.3f", c.name, c.got.Mean, c.got.Low, c.got.High, c.mean, c.low, c.high)
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "responses.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestFive runs five short questions. The small model is right; wrong, as its calculation shows;
// wrong, and the large one gives no final answer; silent; wrong, but no check notices.
func TestFive(t *testing.T) {
	r := route(t, "--data", "testdata/five.jsonl")
	if r.Cases != 5 || r.Ways[0].Mean != 0.6 || r.LargeShare.Mean != 0.6 || r.Ways[2].Mean != 0.2 || r.Ways[1].Mean != 0.8 {
		t.Errorf("%+v", r)
	}
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"want --data FILE": nil,
		"no such file":     {"--data", "there.jsonl"},
		`has no answers with the text at "responses.mixtral-8x7b-instruct-v0.1.text"`: {"--data", write(t, "{\"question\": \"?\"}")},
		":2: it answers the same question as line 1":                                  {"--data", write(t, strings.Repeat(`{"question": "?", "responses": {"`+small+`": {"text": "a"}}}`+"\n", 2))},
	} {
		if _, err := Pipeline(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}
