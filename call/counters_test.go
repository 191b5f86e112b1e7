package call_test

import (
	"encoding/json"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
)

func TestCounters(t *testing.T) {
	missed, grade := []string{"c/dry"}, 0.7
	records := []call.Record{
		{Tried: []call.Attempt{{Cap: "a", Judge: &grade}}},
		{Failure: reasons.MustFailed, Tried: []call.Attempt{
			{Cap: "a", MustFailed: missed}, {Cap: "a", Repair: true, MustFailed: missed}, {Cap: "a"}, {Cap: "b", Judge: &grade, Failure: reasons.LowScore}, {Cap: "b"}, {Cap: "c", Failure: "judge/invalid"},
		}},
		{Failure: reasons.NoCandidate},
		{Failure: reasons.SchemaInvalid, Tried: []call.Attempt{{Cap: "a"}, {Cap: "fix", Repair: true}}},
	}
	want := call.Tally{
		Calls: 4, Succeeded: 1, Failed: 3, Retries: 2, FallbackHops: 2, Attempts: 9, MustFailed: 2, JudgeUsed: 3, JudgePass: 1,
		FailureTypes: map[string]int{reasons.MustFailed: 1, reasons.NoCandidate: 1, reasons.SchemaInvalid: 1},
	}
	var c, none *call.Counters
	c = new(call.Counters)
	var all sync.WaitGroup
	for _, r := range records {
		all.Go(func() { c.Count(&r); none.Count(&r) })
	}
	all.Wait()
	if diff := gocmp.Diff(want, c.Tally()); diff != "" {
		t.Error(diff)
	}
	if diff := gocmp.Diff(call.Tally{}, none.Tally()); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(c.Tally().KPIs())
	const rates = `{"parse-rate":0.75,"retry-rate":0.5,"fallback-rate":0.5,"judge-pass-rate":0.3333333333333333,` +
		`"must-failed-rate":0.2222222222222222,"by-type":{"dispatch/no-candidate":1,"eval/must-failed":1,"schema/invalid":1},` +
		`"by-domain":{"dispatch":1,"eval":1,"schema":1}}`
	if err != nil || string(text) != rates {
		t.Errorf("got %s, %v\nwant %s", text, err, rates)
	}
}
