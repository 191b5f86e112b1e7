package view_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// A row of an agent or a call says what its step did. An answer that its call did not accept is never
// shown as done.
func TestRowDescribes(t *testing.T) {
	j := memdb.New(t)
	if _, err := j.Acquire(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if err := j.Begin(t.Context(), journal.RunInfo{ID: "r", Pipeline: "all", Started: time.Now()}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
	record := func(path, kind, content string, meta map[string]string) {
		t.Helper()
		key := step.Key{RunID: "r", Path: path, Kind: kind, Name: path[strings.LastIndexByte(path, '/')+1:], Digest: sha256.Sum256([]byte(path))}
		if _, err := j.Do(t.Context(), key, func(context.Context) (step.Record, error) {
			return step.Record{Type: "text", Content: json.RawMessage(content), Meta: meta, Time: time.Now()}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	tried := func(cap, failure string, n int, repair bool) call.Attempt {
		return call.Attempt{Cap: cap, Number: n, Failure: failure, Repair: repair}
	}
	ended := func(r call.Record) map[string]string {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{terms.CallNote: string(text)}
	}
	rejected := []call.Attempt{tried("model/small", reasons.MustFailed, 1, false), tried("model/small", reasons.LowScore, 1, true), tried("model/small", "", 2, false)}
	const reply = `{"reply":{"type":"text","out":"yes"}}`
	rows := []struct {
		path, kind, content string
		meta                map[string]string
		want                string // state, what it did, reason
	}{
		{"agent/turn-1", "step", `{"reply":{"model":"m-1","stop_reason":"tool_use","tool_calls":[{"id":"a","name":"read_file","input":{"line":3,"new_string":"x","path":"mean.go"}},{"id":"b","name":"read_file","input":{}},{"id":"c","name":"shell","input":null,"input_text":"ls\n-l"}]}}`, nil,
			"done calls read_file ×2, shell (m-1 tool_use)"},
		{"agent/tool-1-1", "step", `{"text":"package mean"}`, nil, "done read_file mean.go"},
		{"agent/tool-1-2", "step", `{"text":"no path","failed":true}`, nil, "failed read_file failed: no path"},
		{"agent/tool-1-3", "step", `{"text":""}`, nil, "done shell ls -l"},
		{"agent/tool-1-4", "step", `{"text":""}`, nil, "done"}, // which the turn does not have
		{"agent/tool-1-0", "step", `{"text":""}`, nil, "done"},
		{"agent/tool-9-1", "step", `{"text":""}`, nil, "done"}, // whose turn there is not
		{"agent/turn-2", "step", `{"reply":{"text":"done","stop_reason":"end"}}`, nil, "done answer (end)"},
		{"agent/turn-3", "step", `"of somebody else"`, nil, "done"},
		{"agent/page 1", "step", `"a step of one's own"`, nil, "done"},
		{"call/model|small 1", "step", reply, nil, "rejected model/small eval/must-failed"},
		{"call/model|small 1 repair 1", "step", reply, nil, "rejected model/small repair eval/low-score"},
		{"call/model|small 2", "step", reply, nil, "chosen model/small 2"},
		{"call", "leaf", `"yes"`, ended(call.Record{Intent: "i", Cap: "model/small", Tried: rejected}), "done"},
		{"race/a 1", "step", reply, nil, "chosen a"},
		{"race/b 1", "step", reply, nil, "answer b"},
		{"race/c 1", "step", reply, nil, "canceled c"},
		{"race/d 1", "step", reply, nil, "failed d format/drift"},
		{"race/judge x|y 1", "step", reply, nil, "done judge x/y 1"},
		{"race", "leaf", `"yes"`, ended(call.Record{Cap: "a", Tried: []call.Attempt{tried("a", "", 1, false), tried("b", "", 1, false), {Cap: "c", Number: 1, Cancelled: true}, tried("d", "format/drift", 1, false)}}), "done"},
		{"live/a 1", "step", reply, nil, "answer"}, // the call has not ended
	}
	for _, s := range rows {
		record(s.path, s.kind, s.content, s.meta)
	}
	info, err := j.Find(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	read, err := view.Read(t.Context(), j, info, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range rows { // steps are in the order of their start
		row, err := read.Row(t.Context(), journal.Branch{Path: s.path, Step: &read.All[i], Recorded: 1})
		if err != nil {
			t.Fatal(err)
		}
		by := ""
		if row.By != "" {
			by = "(" + row.By + ")"
		}
		if got := strings.Join(strings.Fields(strings.Join([]string{string(row.State), row.Did, row.Cap, by, row.Reason}, " ")), " "); got != s.want || read.All[i].Path != s.path {
			t.Errorf("%s:\ngot  %s\nwant %s", s.path, got, s.want)
		}
	}
	for path, want := range map[string]string{"race": "race/a 1", "call": "call/model|small 2", "live": "", "agent": ""} {
		if got, err := read.Chosen(t.Context(), path); got != want || err != nil {
			t.Errorf("Chosen(%q) = %q, %v, want %q", path, got, err, want)
		}
	}
}
