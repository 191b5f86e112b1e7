package gemini

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
)

// decode feeds the events, one per line, to a decoder.
func decode(events string) (*llm.Reply, []llm.Delta, error) {
	d := newDecoder("")
	var all, out []llm.Delta
	var err error
	for line := range strings.Lines(events) {
		var done bool
		out, done, err = d.Event(out[:0], "", []byte(line))
		all = append(all, out...)
		if done || err != nil {
			break
		}
	}
	out, end := d.End(out[:0])
	if err == nil {
		err = end
	}
	return d.Reply(), append(all, out...), err
}

// parts returns an event with these parts.
func parts(list string) string {
	return `{"candidates":[{"content":{"parts":[` + list + `],"role":"model"},"index":0}]}` + "\n"
}

// ended returns the last event: a finish reason, and with it more fields of the candidate.
func ended(reason string) string {
	return `{"candidates":[{"finishReason":"` + reason + `"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":9}}` + "\n"
}

// made matches the ids of calls whose server gave none.
var made = regexp.MustCompile(`call_[a-z0-9]{10}_(\d+)`)

func TestStream(t *testing.T) {
	const usage = `"usage":{"input_tokens":5,"output_tokens":9}}`
	const none = `"usage":{"input_tokens":null,"output_tokens":null}}`
	for _, c := range []struct{ name, events, want, err string }{
		{name: "text", events: parts(`{"text":"a"}`) + parts(`{"text":"b\n\"é"},{"text":""}`) + ended("STOP"),
			want: `{"text":"ab\n\"é","stop_reason":"STOP",` + usage},
		{name: "thinking", events: parts(`{"text":"h","thought":true}`) + parts(`{"text":"m","thought":true}`) + parts(`{"text":"a"}`) + ended("STOP"),
			want: `{"text":"a","reasoning":"hm","stop_reason":"STOP",` + usage},
		{name: "signed text stays apart", events: parts(`{"text":"h","thought":true}`) + parts(`{"text":"m","thought":true}`) + parts(`{"text":"a"},{"text":"b"}`) + parts(`{"text":"c","thoughtSignature":"s"}`) + parts(`{"text":"d"}`) + ended("STOP"),
			want: `{"text":"abcd","reasoning":"hm","stop_reason":"STOP","metadata":{"gemini/content":[{"text":"hm","thought":true},{"text":"ab"},{"text":"c","thoughtSignature":"s"},{"text":"d"}]},` + usage},
		{name: "signature without text", events: parts(`{"text":"a"}`) + parts(`{"text":"","thoughtSignature":"s"}`) + ended("STOP"),
			want: `{"text":"a","stop_reason":"STOP","metadata":{"gemini/content":[{"text":"a"},{"text":"","thoughtSignature":"s"}]},` + usage},
		{name: "calls", events: parts(`{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"s"},{"functionCall":{"id":"x","name":"g"}}`) + ended("STOP"),
			want: `{"text":"","tool_calls":[{"id":"call_1","name":"f","input":{"a":1}},{"id":"x","name":"g","input":{}}],"stop_reason":"STOP",
				"metadata":{"gemini/content":[{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"s"},{"functionCall":{"id":"x","name":"g"}}]},` + usage},
		{name: "arguments as a string", events: parts(`{"functionCall":{"name":"f","args":"{\"a\":1}"}}`) + ended("STOP"),
			want: `{"text":"","tool_calls":[{"id":"call_1","name":"f","input":{"a":1}}],"stop_reason":"STOP","metadata":{"gemini/content":[{"functionCall":{"name":"f","args":"{\"a\":1}"}}]},` + usage},
		{name: "the provider's own tools", events: parts(`{"executableCode":{"code":"1+1"}}`) + parts(`{"codeExecutionResult":{"output":"2"}}`) + parts(`{"text":"2"}`) + ended("STOP"),
			want: `{"text":"2","stop_reason":"STOP","metadata":{"gemini/content":[{"executableCode":{"code":"1+1"}},{"codeExecutionResult":{"output":"2"}},{"text":"2"}]},` + usage},
		{name: "the last usage counts", events: `{"usageMetadata":{"promptTokenCount":1,"thoughtsTokenCount":7}}` + "\n" + parts(`{"text":"a"}`) +
			`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":20,"cachedContentTokenCount":4,"toolUsePromptTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":6,"totalTokenCount":31}}` + "\n" + `{"usageMetadata":null}`,
			want: `{"text":"a","stop_reason":"STOP","usage":{"input_tokens":23,"output_tokens":8,"cached_input_tokens":4,"reasoning_tokens":6}}`},
		{name: "candidates are parts of one answer", events: `{"candidates":[{"index":1,"content":{"parts":[{"text":"z"}]},"finishReason":"MAX_TOKENS"},{"index":0,"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`,
			want: `{"text":"za","stop_reason":"STOP",` + none},
		{name: "unknown things", events: "\n" + `{"news":[1],"candidates":[{"groundingMetadata":{},"content":{"parts":[{"text":"a","news":1}]},"safetyRatings":[{"category":"C"}],"finishReason":"STOP"}]}` + "\n" + "[DONE]",
			want: `{"text":"a","stop_reason":"STOP",` + none},
		{name: "a limit", events: parts(`{"text":"a"}`) + ended("MAX_TOKENS"), want: `{"text":"a","stop_reason":"MAX_TOKENS",` + usage},
		{name: "a blocked answer", events: parts(`{"text":"a"}`) + `{"candidates":[{"content":{},"finishReason":"SAFETY","safetyRatings":[{"category":"HATE","blocked":true},{"category":"OTHER"}]}]}`,
			want: `{"text":"a","refusal":"the answer was blocked: SAFETY, HATE","stop_reason":"SAFETY",` + none},
		{name: "a blocked answer with an explanation", events: `{"candidates":[{"finishReason":"MODEL_ARMOR","finishMessage":"Against the rules."}]}`,
			want: `{"text":"","refusal":"Against the rules.","stop_reason":"MODEL_ARMOR",` + none},
		{name: "a blocked prompt", events: `{"promptFeedback":{"blockReason":"OTHER"},"usageMetadata":{"promptTokenCount":5}}`,
			want: `{"text":"","refusal":"the prompt was blocked: OTHER","stop_reason":"OTHER","usage":{"input_tokens":5,"output_tokens":0}}`},

		{name: "a malformed call", events: `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: f("}]}`,
			want: `{"text":"","stop_reason":"MALFORMED_FUNCTION_CALL",` + none, err: "the provider reports: Malformed function call: f( (MALFORMED_FUNCTION_CALL)"},
		{name: "an unknown end", events: parts(`{"text":"a"}`) + ended("OTHER"), want: `{"text":"a","stop_reason":"OTHER",` + usage, err: "the model stopped abnormally: OTHER"},
		{name: "arguments in pieces", events: parts(`{"functionCall":{"name":"f","willContinue":true}}`), want: `{"text":"",` + none, err: "remove streamFunctionCallArguments from Extra"},
		{name: "cut short", events: parts(`{"text":"a"}`), want: `{"text":"a",` + none, err: "cut short"},
		{name: "cut short before the usage is known", events: `{"usageMetadata":{"promptTokenCount":5}}`, want: `{"text":"","usage":{"input_tokens":5,"output_tokens":null}}`, err: "cut short"},
		{name: "call cut short", events: parts(`{"functionCall":{"name":"f"}}`),
			want: `{"text":"","tool_calls":[{"id":"call_1","name":"f","input":{}}],"metadata":{"gemini/content":[{"functionCall":{"name":"f"}}]},` + none, err: "cut short"},
		{name: "error", events: parts(`{"text":"a"}`) + `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`,
			want: `{"text":"a",` + none, err: "The model is overloaded. (UNAVAILABLE, 503)"},
		{name: "error as text", events: `{"error":"busy"}`, want: `{"text":"",` + none, err: "the provider reports: busy"},
		{name: "no JSON", events: parts(`{"text":"a"}`) + "{oops\n", want: `{"text":"a",` + none, err: "breaks the protocol: an event that is not a chunk"},
		{name: "a part that is none", events: parts(`7`), want: `{"text":"",` + none, err: "breaks the protocol: a part that is none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, deltas, err := decode(c.events)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			reply.Usage.Raw = nil
			got, err := json.Marshal(reply)
			if err != nil {
				t.Fatal(err)
			}
			got = made.ReplaceAll(got, []byte("call_$1"))
			if !sameJSON(t, got, []byte(c.want)) {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			checkDeltas(t, reply, deltas)
		})
	}
}

