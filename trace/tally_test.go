package trace

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// trickyLines are lines on which a quick scan and a real parser could differ.
var trickyLines = []string{
	`{"level":"info","message":"a","topic":"stone","data":{"event":"a","k":1}}`,
	`{"data":{"event":"a"},"level":"info"}`,
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
	`{"data":{"event":"a","event":"b"}}`,
	`{"data":{"event":"a","\u0065vent":"b"}}`,
	`{"data":{"event":"a"},"data":{"event":"b"}}`,
	`{"data":{"event":"a"},"data":7}`,
	`{"data":{"event":"a"},"d\u0061ta":{}}`,
	`{"data":{"event":null}}`,
	`{"data":{"event":["a"]}}`,
	`{"data":[{"event":"a"}]}`,
	`{"data":{"event":"a"}`,
	`{"data":{"event":"a"}}}`,
	`{"data":{"event":"a"}} x`,
	`{"data":{"event":"a",}}`,
	`{"data":{"event":"a"},}`,
	`{"data":{"event":"a","k":[1,]}}`,
	`{"data":{"event":"a","k":01}}`,
	`{"data":{"event":"a","k":-}}`,
	`{"data":{"event":"a","k":-0.0e-07}}`,
	`{"data":{"event":"a","k":1.}}`,
	`{"data":{"event":"a","k":1e999}}`,
	`{"data":{"event":"a","k":+1}}`,
	`{"data":{"event":"a","k":tru}}`,
	`{"data":{"event":"a","k":truefalse}}`,
	`{"data":{"event":"a","k":NaN}}`,
	`{"data":{"event":"a","k":"\x"}}`,
	`{"data":{"event":"a","k":"\u12g4"}}`,
	`{"data":{"event":"a","k":"\u12`,
	"{\"data\":{\"event\":\"a\",\"k\":\"tab\tinside\"}}",
	"{\"data\":{\"event\":\"a\",\"k\":\"12345678\x01234567\"}}",
	"{\"data\":{\"event\":\"a\",\"k\":\"delete \x7f is allowed\"}}",
	"{\"data\":{\"event\":\"a\"}}\x00",
	"{\"data\":{\"event\":\"a\"}}\f",
	`{"data":{"event":"a","k":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`,
	`{"data":{"event":"a","k":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}}`,
	`{"data":{"event":"a","k":` + strings.Repeat(`{"k":`, 100),
	`{"data":{"event":""}}`,
	`{"":{"":""}}`,
	`{}`, `{"data"`, `{"data":}`, `{"data" "x"}`, `{,}`, `{1:2}`, `[]`, `7`, `"x"`, `null`, `oops`, `{`, "\ufeff{}",
}

// sameTally compares the scanner with the parser.
func sameTally(t *testing.T, in []byte) {
	t.Helper()
	type result struct {
		Counts []Count
		Total  int
		Bad    []string
	}
	collect := func(counts []Count, total int, bad []error) (r result) {
		r.Counts, r.Total = counts, total
		for _, err := range bad {
			r.Bad = append(r.Bad, err.Error())
		}
		return r
	}
	slow := collect(Tally(Read(bytes.NewReader(in))))
	fast := collect(TallyReader(bytes.NewReader(in)))
	if diff := cmp.Diff(slow, fast); diff != "" {
		t.Errorf("%.200q (-slow +fast):\n%s", in, diff)
	}
}

func TestTallyFastIsSlow(t *testing.T) {
	for _, text := range trickyLines {
		sameTally(t, []byte(text))
	}
	all := strings.Join(trickyLines, "\n")
	sameTally(t, []byte(all))
	// Every way to cut a line, and every byte of one replaced.
	whole := `{"level":"info","data":{"event":"tool-dispatch","n":-1.5e3,"s":"a\u00e9\"","l":[true,{"x":null}]}}`
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
		fmt.Fprintf(&in, `{"data":{"event":%q}}`+"\n", typ)
	}
	in.WriteString("{}\n")
	counts, total, bad := TallyReader(strings.NewReader(in.String()))
	want := []Count{{"c", 3}, {"d", 2}, {"", 1}, {"a", 1}, {"b", 1}}
	if diff := cmp.Diff(want, counts); diff != "" || total != 8 || bad != nil {
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
	log := slog.New(NewHandler(&buf, slog.LevelDebug)).With(
		"trace-id", "run-1760000000123-48213", "span-id", "span-1760000000456-90311", "parent-span-id", "span-1760000000123-11172")
	var conversation []map[string]any
	for turn := range 10 {
		for _, typ := range []string{"ashlar-start", "middleware-run", "api-call", "api-response", "tool-dispatch", "ashlar-end"} {
			log.Info(typ, "ashlar-name", "fix", "turn-number", turn, "elapsed", 1234*time.Microsecond)
		}
		conversation = append(conversation, map[string]any{"role": "user", "content": strings.Repeat("The test fails:\n\tgot \"a\", want \"b\"\n", 6)})
		log.Debug("api-call-payload", "ashlar-name", "fix", "turn-number", turn, "model", "m", "messages", conversation)
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
	_, total, bad := TallyReader(&stream{block: block, left: size})
	runtime.ReadMemStats(&after)
	blocks := (size + len(block) - 1) / len(block)
	if want := blocks * 70; total != want || bad != nil {
		t.Errorf("%d events, want %d; bad lines %v", total, want, bad)
	}
	// TotalAlloc does not depend on when the garbage collector runs.
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("%d MB were tallied with %d KB of memory", size>>20, used>>10)
	}
}

func BenchmarkTally(b *testing.B) {
	small := bytes.Repeat([]byte(`{"level":"info","message":"api-call","topic":"stone","data":{"event":"api-call","timestamp":1760000000123.456,"trace-id":"run-1760000000123-48213","span-id":"span-1760000000456-90311","parent-span-id":"span-1760000000123-11172","ashlar-name":"fix","turn-number":5}}`+"\n"), 50)
	for _, in := range []struct {
		name  string
		block []byte
	}{{"run", runBlock()}, {"small-events", small}} {
		b.Run(in.name, func(b *testing.B) {
			const size = 16 << 20
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, bad := TallyReader(&stream{block: in.block, left: size}); bad != nil {
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
		for _, err := range Read(&stream{block: block, left: size}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	log := slog.New(NewHandler(io.Discard, nil)).With("trace-id", "run-1760000000123-48213", "span-id", "span-1760000000456-90311")
	b.ReportAllocs()
	for b.Loop() {
		log.LogAttrs(b.Context(), slog.LevelInfo, "api-call", slog.String("ashlar-name", "fix"), slog.Int("turn-number", 5))
	}
}
