package call_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/schema"
)

// request returns an envelope in which one part is another, or not there ("-").
func request(part, text string) string {
	parts := map[string]string{
		"proto": "1", "trace": `{:id "a"}`, "task": "{:intent :a/b}", "input": "{}",
	}
	parts[part] = text
	var b strings.Builder
	for _, name := range []string{"proto", "trace", "task", "input", part} {
		if v := parts[name]; v != "" && v != "-" {
			fmt.Fprintf(&b, ":%s %s ", name, v)
		}
		delete(parts, name)
	}
	return "{" + b.String() + "}"
}

func TestReasons(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "request/malformed"},
		{"[]", "request/invalid"},
		{`{"a": `, "request/malformed"},
		{"{}", "proto/missing trace/missing task/missing input/missing"},
		{request("proto", "2"), "proto/unsupported"},
		{request("proto", `"1"`), "proto/unsupported"},
		{request("proto", "1.0"), "proto/unsupported"},
		{`{:proto 7 :anything {:else #{}}}`, "proto/unsupported"},
		{request("proto", "-"), "proto/missing"},
		{request("trace", "-"), "trace/missing"},
		{request("trace", `"r-1"`), "trace/invalid"},
		{request("trace", "{}"), "trace/id-missing"},
		{request("trace", "{:id :a}"), "trace/id-invalid"},
		{request("trace", `{:id " "}`), "trace/id-invalid"},
		{request("trace", `{:id "a" :turn -1}`), "trace/turn-out-of-range"},
		{request("trace", `{:id "a" :turm 1}`), "trace/unknown-keys"},
		{request("task", "-"), "task/missing"},
		{request("task", "{}"), "intent/missing"},
		{request("task", `{:intent "a/b"}`), "intent/invalid"},
		{request("task", "{:intent :a :cap/id :b}"), "task/unknown-keys"},
		{request("task", "{:intent :a :requires {:mood :calm}}"), "requires/unknown-keys"},
		{request("task", "{:intent :a :requires {1 2}}"), "requires/unknown-keys"},
		{request("task", "{:intent :a :requires {:cap/tags [:b 1]}}"), "requires/cap-tags-invalid"},
		{request("task", "{:intent :a :requires {:reply :stream}}"), "requires/reply-unknown"},
		{request("task", "{:intent :a :dispatch []}"), "dispatch/invalid"},
		{request("task", "{:intent :a :dispatch {:strategy :rase}}"), "dispatch/strategy-unknown"},
		{request("task", "{:intent :a :dispatch {:candidates [:b :b]}}"), "dispatch/candidates-duplicate"},
		{request("task", "{:intent :a :dispatch {:allow-failure? 1}}"), "dispatch/allow-failure-invalid"},
		{request("task", "{:intent :a :dispatch {:repair {:cap/id 1}}}"), "dispatch/repair-cap-id-invalid"},
		{request("task", "{:intent :a :dispatch {:retry {:max 1}}}"), "dispatch/retry-unknown-keys"},
		{request("input", "-"), "input/missing"},
		{request("input", `"text"`), "input/invalid"},
		{request("input", "{1 2}"), "input/invalid"},
		{request("context", "[1]"), "context/invalid"},
		{request("constraints", "nil"), "constraints/invalid"},
		{request("done", "{:score-min 1.2}"), "done/score-min-out-of-range"},
		{request("done", "{:must :a}"), "done/must-invalid"},
		{request("done", `{:must #{"a"}}`), "done/must-invalid"},
		{request("budget", "{:max-usd -1}"), "budget/max-usd-out-of-range"},
		{request("budget", "{:max-tokens 1.5}"), "budget/max-tokens-invalid"},
		{request("effects", "{}"), "effects/allowed-missing"},
		{request("effects", "#{:net}"), "effects/invalid"},
		{request("priority", "3"), "request/unknown-keys"},
		{request("trace", "1") + "x", "request/malformed"},
		{`{:proto 1 :trace {} :task {:intent 1} :input 2 :more 3}`, "trace/id-missing intent/invalid input/invalid request/unknown-keys"},
	} {
		_, _, err := call.ReadRequest([]byte(tc.text))
		var got []string
		if err != nil {
			e := call.AsError(err)
			var details struct{ Faults []struct{ Reason string } }
			if jsonErr := json.Unmarshal(e.Details, &details); jsonErr != nil || e.Type != reasons.InvalidRequest {
				t.Fatalf("%s: %v, %v", tc.text, err, jsonErr)
			}
			for _, f := range details.Faults {
				got = append(got, f.Reason)
			}
			if e.Reason() != got[0] || !strings.Contains(err.Error(), got[0]) {
				t.Errorf("%s: reason %q, error %v; want %q", tc.text, e.Reason(), err, got[0])
			}
		}
		if diff := gocmp.Diff(strings.Fields(tc.want), got); diff != "" {
			t.Errorf("%s:\n%s", tc.text, diff)
		}
	}
}

