package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/event"
)

func TestRead(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string // type of the event, or the error
	}{
		{"empty", "", nil},
		{"blank lines", "\n  \r\n", nil},
		{"no last newline", `{"event":"failure"}`, []string{"failure"}},
		{"carriage returns", "{\"event\":\"failure\"}\r\n", []string{"failure"}},
		{"the type is not first", ` { "data" : { } , "event" : "failure" } `, []string{"failure"}},
		{"cut off", "{\"event\":\"failure\"\n{\"event\":\"notice\"}",
			[]string{"line 1: not JSON (cut off before the end of the object)", "notice"}},
		{"cut in a string", `{"ev`, []string{"line 1: not JSON (cut off before the end of the object)"}},
		{"no JSON", "\noops\n", []string{"line 2: not JSON (invalid character 'o' looking for beginning of value, at byte 1)"}},
		{"more after the object", `{"event":"failure"} {}`, []string{"line 1: not JSON (invalid character '{' after top-level value, at byte 21)"}},
		{"array", `[1]`, []string{"line 1: not a JSON object but array"}},
		{"null", `null`, []string{"line 1: not a JSON object but null"}},
		{"no type", `{}`, []string{`line 1: no event: want an object that begins with "event", as run --trace writes it`}},
		{"members of other types", `{"event":7}`, []string{"line 1: want a string, not a number at /event"}},
		{"a number that does not fit", `{"event":"api-call","data":{"turn-number":1e400}}`, []string{"line 1: turn-number: 1e400: invalid syntax"}},
		{"names differ in case", `{"EVENT":"a","event":"failure","DATA":7}`, []string{"failure"}},
		{"unknown members", `{"event":"failure","new":1,"data":{"more":1e400}}`, []string{"failure"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for e, err := range event.Read(iotest.OneByteReader(strings.NewReader(test.in))) {
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

func TestReadStopsWithTheReader(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("{\"event\":\"failure\"}\n{}\n{"), iotest.ErrReader(errors.New("link down")))
	var got []error
	for _, err := range event.Read(broken) {
		got = append(got, err)
	}
	if len(got) != 3 || got[2] == nil || got[2].Error() != "trace: reading line 3: link down" {
		t.Errorf("got %v", got)
	}
}

func TestReadIsLazy(t *testing.T) {
	in := &stream{block: []byte("{\"event\":\"failure\"}\n"), left: 1 << 30}
	for range event.Read(in) {
		break
	}
	if used := 1<<30 - in.left; used > 256<<10 {
		t.Errorf("one event cost %d bytes of the reader", used)
	}
}

// Read must name exactly the lines that it cannot use.
func FuzzRead(f *testing.F) {
	for _, s := range trickyLines {
		f.Add([]byte(s + "\n{}\n" + s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		results := 0
		var noObject []int
		for _, err := range event.Read(bytes.NewReader(in)) {
			results++
			var line *event.LineError
			switch {
			case err == nil:
			case errors.As(err, &line):
				if strings.ContainsAny(line.Reason, "\n\r\x1b") {
					t.Errorf("reason of several lines: %q", line.Reason)
				}
				if strings.HasPrefix(line.Reason, "not ") {
					noObject = append(noObject, line.Line)
				}
			default:
				t.Fatal(err)
			}
		}
		var want []int
		wantResults := 0
		for i, text := range bytes.Split(in, []byte("\n")) {
			if len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			wantResults++
			var m map[string]json.RawMessage
			if json.Unmarshal(text, &m) != nil || m == nil {
				want = append(want, i+1)
			}
		}
		if diff := cmp.Diff(want, noObject); diff != "" || results != wantResults {
			t.Errorf("%d results, want %d; lines that are no objects: %s", results, wantResults, diff)
		}
	})
}
