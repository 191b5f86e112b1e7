package event_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
)

// TestRoundTrip checks that every type of data, with any values, is the same after it was written and read.
func TestRoundTrip(t *testing.T) {
	for _, like := range eventtest.All() {
		t.Run(event.Event{Data: like}.Type(), rapid.MakeCheck(func(t *rapid.T) {
			want := event.Event{Data: like}
			fill(t, reflect.ValueOf(&want).Elem())
			if _, ok := like.(event.Custom); ok {
				want.Data = event.Custom{Name: rapid.String().Draw(t, "name"), At: slog.Level(rapid.Int8().Draw(t, "level")), Attrs: attrs(t)}
			} else {
				data := reflect.New(reflect.TypeOf(like)).Elem()
				fill(t, data)
				want.Data = data.Interface().(event.Data)
			}
			text := want.Line(true)
			var got event.Event
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			if diff := cmp.Diff(want, got, cmp.Comparer(sameAttr)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", text, diff)
			}
			if strings.Contains(string(text), "\n") || !strings.HasPrefix(string(text), `{"event":`) {
				t.Errorf("not one line that begins with its type: %s", text)
			}
		}))
	}
}

func sameAttr(a, b slog.Attr) bool {
	return a.Key == b.Key && a.Value.Kind() == b.Value.Kind() && fmt.Sprintf("%#v", a.Value.Any()) == fmt.Sprintf("%#v", b.Value.Any())
}

// fill gives each field a value that a trace file can hold.
func fill(t *rapid.T, v reflect.Value) {
	switch to := v.Addr().Interface().(type) {
	case *time.Time:
		*to = time.Unix(0, rapid.Int64Range(-1e18, 9e18).Draw(t, "time"))
		return
	case *event.DeltaKind:
		*to = event.DeltaKind(rapid.IntRange(0, 3).Draw(t, "kind"))
		return
	case *any:
		*to = json.RawMessage(rapid.SampledFrom([]string{`{"a":[1,"<é>",null]}`, `[]`, `1.50`, `"x"`, `true`}).Draw(t, "json"))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
		if d, ok := v.Addr().Interface().(*time.Duration); ok {
			*d /= 2 // the codec counts whole milliseconds up to the largest
		}
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 3).Draw(t, "length"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	}
}

func attrs(t *rapid.T) (all []slog.Attr) {
	value := rapid.OneOf(
		rapid.Map(rapid.String(), slog.StringValue), rapid.Map(rapid.Int64(), slog.Int64Value), rapid.Map(rapid.Bool(), slog.BoolValue),
		rapid.Just(slog.Float64Value(0.5)), rapid.Just(slog.AnyValue(json.RawMessage(`{"event":[1]}`))), rapid.Just(slog.AnyValue(json.RawMessage(`null`))))
	for range rapid.IntRange(0, 4).Draw(t, "attrs") {
		all = append(all, slog.Attr{Key: rapid.StringN(1, 8, -1).Draw(t, "key"), Value: value.Draw(t, "value")})
	}
	return all
}

// TestLine shows a line, with and without contents.
func TestLine(t *testing.T) {
	e := event.Event{Run: "run-7", Seq: 4, Time: time.UnixMicro(1760000000123500), Name: "fix", Path: "all/fix", Span: "s2", Parent: "s1",
		Data: event.ModelRequest{Turn: 5, Model: "m", MessageCount: 1, System: "Be brief.", Messages: []string{"<hi>"}}}
	const head = `{"event":"api-call","level":"info","seq":4,"timestamp":1760000000123.5,"trace-id":"run-7","span-id":"s2","parent-span-id":"s1","ashlar-name":"fix","path":"all/fix",` +
		`"data":{"turn-number":5,"model":"m","message-count":1`
	for contents, want := range map[bool]string{false: head + `}}`, true: head + `,"system":"Be brief.","messages":["<hi>"]}}`} {
		if got := string(e.Line(contents)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

type jsonError struct{}

func (jsonError) Error() string                { return "disk full" }
func (jsonError) MarshalJSON() ([]byte, error) { return []byte(`{"code":28}`), nil }

// TestAttributes shows how attributes of a body's own events are written.
func TestAttributes(t *testing.T) {
	for want, attr := range map[string]slog.Attr{
		`{"k":"a\n\"<é>"}`:                 slog.String("k", "a\n\"<é>"),
		`{"k":9223372036854775807}`:        slog.Int64("k", 1<<63-1),
		`{"k":0.5}`:                        slog.Float64("k", 0.5),
		`{"k":true}`:                       slog.Bool("k", true),
		`{"k":null}`:                       slog.Any("k", nil),
		`{"k":1.5}`:                        slog.Duration("k", 1500*time.Microsecond),
		`{"k":"disk full"}`:                slog.Any("k", jsonError{}),
		`{"k":{"A":[1]}}`:                  slog.Any("k", struct{ A []int }{[]int{1}}),
		`{"k":{"in":1,"of":{"cached":2}}}`: slog.Group("k", "in", 1, slog.Group("of", "cached", 2)),
		`{"in":1}`:                         slog.Group("", "in", 1),
		`{"k":{"a":1}}`:                    slog.Any("k", []byte(`{"a": 1}`)),
		`{"k":[1,2]}`:                      slog.Any("k", json.RawMessage("[1,\n2]")),
		`{"k":"{\"a\""}`:                   slog.Any("k", []byte(`{"a"`)),
		`{"k":"not shown: json: unsupported type: chan int"}`: slog.Any("k", make(chan int)),
		`{"event":"x"}`: slog.String("event", "x"),
		`{}`:            {},
	} {
		line := string(event.Event{Data: event.Custom{Name: "own", Attrs: []slog.Attr{attr}}}.Line(true))
		if _, got, _ := strings.Cut(line, `"data":`); got != want+"}" {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestUnreadable checks what is said of an object that is no event.
func TestUnreadable(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                             `no event: want an object that begins with "event"`,
		`{"event":"run-stop","data":{}}`: `unknown event "run-stop": the file is of another version`,
		`{"event":"run-end","data":{"ok":"yes"}}`:                     `ok: "yes": want true or false, not a string`,
		`{"event":"run-end","data":{"elapsed":"1s"}}`:                 `elapsed: "1s": want a number of milliseconds`,
		`{"event":"run-end","data":{"elapsed":1e300}}`:                "elapsed: 1e300: want a number of milliseconds",
		`{"event":"run-end","data":[]}`:                               "data: want an object",
		`{"event":"run-end","timestamp":99999999999999999,"data":{}}`: "timestamp 99999999999999999: want at most",
		`{"event":"run-end","seq":-1}`:                                "seq",
		`{"event":"x","custom":true,"level":"loud","data":{}}`:        `level "loud": want one such as "info"`,
		`{"event":"x","custom":true,"level":"info"}`:                  "data: want an object",
	} {
		var e event.Event
		if err := json.Unmarshal([]byte(text), &e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if _, err := json.Marshal(event.Event{}); err == nil {
		t.Error("an event without data has JSON")
	}
}
