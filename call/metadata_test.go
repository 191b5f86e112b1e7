package call_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
)

func readMetadata(t *testing.T, id, text string) (call.Metadata, form.Faults) {
	t.Helper()
	v, err := edn.ReadEither([]byte(text), edn.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := call.Metadata{ID: id}
	return m, form.Read(v, func(f *form.Map) { form.Into(f, &m) })
}

func TestReadMetadata(t *testing.T) {
	want := call.Metadata{
		ID: "llm/code", Kind: "llm", Version: "2026-02-15", Intents: []string{"code/patch"},
		In: "req/code", Out: "res/patch", CanProduce: []string{"plan", "value"}, Effects: []string{},
		Tags:   []string{"coding", "go"},
		Cost:   call.Cost{Latency: 1200 * time.Millisecond, USD: 0.01, Price: budget.Price{In: 3, Out: 15}},
		Limits: call.Limits{Timeout: 15 * time.Second, Concurrency: 4, PerMinute: 60},
	}
	for name, text := range map[string]string{
		"edn": `{:cap/id :llm/code :cap/kind :llm :cap/version "2026-02-15" :cap/intents #{:code/patch}
			:io/in-schema :req/code :io/out-schema :res/patch :cap/can-produce #{:value :plan}
			:cap/effects-allowed #{:none} :cap/tags #{:go :coding}
			:cap/cost {:latency-ms 1200 :usd 0.01 :usd-per-mtok-in 3 :usd-per-mtok-out 15}
			:cap/limits {:timeout-ms 15000 :concurrency 4 :per-minute 60}}`,
		"json": `{"cap/id": "llm/code", "cap/kind": "llm", "cap/version": "2026-02-15", "cap/intents": ["code/patch"],
			"io/in-schema": "req/code", "io/out-schema": ":res/patch", "cap/can-produce": ["value", "plan"],
			"cap/effects-allowed": ["none"], "cap/tags": ["go", "coding"],
			"cap/cost": {"latency-ms": 1200, "usd": 0.01, "usd-per-mtok-in": 3.0, "usd-per-mtok-out": 15},
			"cap/limits": {"timeout-ms": 15000, "concurrency": 4, "per-minute": 60}}`,
	} {
		got, faults := readMetadata(t, "", text)
		if diff := gocmp.Diff(want, got); diff != "" || faults != nil {
			t.Errorf("%s: %v\n%s", name, faults, diff)
		}
		if err := got.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		data, err := json.Marshal(got)
		again, faults := readMetadata(t, "", string(data))
		again.Effects = want.Effects // none is not written
		if diff := gocmp.Diff(want, again); diff != "" || faults != nil || err != nil {
			t.Errorf("%s: written as %s: %v, %v\n%s", name, data, err, faults, diff)
		}
	}
}

func TestReadMetadataFaults(t *testing.T) {
	for _, tc := range []struct{ id, text, want string }{
		{"", `{}`, "1:1: cap/id: the field \"cap/id\" is missing"},
		{"a/b", `{}`, ""},
		{"a/b", `{:cap/id :a/c}`, `1:10: cap/id: expected "a/b", under which it is registered, found "a/c"`},
		{"a", `{:cap/version :v1}`, "1:15: cap/version: expected a string, found the keyword :v1"},
		{"a", `{:cap/version 2}`, "1:15: cap/version: expected a string, found 2"},
		{"a", `{:cap/can-produce #{:valeu}}`, `1:19: cap/can-produce: unknown type of reply "valeu"; known are value, plan, stream; did you mean "value"?`},
		{"a", `{:cap/limits {:timeout-ms 0}}`, "1:27: cap/limits.timeout-ms: expected at least 1, found 0"},
		{"a", `{:cap/limits {:concurrency 0}}`, "1:28: cap/limits.concurrency: expected an integer from 1 to 1000000, found 0"},
		{"a", `{:cap/cost {:usd -0.5}}`, "1:18: cap/cost.usd: expected a number of at least 0, found -0.5"},
		{"a", `{:cap/tag #{:x}}`, `1:2: cap/tag: unknown field cap/tag; known are cap/can-produce, cap/cost, cap/effects-allowed, cap/id, cap/intents, cap/kind, cap/limits, cap/needs, cap/tags, cap/version, io/in-schema, io/out-schema; did you mean "cap/tags"?`},
	} {
		_, faults := readMetadata(t, tc.id, tc.text)
		got := ""
		if len(faults) > 0 {
			got = faults.Error()
		}
		if got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.text, got, tc.want)
		}
	}
}

func TestMetadataCheck(t *testing.T) {
	bad := call.Metadata{
		ID: "a b", Kind: ":llm", Intents: []string{"x", "x", ""}, In: "1", CanProduce: []string{"table"},
		Cost: call.Cost{USD: -1}, Limits: call.Limits{Timeout: -time.Second, Concurrency: -1},
	}
	want := []string{
		`cap/can-produce: expected value, plan, stream, found "table"`,
		`cap/cost.usd: expected a number of at least 0, found -1`,
		`cap/id: expected a name such as text/respond, found "a b"`,
		`cap/intents: "x" appears twice`,
		`cap/intents: expected a name such as text/respond, found ""`,
		`cap/kind: expected a name such as text/respond, found ":llm"`,
		`cap/limits.concurrency: expected a number of at least 0, found -1`,
		`cap/limits.timeout-ms: expected a number of at least 0, found -1000`,
		`io/in-schema: expected a name such as text/respond, found "1"`,
	}
	for i, w := range want {
		want[i] = `capability "a b": ` + w
	}
	if diff := gocmp.Diff(strings.Join(want, "\n"), bad.Check().Error()); diff != "" {
		t.Error(diff)
	}
	if err := (call.Metadata{ID: "a", CanProduce: []string{}}).Check(); err == nil {
		t.Error("a capability that can produce nothing passed")
	}
}

func TestPrice(t *testing.T) {
	c := call.Cost{USD: 0.5, Price: budget.Price{In: 2, Out: 10}}
	if got := c.Of(budget.Usage{InputTokens: 1_000_000, OutputTokens: 100_000}); got != 3.5 {
		t.Errorf("got %v, want 3.5", got)
	}
}
