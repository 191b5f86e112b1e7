package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

const (
	completed = `{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","output":[]}}`
	addCall   = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"1","name":"f","arguments":""}}`
	message   = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ab"},{"type":"refusal","refusal":"no"}]}`
)

// TestResponsesDialects reads what servers do that is not in the recordings.
func TestResponsesDialects(t *testing.T) {
	whole := func(items string) string {
		return strings.Replace(completed, `"output":[]`, `"output":[`+items+`]`, 1)
	}
	for _, c := range []struct {
		name, events string
		want         string // the reply as JSON, without what every one has
		err          string
	}{
		{name: "the end alone", events: whole(message), want: `{"text":"ab","refusal":"no","stop_reason":"completed"}`},
		{name: "the end has more than the deltas", events: `{"type":"response.output_text.delta","output_index":0,"delta":"a"}
			` + whole(message), want: `{"text":"ab","refusal":"no","stop_reason":"completed"}`},
		{name: "the end has something else", events: `{"type":"response.output_text.delta","output_index":0,"delta":"x"}
			` + whole(`{"type":"message","content":[{"text":"ab"}]}`), want: `{"text":"x","stop_reason":"completed"}`},
		{name: "another id and index at the end", events: `{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"x","content":[]}}
			{"type":"response.output_text.delta","output_index":1,"delta":"ab"}
			{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"x","content":[{"text":"ab"}]}}
			` + whole(`{"type":"message","id":"x","content":[{"text":"ab"}]}`), want: `{"text":"ab","stop_reason":"completed"}`},
		{name: "no status at the end", events: `{"type":"response.output_text.delta","output_index":0,"delta":"a"}
			{"type":"response.completed","response":{}}`, want: `{"text":"a","stop_reason":"completed"}`},
		{name: "a mark after the end", events: completed + "\n[DONE]", want: `{"text":"","stop_reason":"completed"}`},
		{name: "unknown events and fields", events: `{"type":"response.new","output_index":"x?","delta":{"a":1}}
			` + completed, want: `{"text":"","stop_reason":"completed"}`},
		{name: "unknown kinds of deltas", events: `{"type":"response.image.delta","output_index":0,"delta":{"a":1}}
			{"type":"response.output_text.delta","output_index":0,"delta":{"a":1}}
			{"type":"response.function_call_arguments.delta","output_index":4,"delta":"{}"}
			` + completed, want: `{"text":"","stop_reason":"completed"}`},
		{name: "refusal", events: `{"type":"response.refusal.delta","output_index":0,"delta":"I won't"}
			` + completed, want: `{"text":"","refusal":"I won't","stop_reason":"completed"}`},
		{name: "summary and reasoning of one item", events: `{"type":"response.reasoning_text.delta","output_index":0,"delta":"a"}
			{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"s"}
			{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[{"text":"s"}],"content":[{"text":"ab"}]}}
			` + completed, want: `{"text":"","reasoning":"ab","stop_reason":"completed","metadata":{"openai/output":[{"id":"rs","summary":[{"text":"s"}],"type":"reasoning"}]}}`},
		{name: "item of the server's own tool", events: `{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"ws","content":7,"name":["x"]}}
			` + completed, want: `{"text":"","stop_reason":"completed","metadata":{"openai/output":[{"content":7,"id":"ws","name":["x"],"type":"web_search_call"}]}}`},

		{name: "call", events: addCall + `
			{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\""}
			{"type":"response.function_call_arguments.delta","output_index":0,"delta":":1}"}
			` + completed, want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":{"a":1}}],"stop_reason":"completed"}`},
		{name: "call without deltas", events: whole(`{"type":"function_call","id":"fc_1","name":"f","arguments":"{}"},{"type":"function_call","name":"g","arguments":""}`),
			want: `{"text":"","tool_calls":[{"id":"fc_1","name":"f","input":{}},{"id":"call_1","name":"g","input":{}}],"stop_reason":"completed"}`},
		{name: "arguments cut off", events: addCall + `
			{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\""}
			{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"reasoning","id":"rs","summary":[]},{"type":"function_call","id":"fc_1","call_id":"1","name":"f","arguments":"{\"a\"","status":"incomplete"}]}}`,
			want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":null,"input_text":"{\"a\""}],"stop_reason":"max_output_tokens"}`},
		{name: "arguments cut off before they began", events: `{"type":"response.incomplete","response":{"incomplete_details":null,"output":[{"type":"function_call","id":"fc_1","call_id":"1","name":"f","arguments":"","status":"incomplete"}]}}`,
			want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":null}],"stop_reason":"incomplete"}`},
		{name: "error", events: `{"type":"response.output_text.delta","output_index":0,"delta":"a"}
			{"type":"error","code":"c","message":"no"}`, want: `{"text":"a"}`, err: "no (c)"},
		{name: "cut off", events: `{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, want: `{"text":"a"}`, err: "cut short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, deltas, err := decode(&responsesDecoder{}, c.events)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			checkDeltas(t, reply, deltas)
			if c.want == "" {
				return
			}
			reply.ID, reply.Model, reply.Usage.Raw = "", "", nil
			got, err := json.Marshal(reply)
			if err != nil {
				t.Fatal(err)
			}
			got = made.ReplaceAll(got, []byte("call_$1"))
			if want := c.want[:len(c.want)-1] + `,"usage":{"input_tokens":null,"output_tokens":null}}`; !sameJSON(t, string(got), want) {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

// TestKeptItems checks which items of a response are kept for the next turn.
func TestKeptItems(t *testing.T) {
	events := `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","status":null,"summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":"x"}}
		{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"1","name":"f","arguments":"{\"a","status":"incomplete"}}
		` + completed
	reply, _, err := decode(&responsesDecoder{stateful: true}, events)
	want := `{"openai/output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"type":"function_call","id":"fc_1","call_id":"1","name":"f","arguments":"{}"}],"openai/response":"r"}`
	if got := string(wire.JSON(reply.Metadata)); err != nil || !sameJSON(t, got, want) {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// TestManyItems checks the bound on items, in events and at the end.
func TestManyItems(t *testing.T) {
	var events, end strings.Builder
	for i := range maxItems + 1 {
		fmt.Fprintf(&events, `{"type":"response.output_text.delta","output_index":%d,"delta":"a"}`+"\n", i)
		fmt.Fprintf(&end, `{"type":"message","content":[{"text":"a"}]},`)
	}
	for _, e := range []string{events.String(), strings.Replace(completed, `"output":[]`, `"output":[`+strings.TrimSuffix(end.String(), ",")+`]`, 1)} {
		if _, _, err := decode(&responsesDecoder{}, e); err == nil || !strings.Contains(err.Error(), "more than 10000 items") {
			t.Errorf("error %v, want one about the number of items", err)
		}
	}
}

// FuzzResponsesDecoder looks for panics, and for deltas that differ from the reply.
func FuzzResponsesDecoder(f *testing.F) {
	f.Add(addCall + "\n" + completed)
	f.Add(`{"type":"response.output_item.done","output_index":-1,"item":{"type":"message","content":[{"text":"a"}]}}`)
	f.Add(`{"type":"response.reasoning.delta","delta":"a"}` + "\nerror:{}")
	f.Add(strings.Replace(completed, `"output":[]`, `"output":[`+message+`,null,7]`, 1))
	f.Fuzz(func(t *testing.T, events string) {
		reply, deltas, _ := decode(&responsesDecoder{}, events)
		checkDeltas(t, reply, deltas)
		if _, err := json.Marshal(reply); err != nil {
			t.Errorf("%q: the reply is not JSON: %v", events, err)
		}
	})
}

// TestWholeResponse reads a response that is no stream twice: the second time has nothing new.
func TestWholeResponse(t *testing.T) {
	d := &responsesDecoder{}
	doc := []byte(`{"object":"response","status":"completed","output":[` + message + `]}`)
	for _, want := range []int{2, 0} {
		deltas, err := d.Whole(nil, doc)
		if _, end := d.End(nil); err != nil || end != nil || len(deltas) != want || d.Reply().Text != "ab" || d.Reply().Refusal != "no" {
			t.Errorf("%d deltas, %v, %v, %+v; want %d", len(deltas), err, end, d.Reply(), want)
		}
	}
	var none []llm.Delta
	if _, err := d.Whole(none, []byte(`[]`)); err == nil {
		t.Error("a list is read as a response")
	}
}
