package cli

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
)

// show lists every finding about a plan, below the attempt that wrote it.
func TestShowListsFindings(t *testing.T) {
	all := stone.Findings{{Type: "unknown-op", Path: "nodes[0].op", Message: "unknown op"}, {Type: "no-candidate", Path: "nodes[1]", Message: "no capability"}}
	var lines []string
	sayCall(func(name, value string) { lines = append(lines, name+"|"+value) }, &call.Record{
		Failure: reasons.PlanInvalid, Tried: []call.Attempt{{Cap: "a/b", Number: 1, Failure: reasons.PlanInvalid, Findings: all}},
	})
	want := "attempt|a/b 1: plan/invalid\n|  " + all[0].String() + "\n|  " + all[1].String()
	if got := strings.Join(lines, "\n"); !strings.Contains(got, want) {
		t.Errorf("show prints\n%s\nwant\n%s", got, want)
	}
}
