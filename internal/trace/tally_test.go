package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/event"
)

// trickyLines are lines on which a quick scan and a real parser could differ.
var trickyLines = []string{
	`{"level":"info","message":"a","topic":"stone","data":{"event":"a","k":1}}`,
	`{"event":"failure","data":{},"level":"info"}`,
	` { "data" : { "event" : "a" , "k" : [ 1 , { } , [ ] ] } } `,
	`{"data":{"in":{"event":"wrong"},"event":"a"}}`,
	`{"data":{"in":[{"event":"wrong"}]}}`,
	`{"event":"wrong","data":{}}`,
	`{"data":{"text":"\",\"event\":\"wrong\"","event":"a"}}`,
	`{"message":"\"data\":{\"event\":\"wrong\"}","data":{"event":"a"}}`,
	`{"data":{"event":"a\"b"}}`,
	`{"data":{"event":"a\u0062"}}`,
	`{"data":{"event":"\ud83d\ude00 \ud83d"}}`,
	`{"data":{"event":"é"}}`,
	"{\"data\":{\"event\":\"\xff\"}}",
	"{\"data\":{\"event\":\"\xff\",\"12345678\":\"\xff\"}}",
	`{"data":{"\u0065vent":"a"}}`,
	`{"d\u0061ta":{"event":"a"}}`,
	`{"event":"failure","data":{"x":1,"event":"b"}}`,
	`{"event":"failure","data":{"x":1,"\u0065vent":"b"}}`,
	`{"event":"failure","data":{},"data":{"event":"b"}}`,
	`{"event":"failure","data":{},"data":7}`,
	`{"event":"failure","data":{},"d\u0061ta":{}}`,
	`{"data":{"event":null}}`,
	`{"data":{"event":["a"]}}`,
	`{"data":[{"event":"a"}]}`,
	`{"event":"failure","data":{"x":1}`,
	`{"event":"failure","data":{"x":1}}}`,
	`{"event":"failure","data":{"x":1}} x`,
	`{"event":"failure","data":{"x":1,}}`,
	`{"event":"failure","data":{},}`,
	`{"event":"failure","data":{"x":1,"k":[1,]}}`,
	`{"event":"failure","data":{"x":1,"k":01}}`,
	`{"event":"failure","data":{"x":1,"k":-}}`,
	`{"event":"failure","data":{"x":1,"k":-0.0e-07}}`,
	`{"event":"failure","data":{"x":1,"k":1.}}`,
	`{"event":"failure","data":{"x":1,"k":1e999}}`,
	`{"event":"failure","data":{"x":1,"k":+1}}`,
	`{"event":"failure","data":{"x":1,"k":tru}}`,
	`{"event":"failure","data":{"x":1,"k":truefalse}}`,
	`{"event":"failure","data":{"x":1,"k":NaN}}`,
	`{"event":"failure","data":{"x":1,"k":"\x"}}`,
	`{"event":"failure","data":{"x":1,"k":"\u12g4"}}`,
	`{"event":"failure","data":{"x":1,"k":"\u12`,
	"{\"data\":{\"event\":\"a\",\"k\":\"tab\tinside\"}}",
	"{\"data\":{\"event\":\"a\",\"k\":\"12345678\x01234567\"}}",
	"{\"data\":{\"event\":\"a\",\"k\":\"delete \x7f is allowed\"}}",
	"{\"data\":{\"event\":\"a\"}}\x00",
	"{\"data\":{\"event\":\"a\"}}\f",
	`{"event":"failure","data":{"x":1,"k":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`,
	`{"event":"failure","data":{"x":1,"k":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}}`,
	`{"event":"failure","data":{"x":1,"k":` + strings.Repeat(`{"k":`, 100),
	`{"data":{"event":""}}`,
	`{"":{"":""}}`,
	`{}`, `{"data"`, `{"data":}`, `{"data" "x"}`, `{,}`, `{1:2}`, `[]`, `7`, `"x"`, `null`, `oops`, `{`, "\ufeff{}",
}

// sameTally compares Tally with the decoder: it counts the lines that are JSON and begin with their type
// without decoding them, and reports the same errors of all others.
// Tally returns what tally counts and reports.
func Tally(r io.Reader) (counts []Count, total int, bad []error) {
	counts, total = tally(r, func(err error) { bad = append(bad, err) })
	return counts, total, bad
}

