package anthropic

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
)

const (
	started = `{"type":"message_start","message":{"id":"m1","model":"m","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}` + "\n"
	stopped = `{"type":"message_stop"}` + "\n"
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

// blockOf returns the events of block 0: its beginning, its deltas, its end.
func blockOf(start string, deltas ...string) string {
	s := `{"type":"content_block_start","index":0,"content_block":` + start + "}\n"
	for _, d := range deltas {
		s += `{"type":"content_block_delta","index":0,"delta":` + d + "}\n"
	}
	return s + `{"type":"content_block_stop","index":0}` + "\n"
}

func ended(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":9}}` + "\n" + stopped
}

func TestStream(t *testing.T) {
	const usage = `"usage":{"input_tokens":5,"output_tokens":9}}`
	tool := `{"type":"tool_use","id":"t1","name":"f","input":{}}`
	for _, c := range []struct{ name, events, want, err string }{
		{name: "text", events: started + blockOf(`{"type":"text","text":"a"}`, `{"type":"text_delta","text":"b\n\"é"}`) + ended("end_turn"),
			want: `{"text":"ab\n\"é","stop_reason":"end_turn",` + usage},
		{name: "usage is replaced", events: started + `{"type":"message_delta","delta":{},"usage":{"input_tokens":7,"output_tokens":3,"cache_read_input_tokens":2,"cache_creation_input_tokens":4,"server_tool_use":null}}` + "\n" + stopped,
			want: `{"text":"","usage":{"input_tokens":13,"output_tokens":3,"cached_input_tokens":2,"cache_write_tokens":4}}`},
		{name: "signed thinking", events: started + blockOf(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"hm"}`, `{"type":"signature_delta","signature":"s"}`) + ended("end_turn"),
			want: `{"text":"","reasoning":"hm","stop_reason":"end_turn","metadata":{"anthropic/content":[{"type":"thinking","thinking":"hm","signature":"s"}]},` + usage},
		{name: "only a signature", events: started + blockOf(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"signature_delta","signature":"s"}`) + ended("end_turn"),
			want: `{"text":"","stop_reason":"end_turn","metadata":{"anthropic/content":[{"type":"thinking","thinking":"","signature":"s"}]},` + usage},
		{name: "redacted thinking", events: started + blockOf(`{"type":"redacted_thinking","data":"x"}`) + ended("end_turn"),
			want: `{"text":"","stop_reason":"end_turn","metadata":{"anthropic/content":[{"type":"redacted_thinking","data":"x"}]},` + usage},
		{name: "compaction", events: started + blockOf(`{"type":"compaction","content":null}`, `{"type":"compaction_delta","content":"sum"}`) + ended("end_turn"),
			want: `{"text":"","stop_reason":"end_turn","metadata":{"anthropic/content":[{"type":"compaction","content":"sum"}]},` + usage},
		{name: "fallback", events: started + blockOf(`{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}}`) + ended("end_turn"),
			want: `{"text":"","stop_reason":"end_turn","metadata":{"anthropic/content":[{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}}]},` + usage},
		{name: "server tool", events: started + blockOf(`{"type":"server_tool_use","id":"s1","name":"web","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"q\":1}"}`) + ended("pause_turn"),
			want: `{"text":"","stop_reason":"pause_turn","metadata":{"anthropic/content":[{"type":"server_tool_use","id":"s1","name":"web","input":{"q":1}}]},` + usage},
		{name: "citations", events: started + blockOf(`{"type":"text","text":"","citations":[]}`, `{"type":"citations_delta","citation":{"n":1}}`, `{"type":"text_delta","text":"a"}`) + ended("end_turn"),
			want: `{"text":"a","stop_reason":"end_turn","metadata":{"anthropic/content":[{"type":"text","text":"a","citations":[{"n":1}]}]},` + usage},
		{name: "call", events: started + blockOf(tool, `{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":"{\"a\":"}`, `{"type":"input_json_delta","partial_json":"1}"}`) + ended("tool_use"),
			want: `{"text":"","tool_calls":[{"id":"t1","name":"f","input":{"a":1}}],"stop_reason":"tool_use",` + usage},
		{name: "call without input", events: started + blockOf(tool, `{"type":"input_json_delta","partial_json":""}`) + ended("tool_use"),
			want: `{"text":"","tool_calls":[{"id":"t1","name":"f","input":{}}],"stop_reason":"tool_use",` + usage},
		{name: "call that begins whole", events: started + blockOf(`{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}`) + ended("tool_use"),
			want: `{"text":"","tool_calls":[{"id":"t1","name":"f","input":{"a":1}}],"stop_reason":"tool_use",` + usage},
		{name: "call cut off", events: started + blockOf(tool, `{"type":"input_json_delta","partial_json":"{\"a\":"}`) + ended("max_tokens"),
			want: `{"text":"","tool_calls":[{"id":"t1","name":"f","input":null,"input_text":"{\"a\":"}],"stop_reason":"max_tokens",` + usage},
		{name: "all of it in message_start", events: `{"type":"message_start","message":{"id":"m1","model":"m","stop_reason":"tool_use","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}],"usage":{"input_tokens":5,"output_tokens":9}}}` + "\n" + stopped,
			want: `{"text":"a","tool_calls":[{"id":"t1","name":"f","input":{"a":1}}],"stop_reason":"tool_use",` + usage},
		{name: "refusal without a block", events: started + `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","explanation":"no"}},"usage":{"output_tokens":9}}` + "\n" + stopped,
			want: `{"text":"","refusal":"no","stop_reason":"refusal",` + usage},
		{name: "unknown things", events: started + `{"type":"ping"}` + "\n" + `{"type":"news","index":4}` + "\n" + blockOf(`{"type":"text","text":"a","x":1}`, `{"type":"news_delta"}`) + ended("end_turn"),
			want: `{"text":"a","stop_reason":"end_turn",` + usage},
		{name: "started twice", events: started + started + blockOf(`{"type":"text","text":"a"}`) + ended("end_turn"),
			want: `{"text":"a","stop_reason":"end_turn",` + usage},

		{name: "another answer in the same stream", events: started + blockOf(`{"type":"text","text":"a"}`) + strings.Replace(started, "m1", "m2", 1) + blockOf(`{"type":"text","text":"b"}`),
			want: `{"text":"a","usage":{"input_tokens":5,"output_tokens":null}}`, err: `of "m2", within "m1"`},
		{name: "cut short", events: started + blockOf(`{"type":"text","text":"a"}`) + `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`,
			want: `{"text":"a","stop_reason":"end_turn",` + usage, err: "cut short"},
		{name: "call cut short", events: started + `{"type":"content_block_start","index":0,"content_block":` + tool + "}\n",
			want: `{"text":"","tool_calls":[{"id":"t1","name":"f","input":null}],"usage":{"input_tokens":5,"output_tokens":null}}`, err: "cut short"},
		{name: "error", events: started + `{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"req_9"}`,
			want: `{"text":"","request_id":"req_9","usage":{"input_tokens":5,"output_tokens":null}}`, err: "busy (overloaded_error, request req_9)"},
		{name: "no beginning", events: blockOf(`{"type":"text","text":"a"}`), want: `{"text":"","usage":{"input_tokens":null,"output_tokens":null}}`, err: "content_block_start before message_start"},
		{name: "delta without a block", events: started + `{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}`,
			want: `{"text":"","usage":{"input_tokens":5,"output_tokens":null}}`, err: "block 3, which has not started"},
		{name: "delta for another kind", events: started + blockOf(tool, `{"type":"text_delta","text":"x"}`),
			want: `{"text":"","tool_calls":[{"id":"t1","name":"f","input":null}],"usage":{"input_tokens":5,"output_tokens":null}}`, err: "text_delta for block 0 of type tool_use"},
		{name: "block twice", events: started + blockOf(`{"type":"text","text":"a"}`) + blockOf(`{"type":"text","text":"b"}`),
			want: `{"text":"a","usage":{"input_tokens":5,"output_tokens":null}}`, err: "block 0 begins twice"},
		{name: "no JSON", events: started + "{oops\n", want: `{"text":"","usage":{"input_tokens":5,"output_tokens":null}}`, err: "breaks the protocol"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, deltas, err := decode(c.events)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			reply.ID, reply.Model, reply.Usage.Raw = "", "", nil
			got, err := json.Marshal(reply)
			if err != nil {
				t.Fatal(err)
			}
			if !sameJSON(t, got, []byte(c.want)) {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			checkDeltas(t, reply, deltas)
		})
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
	var text, reasoning string
	calls := 0
	for _, d := range deltas {
		switch d.Kind {
		case llm.Text:
			text += d.Text
		case llm.Reasoning:
			reasoning += d.Text
		case llm.ToolCallStart:
			calls++
		}
	}
	if text != reply.Text || reasoning != reply.Reasoning || calls != len(reply.ToolCalls) {
		t.Errorf("deltas say %q, %q and %d calls; the reply %q, %q and %d", text, reasoning, calls, reply.Text, reply.Reasoning, len(reply.ToolCalls))
	}
}

// FuzzDecoder looks for panics, and for deltas that differ from the reply.
func FuzzDecoder(f *testing.F) {
	f.Add(started + blockOf(`{"type":"tool_use","id":"t1","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":"{"}`) + ended("max_tokens"))
	f.Add(started + blockOf(`{"type":"compaction","content":null}`, `{"type":"compaction_delta","content":[1]}`) + ended("x"))
	f.Add(started + blockOf(`{"type":"text","text":"","citations":[]}`, `{"type":"citations_delta"}`) + stopped)
	f.Add(`{"type":"message_start","message":{"content":[{"type":"thinking","thinking":"t"}],"usage":{"input_tokens":1e99}}}`)
	f.Fuzz(func(t *testing.T, events string) {
		reply, deltas, _ := decode(events)
		checkDeltas(t, reply, deltas)
		if _, err := json.Marshal(reply); err != nil {
			t.Errorf("%q: the reply is not JSON: %v", events, err)
		}
	})
}
