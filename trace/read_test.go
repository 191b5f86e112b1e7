package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string // type of the event, or the error
	}{
		{"empty", "", nil},
		{"blank lines", "\n  \r\n", nil},
		{"no last newline", `{"data":{"event":"a"}}`, []string{"a"}},
		{"carriage returns", "{\"data\":{\"event\":\"a\"}}\r\n", []string{"a"}},
		{"cut off", "{\"data\":{\"event\":\"a\"\n{\"data\":{\"event\":\"b\"}}",
			[]string{"line 1: not JSON (cut off before the end of the object)", "b"}},
		{"cut in a string", `{"data":{"ev`, []string{"line 1: not JSON (cut off before the end of the object)"}},
		{"no JSON", "\noops\n", []string{"line 2: not JSON (invalid character 'o' looking for beginning of value, at byte 1)"}},
		{"more after the object", `{"data":{}} {}`, []string{"line 1: not JSON (more text after the object, at byte 12)"}},
		{"array", `[1]`, []string{"line 1: not a JSON object but array"}},
		{"null", `null`, []string{"line 1: not a JSON object but null"}},
		{"envelope of other types", `{"level":1,"message":[],"topic":null,"data":7}`, []string{""}},
		{"event of another type", `{"data":{"event":7}}`, []string{""}},
		{"names differ in case", `{"DATA":{"event":"a"},"data":{"Event":"b"}}`, []string{""}},
		{"the last of one name", `{"data":{"event":"a","event":"b"}}`, []string{"b"}},
		{"number beyond float64", `{"data":{"event":"a","n":1e400}}`, []string{"a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for e, err := range Read(iotest.OneByteReader(strings.NewReader(test.in))) {
				if err != nil {
					got = append(got, err.Error())
				} else {
					got = append(got, e.Type())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadKeepsAll(t *testing.T) {
	const in = `{"level":"info","message":"m","topic":"stone","data":{"event":"api-call","timestamp":1.5,"agent-ashlar-name":"fix","turn-number":5,"id":9007199254740993}}`
	want := Event{Level: "info", Message: "m", Topic: "stone", Data: map[string]any{
		"event": "api-call", "timestamp": json.Number("1.5"), "agent-ashlar-name": "fix",
		"turn-number": json.Number("5"), "id": json.Number("9007199254740993")}}
	for e, err := range Read(strings.NewReader(in)) {
		if diff := cmp.Diff(want, e); diff != "" || err != nil {
			t.Error(err, diff)
		}
		if e.Timestamp() != 1.5 || e.AshlarName() != "fix" {
			t.Errorf("timestamp %v, name %q", e.Timestamp(), e.AshlarName())
		}
		again, err := json.Marshal(e)
		if err != nil || len(again) != len(in) {
			t.Errorf("written again: %s, %v", again, err)
		}
	}
}

func TestAccessors(t *testing.T) {
	name := func(data map[string]any) any { return Event{Data: data}.AshlarName() }
	turn := func(v any) any {
		n, ok := Event{Data: map[string]any{"turn-number": v}}.TurnNumber()
		if !ok {
			return nil
		}
		return n
	}
	tests := []struct {
		what      string
		got, want any
	}{
		{"no name", name(nil), ""},
		{"first name", name(map[string]any{"ashlar-name": "a", "agent-ashlar-name": "b", "tool-name": "c"}), "a"},
		{"empty name", name(map[string]any{"ashlar-name": "", "agent-ashlar-name": "b", "tool-name": "c"}), "b"},
		{"name of a tool", name(map[string]any{"ashlar-name": 7, "tool-name": "c"}), "c"},
		{"no turn", turn(nil), nil},
		{"turn 0", turn(json.Number("0")), 0},
		{"turn of a program", turn(3), 3},
		{"turn as a fraction", turn(json.Number("1.5")), nil},
		{"turn below 0", turn(json.Number("-1")), nil},
		{"turn beyond int", turn(json.Number("1e30")), nil},
		{"turn as text", turn("3"), nil},
		{"no timestamp", Event{}.Timestamp(), 0.0},
		{"no number", Event{Data: map[string]any{"timestamp": "soon"}}.Timestamp(), 0.0},
	}
	for _, test := range tests {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", test.what, test.got, test.want)
		}
	}
}

func TestLinesLimit(t *testing.T) {
	const limit = readBuffer + 10
	fits, over := strings.Repeat("a", limit-1), strings.Repeat("b", limit)
	in := fits + "\n" + over + "\n" + "c\n" + over + over + over + "\nd"
	var got []string
	for l, err := range lines(strings.NewReader(in), limit) {
		var bad *LineError
		switch {
		case errors.As(err, &bad):
			got = append(got, err.Error())
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, string(l.text))
		}
	}
	want := []string{fits, "line 2: longer than 262154 bytes", "c", "line 4: longer than 262154 bytes", "d"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadStopsWithTheReader(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("{}\n{}\n{"), iotest.ErrReader(errors.New("link down")))
	var got []error
	for _, err := range Read(broken) {
		got = append(got, err)
	}
	if len(got) != 3 || got[2] == nil || got[2].Error() != "trace: reading line 3: link down" {
		t.Errorf("got %v", got)
	}
}

func TestReadIsLazy(t *testing.T) {
	in := &stream{block: []byte("{\"data\":{\"event\":\"a\"}}\n"), left: 1 << 30}
	for range Read(in) {
		break
	}
	if used := 1<<30 - in.left; used > readBuffer {
		t.Errorf("one event cost %d bytes of the reader", used)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte("{\"data\":{\"event\":\"a\"}}\n7\n{}\n{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	events, err := Load(path)
	var bad *LineError
	if len(events) != 2 || !errors.As(err, &bad) || bad.Line != 2 || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("%d events, %v", len(events), err)
	}
	if _, err := Load(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// Read must name exactly the lines that it cannot use.
func FuzzRead(f *testing.F) {
	for _, s := range trickyLines {
		f.Add([]byte(s + "\n{}\n" + s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var bad []int
		events := 0
		for _, err := range Read(bytes.NewReader(in)) {
			var line *LineError
			switch {
			case err == nil:
				events++
			case errors.As(err, &line):
				if strings.ContainsAny(line.Reason, "\n\r\x1b") {
					t.Errorf("reason of several lines: %q", line.Reason)
				}
				bad = append(bad, line.Line)
			default:
				t.Fatal(err)
			}
		}
		var wantBad []int
		wantEvents := 0
		for i, text := range bytes.Split(in, []byte("\n")) {
			if len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			var m map[string]json.RawMessage
			if json.Unmarshal(text, &m) == nil && m != nil {
				wantEvents++
			} else {
				wantBad = append(wantBad, i+1)
			}
		}
		if diff := cmp.Diff(wantBad, bad); diff != "" || events != wantEvents {
			t.Errorf("%d events, want %d; bad lines: %s", events, wantEvents, diff)
		}
	})
}
