package anthropic

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
	`{"type":"message_start","message":{"id":"1","model":"m","content":[],"usage":{"input_tokens":1}}}`,
	`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" a\u00e9\n"}}`,
	`{"type":"content_block_delta","index":12,"delta":{"type":"input_json_delta","partial_json":"{\""}}`,
	`{"delta":{"type":"thinking_delta","thinking":"t"},"index":0,"type":"content_block_delta"}`,
	`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}`,
	`{"type":"content_block_delta","delta":{"type":"citations_delta","citation":{"url":"u"}}}`,
	`{"type":"content_block_delta","delta":{"type":"compaction_delta","content":null},"extra":{"a":[1,2.5e3,true]}}`,
	`{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}`,
	`{"type":"content_block_delta","delta":{"text":"a"},"type":"ping"}`, `{"type":"content_block_delta","delta":null}`,
	`{"type":"content_block_delta","delta":{"text":"a"},"delta":{"thinking":"b"}}`, `{"type":"content_block_delta","delta":"x"}`,
	`{"type":1}`, `{"type":null}`, `{"index":1.0}`, `{"index":-1}`, `{"index":null}`, `{"\u0074ype":"ping"}`, "{\"type\":\"\xff\"}",
	`null`, `[]`, ``, `{`, `{"type":"ping"} x`, `{"type":"ping",}`, ` { "type" : "ping" } `,
}

// FuzzScan shows that an event that is scanned is the event that is unmarshalled, and its delta too.
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
	d := newDecoder("")
	f.Fuzz(func(t *testing.T, data []byte) {
		if !d.scan(data) {
			return
		}
		got, want := d.scanned, event{}
		if err := jsonv2.UnmarshalLenient(data, &want); err != nil {
			t.Fatalf("scanned %q, which is refused: %v", data, err)
		}
		if got.piece != nil {
			var delta blockDelta
			if err := jsonv2.UnmarshalLenient(want.Delta, &delta); err != nil {
				t.Fatalf("scanned %q, whose delta is refused: %v", data, err)
			}
			if !reflect.DeepEqual(*got.piece, delta) {
				t.Errorf("%q:\nscanned      %+v\nunmarshalled %+v", data, *got.piece, delta)
			}
			got.piece, want.Delta = nil, nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\nscanned      %+v\nunmarshalled %+v", data, got, want)
		}
	})
}

// TestScanUsual shows that usual events are scanned: events that are unmarshalled give the same answer,
// only late.
func TestScanUsual(t *testing.T) {
	d := newDecoder("")
	for _, s := range scannable[:6] {
		if !d.scan([]byte(s)) {
			t.Errorf("not scanned: %s", s)
		}
	}
}
