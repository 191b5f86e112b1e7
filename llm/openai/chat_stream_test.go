package openai

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// decode feeds the events, one per line, to a decoder. A line may begin with a name.
func decode(d wire.Decoder, events string) (*llm.Reply, []llm.Delta, error) {
	var all, out []llm.Delta
	var err error
	for line := range strings.Lines(events) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, data := "", line
		if rest, ok := strings.CutPrefix(line, "error:"); ok {
			name, data = "error", rest
		}
		var done bool
		out, done, err = d.Event(out[:0], name, []byte(data))
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

// chunks wraps deltas into chunks, one for each line.
func chunks(deltas string) string {
	var b strings.Builder
	for line := range strings.Lines(deltas) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(`{"id":"c","model":"m","choices":[{"index":0,"delta":` + line + `}]}` + "\n")
		}
	}
	return b.String() + "[DONE]\n"
}

// made matches the ids of calls whose server gave none.
var made = regexp.MustCompile(`call_[a-z0-9]{10}_(\d+)`)

func TestDialects(t *testing.T) {
	for _, c := range []struct {
		name, events string
		config       Config
		want         string // the reply as JSON, without what every one has
		err          string
	}{
		{name: "text", events: chunks(`{"content":"a"}
			{"content":"ä\n\"\\\u00e9😀\ud83d\ude00"}
			{"content":null}`),
			want: `{"text":"aä\n\"\\é😀😀"}`},
		{name: "string, list, string", events: chunks(`{"content":"a"}
			{"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"b"},{"type":"reference","reference_ids":[1]}]}
			{"content":"c"}`),
			want: `{"text":"abc","reasoning":"t"}`},
		{name: "the same reasoning in several fields", events: chunks(`{"reasoning":"r1","reasoning_content":"r1","reasoning_details":[{"type":"reasoning.text","text":"r1"}]}
			{"reasoning":"","reasoning_details":[{"type":"reasoning.text","text":"r2"}]}
			{"content":"a"}`),
			want: `{"text":"a","reasoning":"r1r2","metadata":{"openai/reasoning_details":[{"text":"r1r2","type":"reasoning.text"}]}}`},
		{name: "encrypted reasoning", events: chunks(`{"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.encrypted","data":"x","id":"rs_1"}]}
			{"content":"a","reasoning_details":[{"type":"reasoning.encrypted","data":"y","id":"rs_2"}]}`),
			want: `{"text":"a","metadata":{"openai/reasoning_details":[{"data":"x","id":"rs_1","type":"reasoning.encrypted"},{"data":"y","id":"rs_2","type":"reasoning.encrypted"}]}}`},
		{name: "reasoning to be echoed", events: chunks(`{"reasoning_content":"r"}
			{"content":"a"}`),
			want: `{"text":"a","reasoning":"r","metadata":{"openai/reasoning_content":"r"}}`},
		{name: "refusal", events: chunks(`{"refusal":"I "}
			{"refusal":"won't"}`),
			want: `{"text":"","refusal":"I won't"}`},

		{name: "think tags", events: chunks(`{"content":"<thi"}
			{"content":"nk>\nhm </thi"}
			{"content":"n</think>\n\nanswer about <think> tags"}`),
			want: `{"text":"\n\nanswer about <think> tags","reasoning":"\nhm </thin"}`},
		{name: "think tags twice", events: chunks(`{"content":" <think>a</think> <think>b</think>c"}`),
			want: `{"text":"  c","reasoning":"ab"}`},
		{name: "think tag not closed", events: chunks(`{"content":"<think>a</th"}`), want: `{"text":"","reasoning":"a</th"}`},
		{name: "half a tag is text", events: chunks(`{"content":"<thin"}`), want: `{"text":"<thin"}`},
		{name: "not a tag", events: chunks(`{"content":"<"}
			{"content":"thanks>"}`), want: `{"text":"<thanks>"}`},
		{name: "think tags to be kept", config: Config{ThinkTags: "keep"}, events: chunks(`{"content":"<think>a</think>b"}`),
			want: `{"text":"<think>a</think>b"}`},
		{name: "thinking from the beginning", config: Config{ThinkTags: "open"}, events: chunks(`{"content":"a</think>b"}`),
			want: `{"text":"b","reasoning":"a"}`},

		{name: "calls with index", events: chunks(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":""}}]}
			{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}},{"index":1,"id":"2","function":{"name":"g","arguments":"{}"}}]}
			{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`),
			want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":{"a":1}},{"id":"2","name":"g","input":{}}]}`},
		{name: "index from one, empty id and name", events: chunks(`{"tool_calls":[{"index":1,"id":"1","function":{"name":"f","arguments":"{\"a\""}}]}
			{"tool_calls":[{"index":1,"id":"","function":{"name":"","arguments":":1}"}}]}`),
			want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":{"a":1}}]}`},
		{name: "no index", events: chunks(`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\""}}]}
			{"tool_calls":[{"function":{"arguments":":1}"}}]}
			{"tool_calls":[{"id":"2","type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}]}`),
			want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":{"a":1}},{"id":"2","name":"f","input":{"a":2}}]}`},
		{name: "neither index nor id", events: chunks(`{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":"{}"}}]}`),
			want: `{"text":"","tool_calls":[{"id":"call_1","name":"f","input":{}},{"id":"call_2","name":"g","input":{}}]}`},
		{name: "one index for all", events: chunks(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}]}
			{"tool_calls":[{"index":0,"id":"2","function":{"name":"g","arguments":"{}"}}]}`),
			want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":{}},{"id":"2","name":"g","input":{}}]}`},
		{name: "id and name with every piece", events: chunks(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{\"a\""}}]}
			{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":":1}"}}]}`),
			want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":{"a":1}}]}`},
		{name: "arguments as an object, as null, missing", events: chunks(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":{"a":1}}},{"index":1,"id":"2","function":{"name":"g","arguments":null}},{"index":2,"id":"3","function":{"name":"h"}}]}`),
			want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":{"a":1}},{"id":"2","name":"g","input":{}},{"id":"3","name":"h","input":{}}]}`},
		{name: "arguments cut off", events: `{"id":"c","model":"m","choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{\"a\": \"x"}}]},"finish_reason":"length"}]}` + "\n[DONE]",
			want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":null,"input_text":"{\"a\": \"x"}],"stop_reason":"length"}`},
		{name: "arguments cut off before they began", events: `{"id":"c","model":"m","choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"f"}}]},"finish_reason":"length"}]}` + "\n[DONE]",
			want: `{"text":"","tool_calls":[{"id":"1","name":"f","input":null}],"stop_reason":"length"}`},

		{name: "last usage that is not null", events: `{"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}
			{"id":"d","model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":null}}
			{"id":"e","model":"m","choices":[],"usage":null}
			[DONE]`,
			want: `{"text":"","usage":{"input_tokens":5,"output_tokens":2,"cached_input_tokens":4}}`},
		{name: "usage in a vendor's field", events: `{"id":"c","model":"m","choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":5,"completion_tokens":2}}}
			[DONE]`,
			want: `{"text":"","usage":{"input_tokens":5,"output_tokens":2,"vendor":"x_groq"}}`},
		{name: "usage as timings", events: `{"id":"c","model":"m","choices":[],"timings":{"prompt_n":5,"predicted_n":2,"cache_n":3}}
			[DONE]`,
			want: `{"text":"","usage":{"input_tokens":8,"output_tokens":2,"cached_input_tokens":3,"vendor":"timings"}}`},

		{name: "nulls everywhere", events: `{"id":null,"model":null,"choices":[{"index":null,"delta":{"role":null,"content":null,"tool_calls":null,"refusal":null},"finish_reason":null}],"usage":null,"error":null}
			{"id":"c","model":"m","choices":null}
			{"choices":[{"delta":null}]}
			{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`,
			want: `{"text":"a","stop_reason":"stop"}`},
		{name: "other choices", events: `{"id":"c","model":"m","choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}
			[DONE]`, want: `{"text":"ba"}`},

		{name: "error event", events: `{"id":"c","model":"m","choices":[{"delta":{"content":"a"}}]}
			error:{"error":{"message":"no","type":"t","code":400}}`, want: `{"text":"a"}`, err: "no (t, 400)"},
		{name: "error beside choices and usage", events: `{"id":"c","model":"m","error":{"message":"no","code":"x"},"choices":[{"delta":{"content":"a"},"finish_reason":"error"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			want: `{"text":"a","stop_reason":"error","usage":{"input_tokens":1,"output_tokens":1}}`, err: "no (x)"},
		{name: "error as a string", events: `{"error":"no"}`, want: `{"text":""}`, err: "no"},
		{name: "error of vLLM", events: `{"object":"error","message":"no","type":"BadRequestError","param":null,"code":400}`, want: `{"text":""}`, err: "no (BadRequestError, 400)"},
		{name: "error that is no JSON", events: `error:gone`, want: `{"text":""}`, err: "gone"},
		{name: "content of no known shape", events: chunks(`{"content":7}`), want: `{"text":""}`, err: "neither a string nor a list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, deltas, err := decode(newChatDecoder(&c.config, ""), c.events)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			reply.ID, reply.Model, reply.Usage.Raw = "", "", nil
			got, err := json.Marshal(reply)
			if err != nil {
				t.Fatal(err)
			}
			got = made.ReplaceAll(got, []byte("call_$1"))
			want := c.want
			if !strings.Contains(want, `"usage"`) {
				want = want[:len(want)-1] + `,"usage":{"input_tokens":null,"output_tokens":null}}`
			}
			if !sameJSON(t, string(got), want) {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			checkDeltas(t, reply, deltas)
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// checkDeltas checks that the deltas agree with the reply.
func checkDeltas(t *testing.T, reply *llm.Reply, deltas []llm.Delta) {
	t.Helper()
	text := map[llm.Kind]string{}
	var inputs []string
	for _, d := range deltas {
		switch d.Kind {
		case llm.ToolCallStart:
			inputs = append(inputs, "")
		case llm.ToolInput:
			inputs[d.Index] += d.Text
		default:
			text[d.Kind] += d.Text
		}
	}
	if text[llm.Text] != reply.Text || text[llm.Reasoning] != reply.Reasoning || text[llm.Refusal] != reply.Refusal {
		t.Errorf("deltas say %q, the reply %q, %q, %q", text, reply.Text, reply.Reasoning, reply.Refusal)
	}
	if len(inputs) != len(reply.ToolCalls) {
		t.Errorf("deltas have %d calls, the reply %d", len(inputs), len(reply.ToolCalls))
	}
}

func TestLinesWithoutBlanks(t *testing.T) {
	c := Config{}
	d := newChatDecoder(&c, "")
	data := `{"id":"c","model":"m","choices":[{"delta":{"content":"a"}}]}` + "\n" +
		`{"id":"c","model":"m","choices":[{"delta":{"content":"b"}}]}` + "\n[DONE]"
	_, done, err := d.Event(nil, "", []byte(data))
	if _, end := d.End(nil); !done || err != nil || end != nil || d.Reply().Text != "ab" {
		t.Errorf("done %v, errors %v and %v, text %q; want both chunks", done, err, end, d.Reply().Text)
	}
}

// FuzzDecoder looks for panics, and for deltas that differ from the reply.
func FuzzChatDecoder(f *testing.F) {
	f.Add(chunks(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{"}}]}`))
	f.Add(chunks(`{"content":[{"type":"thinking","thinking":"t"}],"reasoning_details":[{"type":"a","index":0}]}`))
	f.Add("error:{\"error\":{}}\n")
	f.Add(`{"id":"c","model":"m","choices":[{"message":{}}],"x_groq":{},"timings":{"predicted_n":1e99}}`)
	f.Fuzz(func(t *testing.T, events string) {
		reply, deltas, _ := decode(newChatDecoder(&Config{}, ""), events)
		checkDeltas(t, reply, deltas)
		if _, err := json.Marshal(reply); err != nil {
			t.Errorf("%q: the reply is not JSON: %v", events, err)
		}
	})
}
