package codegate

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/boxtest"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/x/eval"
)

func route(t *testing.T, args ...string) eval.RoutingReport {
	t.Helper()
	need.Program(t, python)
	boxtest.NeedAny(t)
	p, err := Pipeline(args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := stone.Produce(t.Context(), p, eval.Routed, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Text)
	return r
}

// TestFive runs five tasks. The small model solves a, fails only the hidden test of b, fails c and d,
// and needs the network in e. The large model fails d.
func TestFive(t *testing.T) {
	r := route(t, "--data", "testdata/five.jsonl", "--small", "small", "--large", "large")
	if r.Cases != 5 || r.Ways[0].Mean != 0.6 || r.LargeShare.Mean != 0.6 || r.Ways[2].Mean != 0.2 || r.Ways[1].Mean != 0.8 {
		t.Errorf("%+v", r)
	}
}

// TestRecording runs programs that real models wrote.
func TestRecording(t *testing.T) {
	recording := need.Recorded(t, "data/humaneval/responses.jsonl")[0]
	need.Time(t)
	if r := route(t, "--data", recording); r.Cases != 82 || r.GapRecovered.Mean < 0.9 || r.LargeShare.Mean > 0.3 {
		t.Errorf("%+v", r)
	}
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"want --data FILE": nil,
		`x: testdata/five.jsonl has no answers with the text at "responses.x.text"`: {"--data", "testdata/five.jsonl", "--small", "x"},
		"no such file": {"--data", "there.jsonl"},
	} {
		if _, err := Pipeline(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}