const whole = `{:proto 1 :trace {:id "r-1" :turn 17}
	:task {:intent :code/patch
	       :requires {:reply :value :in-schema :req/code :out-schema :res/patch+tests :cap/kind :llm :cap/tags #{:go}}
	       :dispatch {:candidates [:llm/code :llm/meta] :strategy :race :hedge-ms 250 :allow-failure? true
	                  :repair {:cap/id :llm/fix :max 2} :retry {:same-cap-max 1 :fallback-max 0}
	                  :switch-on #{} :policy :quality-aware}}
	:input {:task "Fix it" :lang :go :n 12345678901234567890}
	:context {:summary "short"} :constraints {:no-web true}
	:done {:must #{:schema-valid :patch-applies} :should #{:tests-pass} :score-min 0.8}
	:budget {:max-tokens 1200 :max-roundtrips 0 :max-usd 0.5 :latency-ms 2000}
	:effects {:allowed #{:net/http :none}}}`

func TestWholeRequest(t *testing.T) {
	trace, spec, err := call.ReadRequest([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	one, none, min := 1, 0, 0.8
	want := call.Spec{
		Intent: "code/patch",
		Requires: call.Requires{Reply: "value", InSchema: "req/code", OutSchema: "res/patch+tests",
			Kind: "llm", Tags: []string{"go"}},
		Dispatch: call.Dispatch{Candidates: []string{"llm/code", "llm/meta"}, Strategy: call.Race,
			Hedge: 250 * time.Millisecond, AllowFailure: true, Repair: &call.Repair{Cap: "llm/fix", Max: 2},
			Retry: call.Retry{SameCapMax: &one, FallbackMax: &none}, SwitchOn: []string{}, Policy: "quality-aware"},
		Done:    call.Done{Must: []string{"patch-applies", "schema-valid"}, Should: []string{"tests-pass"}, ScoreMin: &min},
		Budget:  call.Budget{Tokens: new(1200), Roundtrips: new(0), USD: new(0.5), Latency: new(2 * time.Second)},
		Effects: []string{"net/http"},
	}
	parts := []string{
		constant(t, spec.Input), constant(t, spec.Context), constant(t, spec.Constraints),
	}
	spec.Input, spec.Context, spec.Constraints = nil, nil, nil
	if diff := gocmp.Diff(want, spec); diff != "" {
		t.Error(diff)
	}
	if diff := gocmp.Diff(call.Trace{ID: "r-1", Turn: 17}, trace); diff != "" {
		t.Error(diff)
	}
	if diff := gocmp.Diff([]string{`{"lang":"go","n":12345678901234567890,"task":"Fix it"}`, `{"summary":"short"}`, `{"no-web":true}`}, parts); diff != "" {
		t.Error(diff)
	}
}

func constant(t *testing.T, part dag.Reader[any]) string {
	t.Helper()
	if part == nil {
		return ""
	}
	v, err := part.From(dag.DAG{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestCheckRequest(t *testing.T) {
	deep, err := schema.Parse([]byte(`{"type": "object", "required": ["depth"]}`))
	if err != nil {
		t.Fatal(err)
	}
	app := &call.Applicator{
		Intents: map[string]call.Intent{"soil/test": {In: "app/sample"}, "soil/dig": {}, "soil/lost": {In: "app/none"}, "soil/ask": {In: "req/text"}},
		Schemas: map[string]*schema.Schema{"app/sample": deep},
	}
	for _, tc := range []struct{ intent, input, want string }{
		{"soil/test", `{:depth 1}`, ""},
		{"soil/dig", `{}`, ""},
		{"soil/ask", `{:prompt "how deep?"}`, ""},
		{"soil/ask", `{:prompt " "}`, "input/schema-invalid"},
		{"soil/test", `{:dept 1}`, "input/schema-invalid"},
		{"soil/burn", `{}`, "intent/not-supported"},
		{"soil/lost", `{}`, "unknown-schema"},
	} {
		_, spec, err := call.ReadRequest([]byte(`{:proto 1 :trace {:id "a"} :task {:intent :` + tc.intent + `} :input ` + tc.input + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := app.CheckRequest(spec); err != nil {
			got = call.AsError(err).Reason()
		}
		if got != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.intent, tc.input, got, tc.want)
		}
		if err := new(call.Applicator).CheckRequest(spec); err != nil {
			t.Errorf("%s: where any intent is known: %v", tc.intent, err)
		}
	}
}

func TestRefuseRequest(t *testing.T) {
	warning := stone.Finding{Type: "unused-produce", Warning: true}
	if err := call.RefuseRequest(stone.Findings{warning}); err != nil {
		t.Errorf("refused for a warning: %v", err)
	}
	err := call.RefuseRequest(stone.Findings{warning, {Type: "unknown-check", Message: `no check "c/dry"`, Suggestion: "c/day"}})
	if got := call.AsError(err); got.Type != reasons.InvalidRequest || got.Reason() != "unknown-check" {
		t.Errorf("got %v", err)
	}
}

// What a capability outside is sent is a request that Stone reads as the same.
func TestRequestIsWrittenAsItIsRead(t *testing.T) {
	_, want, err := call.ReadRequest([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(sent(t, call.Trace{ID: "r-1", Turn: 17}, want))
	if err != nil {
		t.Fatal(err)
	}
	trace, got, err := call.ReadRequest(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if trace != (call.Trace{ID: "r-1", Turn: 17}) {
		t.Errorf("trace %+v", trace)
	}
	sameSpec(t, want, got)
}

// sent is the request with which a capability is asked for what a spec says.
func sent(t *testing.T, trace call.Trace, s call.Spec) *call.Request {
	return &call.Request{
		Trace: trace, Intent: s.Intent, Cap: "llm/code", Key: "k", Attempt: 2, Voice: new(event.Voice),
		Input: call.JSON(constant(t, s.Input)), Context: call.JSON(constant(t, s.Context)),
		Constraints: call.JSON(constant(t, s.Constraints)),
		Requires:    s.Requires, Done: s.Done, Budget: s.Budget, Effects: s.Effects,
	}
}

// sameSpec compares what an envelope to a capability holds of two specs.
func sameSpec(t *testing.T, want, got call.Spec) {
	t.Helper()
	for name, pair := range map[string][2]any{
		"intent": {want.Intent, got.Intent}, "requires": {want.Requires, got.Requires},
		"done": {want.Done, got.Done}, "budget": {want.Budget, got.Budget},
		"input":       {constant(t, want.Input), constant(t, got.Input)},
		"context":     {constant(t, want.Context), constant(t, got.Context)},
		"constraints": {constant(t, want.Constraints), constant(t, got.Constraints)},
		"effects":     {append([]string{}, want.Effects...), append([]string{}, got.Effects...)},
	} {
		if diff := gocmp.Diff(pair[0], pair[1], emptyIsNil); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// emptyIsNil: an empty list of names is not written.
var emptyIsNil = gocmp.Transformer("empty", func(names []string) string { return strings.Join(names, " ") })

func TestHostileRequests(t *testing.T) {
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for name, text := range map[string]string{
		"100 MB":              `{:proto 1 :input {:a "` + strings.Repeat("x", 100<<20) + `"}}`,
		"10,000 levels":       request("input", "{:a "+deep+"}"),
		"10,000 JSON levels":  `{"proto": 1, "input": {"a": ` + deep + `}}`,
		"duplicate keys":      `{"proto": 1, "proto": 1}`,
		"two spellings":       `{"proto": 1, ":proto": 2, "trace": {"id": "a"}, "task": {"intent": "a"}, "input": {}}`,
		"a number too large":  request("trace", `{:id "a" :turn 1`+strings.Repeat("0", 9000)+`}`),
		"NaN":                 request("done", "{:score-min ##NaN}"),
		"infinite money":      request("budget", "{:max-usd ##Inf}"),
		"not UTF-8":           "{:proto \xff}",
		"a principal in data": request("principal", `{:id "root" :roles #{:owner}}`),
		"a grant in data":     request("grant", "#{:fs/write}"),
	} {
		var err error
		took := cputime.Units(func() { _, _, err = call.ReadRequest([]byte(text)) })
		t.Logf("%s: %.1f units", name, took)
		if err == nil || call.AsError(err).Type != reasons.InvalidRequest || len(err.Error()) > 500 {
			t.Errorf("%s: got %.200v", name, err)
		}
		if took > 100 {
			t.Errorf("%s: took %.1f units of work", name, took)
		}
	}
}