func sameTally(t *testing.T, in []byte) {
	t.Helper()
	counts, total, bad := Tally(bytes.NewReader(in))
	want := map[string]int{}
	var wantBad []string
	lines := bytes.Split(in, []byte("\n"))
	for e, err := range event.Read(bytes.NewReader(in)) {
		if err == nil {
			want[e.Type()]++
			continue
		}
		text := lines[err.(*event.LineError).Line-1]
		typ, first := strings.CutPrefix(string(text), `{"event":"`)
		typ, _, closed := strings.Cut(typ, `"`)
		if first && closed && !strings.Contains(typ, `\`) && json.Valid(text) {
			want[typ]++
		} else {
			wantBad = append(wantBad, err.Error())
		}
	}
	got, n := map[string]int{}, 0
	for _, c := range counts {
		got[c.Type] += c.N
		n += c.N
	}
	var gotBad []string
	for _, err := range bad {
		gotBad = append(gotBad, err.Error())
	}
	if diff := cmp.Diff(want, got) + cmp.Diff(wantBad, gotBad); diff != "" || n != total {
		t.Errorf("%.200q (-want +got), total %d:\n%s", in, total, diff)
	}
}

func TestTallyFastIsSlow(t *testing.T) {
	for _, text := range trickyLines {
		sameTally(t, []byte(text))
	}
	all := strings.Join(trickyLines, "\n")
	sameTally(t, []byte(all))
	// Every way to cut a line, and every byte of one replaced.
	whole := `{"event":"tool-dispatch","level":"info","data":{"n":-1.5e3,"s":"a\u00e9\"","l":[true,{"x":null}]}}`
	for i := range whole {
		sameTally(t, []byte(whole[:i]+"\n"+whole))
		for _, c := range "\x00\n\"\\{}[],:0e. \x80" {
			sameTally(t, []byte(whole[:i]+string(c)+whole[i+1:]))
		}
	}
}

func FuzzTally(f *testing.F) {
	for _, text := range trickyLines {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, in []byte) { sameTally(t, in) })
}

func TestTallyOrder(t *testing.T) {
	var in strings.Builder
	for _, typ := range []string{"b", "c", "a", "c", "d", "d", "c"} {
		fmt.Fprintf(&in, `{"event":%q}`+"\n", typ)
	}
	counts, total, bad := Tally(strings.NewReader(in.String()))
	want := []Count{{"c", 3}, {"d", 2}, {"a", 1}, {"b", 1}}
	if diff := cmp.Diff(want, counts); diff != "" || total != 7 || bad != nil {
		t.Errorf("total %d, bad %v, %s", total, bad, diff)
	}
}

// A stream repeats a block until it has yielded about the wanted number of bytes.
type stream struct {
	block []byte
	left  int
	rest  []byte
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		if s.left <= 0 {
			return 0, io.EOF
		}
		s.rest = s.block
	}
	n := copy(p, s.rest)
	s.rest, s.left = s.rest[n:], s.left-n
	return n, nil
}

// runBlock returns the events of a short run at level debug: mostly small ones, and a
// payload with a conversation for each call of the model.
func runBlock() []byte {
	var buf bytes.Buffer
	w := event.NewWriter(&buf, slog.LevelDebug)
	var conversation []map[string]any
	for turn := range 10 {
		conversation = append(conversation, map[string]any{"role": "user", "content": strings.Repeat("The test fails:\n\tgot \"a\", want \"b\"\n", 6)})
		for i, d := range []event.Data{event.StepStarted{Form: "leaf"}, event.MiddlewareRan{Turn: turn, Middleware: "read"},
			event.ModelRequest{Turn: turn, Model: "m", MessageCount: turn + 1, Messages: conversation}, event.ModelResponse{Turn: turn, Model: "m", OK: true, Elapsed: 1234 * time.Microsecond},
			event.ToolDone{ToolCall: event.ToolCall{Turn: turn, Position: 1, Tool: "read"}, OK: true}, event.StepDone{Form: "leaf", OK: true, Elapsed: 1234 * time.Microsecond}} {
			w.Watch(context.Background(), event.Event{Run: "run-1760000000123-48213", Span: "span-1760000000456-90311", Parent: "span-1760000000123-11172",
				Name: "fix", Path: "all/fix", Seq: uint64(10*turn + i), Time: time.UnixMicro(1760000000123456), Data: d})
		}
	}
	return buf.Bytes()
}

func TestTallyBoundedMemory(t *testing.T) {
	size := 200 << 20
	if testing.Short() {
		size = 20 << 20
	}
	block := runBlock()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, total, bad := Tally(&stream{block: block, left: size})
	runtime.ReadMemStats(&after)
	blocks := (size + len(block) - 1) / len(block)
	if want := blocks * 60; total != want || bad != nil {
		t.Errorf("%d events, want %d; bad lines %v", total, want, bad)
	}
	// TotalAlloc does not depend on when the garbage collector runs.
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("%d MB were tallied with %d KB of memory", size>>20, used>>10)
	}
}

func BenchmarkTally(b *testing.B) {
	small := bytes.Repeat([]byte(`{"event":"api-call","level":"info","seq":17,"timestamp":1760000000123.456,"trace-id":"run-1760000000123-48213","span-id":"span-1760000000456-90311","parent-span-id":"span-1760000000123-11172","ashlar-name":"fix","path":"all/fix","data":{"turn-number":5}}`+"\n"), 50)
	for _, in := range []struct {
		name  string
		block []byte
	}{{"run", runBlock()}, {"small-events", small}} {
		b.Run(in.name, func(b *testing.B) {
			const size = 16 << 20
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, bad := Tally(&stream{block: in.block, left: size}); bad != nil {
					b.Fatal(bad)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	const size = 4 << 20
	block := runBlock()
	b.SetBytes(size)
	for b.Loop() {
		for _, err := range event.Read(&stream{block: block, left: size}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	w := event.NewWriter(io.Discard, nil)
	e := event.Event{Run: "run-1760000000123-48213", Span: "span-1760000000456-90311", Name: "fix", Path: "all/fix", Seq: 17, Time: time.UnixMicro(1760000000123456), Data: event.ModelRequest{Turn: 5, Model: "m"}}
	b.ReportAllocs()
	for b.Loop() {
		w.Watch(b.Context(), e)
	}
}
