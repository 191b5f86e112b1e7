package view

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/journal"
)

// Steps cost by the capability that they asked, whatever their number and whether they repair.
func TestSpenders(t *testing.T) {
	step := func(kind, name string, usd float64) journal.Step {
		return journal.Step{Kind: kind, Name: name, Path: "p/" + name, Usage: budget.Usage{InputTokens: 10, USD: usd}}
	}
	got, err := Spenders(t.Context(), nil, "r", []journal.Step{
		step("step", "model|small 1", 0.25), step("step", "model|small 2", 0.25), step("step", "model|small 2 repair 1", 0.25),
		step("step", "model|large 1", 2), step("step", "judge model|large 1", 0.5), step("step", "local 1", 0), step("leaf", "count 2", 0.125),
		{Kind: "leaf", Name: "free", Path: "p/free"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range got {
		lines = append(lines, fmt.Sprintf("%s %d %d %v", s.Name, s.Answers, s.InputTokens, s.USD))
	}
	want := []string{"model/large 1 10 2", "model/small 3 30 0.75", "judges 1 10 0.5", "count 2 1 10 0.125", "local 1 10 0"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

// Equal refusals of a call are one, and what was chosen or stopped is none.
func TestRefusals(t *testing.T) {
	must := func(state, why string) []call.Verdict {
		return []call.Verdict{{By: "polite", As: "should", State: "failed", Why: "rude"}, {By: "cites", As: "must", State: state, Why: why}}
	}
	got := refusals("p/c", &call.Record{Cap: "large", Tried: []call.Attempt{
		{Cap: "down", Number: 1, Failure: call.Unavailable, Error: "503"},
		{Cap: "m/small", Number: 1, Failure: call.MustFailed, Verdicts: must("failed", "no source")},
		{Cap: "m/small", Number: 2, Failure: call.MustFailed, Verdicts: must("failed", "no source")},
		{Cap: "m/small", Number: 3, Failure: call.LowScore, Error: "the score is 0.3, want 0.6: polite", Verdicts: must("passed", "")},
		{Cap: "slow", Number: 1, Cancelled: true, Failure: call.Unavailable},
		{Cap: "large", Number: 1, Verdicts: must("passed", "")},
	}})
	want := []Refusal{
		{"p/c/down 1", "down", Failed, "503", 1},
		{"p/c/m|small 1", "m/small", Rejected, "cites: no source", 2},
		{"p/c/m|small 3", "m/small", Rejected, "the score is 0.3, want 0.6", 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