// TestWhole checks documents that are no answer. The recorded exchanges have the others.
func TestWhole(t *testing.T) {
	for doc, want := range map[string]string{
		`{}`: "not an answer", `[]`: "not an answer", `[1]`: "not a chunk", `[`: "a list that is not an answer", "": "not a chunk",
		`{"error":{"code":400,"message":"Bad.","status":"INVALID_ARGUMENT"}}`: "Bad. (INVALID_ARGUMENT, 400)",
		`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`:               "",
	} {
		d := newDecoder("")
		_, err := d.Whole(nil, []byte(doc))
		if err == nil {
			_, err = d.End(nil)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", doc, err, want)
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// checkDeltas checks that the deltas agree with the reply.
func checkDeltas(t *testing.T, reply *llm.Reply, deltas []llm.Delta) {
	t.Helper()
	var all llm.Reply
	calls := 0
	for _, d := range deltas {
		switch d.Kind {
		case llm.Text:
			all.Text += d.Text
		case llm.Reasoning:
			all.Reasoning += d.Text
		case llm.Refusal:
			all.Refusal += d.Text
		case llm.ToolCallStart:
			calls++
		}
	}
	if all.Text != reply.Text || all.Reasoning != reply.Reasoning || all.Refusal != reply.Refusal || calls != len(reply.ToolCalls) {
		t.Errorf("the deltas say %+v and %d calls; the reply %+v", all, calls, reply)
	}
}

// FuzzDecoder looks for panics, for deltas that differ from the reply, and for parts that are not
// sent again as they came.
func FuzzDecoder(f *testing.F) {
	f.Add(parts(`{"text":"a","thought":true},{"text":"b"}`) + parts(`{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"s"}`) + ended("STOP"))
	f.Add(parts(`{"functionCall":{"args":"{"}},{"text":""},{"inlineData":{}}`) + ended("SAFETY"))
	f.Add(`{"promptFeedback":{"blockReason":"x"},"usageMetadata":{"promptTokenCount":1e99}}`)
	f.Fuzz(func(t *testing.T, events string) {
		reply, deltas, _ := decode(events)
		checkDeltas(t, reply, deltas)
		if _, err := json.Marshal(reply); err != nil {
			t.Errorf("%q: the reply is not JSON: %v", events, err)
		}
		if content := reply.Metadata[contentKey]; content != nil && reply.Refusal == "" {
			again, err := json.Marshal(modelParts(reply.Message(), map[string]functionCall{}))
			if err != nil || !sameJSON(t, again, content) {
				t.Errorf("%q: sent again as %s, %v; want %s", events, again, err, content)
			}
		}
	})
}
