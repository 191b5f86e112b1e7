package openai

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stonelayer/stone/internal/jsonv2"
)

// events for both ways of reading: the usual ones, the odd ones, and broken ones.
var scannable = []string{
	`{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" a\u00e9\n"},"logprobs":null,"finish_reason":null}],"usage":null}`,
	`{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}}]}`,
	`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"x"}],"reasoning":"r","reasoning_details":[{"type":"t"}]}}]}`,
	`{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}},{"index":2,"delta":{}}]}`,
	`{"choices":[{"index":0,"message":{"content":"whole","annotations":[{"a":1}]},"finish_reason":"stop"}],"timings":{"prompt_n":1},"x_groq":{"usage":{}}}`,
	`{"choices":[],"usage":{"prompt_tokens":1},"error":null,"message":"m","detail":[1]}`,
	`{"choices":null}`, `{"choices":[null]}`, `{"choices":[{"delta":null}]}`, `{"choices":{}}`, `null`, `[]`, `"x"`, ``, `{`,
	`{"choices":[{"index":1.0}]}`, `{"choices":[{"index":-1}]}`, `{"choices":[{"index":1e400}]}`, `{"choices":[{"index":"0"}]}`,
	`{"id":1}`, `{"id":null,"object":null}`, `{"\u0069d":"escaped"}`, "{\"id\":\"\xff\"}", `{"id":"\ud800"}`,
	`{"id":"1","id":"2","choices":[{"delta":{"content":"a","content":["b"]},"delta":{"refusal":"r"}}],"choices":[{"index":3}]}`,
	`{"choices":[{"delta":{"content":["b"],"content":"a"}}]}`, `{"choices":[{"delta":{"content":1}}]}`,
	`{"id":"1"} x`, `{"id":"1",}`, `{"id":"1","other":[1,{"a":]}`, ` {"id" : "1" , "choices" : [ { "index" : 0 } ] } `,
}

// FuzzScan shows that an event that is scanned has the chunk to which it is unmarshalled.
func FuzzScan(f *testing.F) {
	for _, s := range scannable {
		f.Add([]byte(s))
	}
	files, _ := filepath.Glob("../../../shared/data/streams/*/*.sse") // where they are
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(body) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				f.Add(data)
			}
		}
	}
	d := newChatDecoder(&Config{}, "")
	f.Fuzz(func(t *testing.T, data []byte) {
		if !d.scan(data) {
			return
		}
		var want chunk
		if err := jsonv2.UnmarshalLenient(data, &want); err != nil {
			t.Fatalf("scanned %q, which is refused: %v", data, err)
		}
		for i := range want.Choices {
			in := &want.Choices[i].Delta
			if s, ok := str(in.Content); ok {
				in.text, in.Content = s, nil
			}
		}
		if len(want.Choices)+len(d.scanned.Choices) == 0 {
			want.Choices, d.scanned.Choices = nil, nil
		}
		if !reflect.DeepEqual(d.scanned, want) {
			t.Errorf("%q:\nscanned      %+v\nunmarshalled %+v", data, d.scanned, want)
		}
	})
}

// TestScanUsual shows that usual events are scanned: events that are unmarshalled give the same answer,
// only late.
func TestScanUsual(t *testing.T) {
	d := newChatDecoder(&Config{}, "")
	for _, s := range scannable[:6] {
		if !d.scan([]byte(s)) {
			t.Errorf("not scanned: %s", s)
		}
	}
}
