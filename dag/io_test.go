package dag_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
)

func write(t testing.TB, d dag.DAG) string {
	t.Helper()
	var out bytes.Buffer
	if err := dag.Write(&out, d); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWrite(t *testing.T) {
	a := newNode(t, dag.Spec{Type: "t", Content: stringRaw(`{"b":"<\u2028>","a":9007199254740993}`),
		Meta: map[string]string{"z": "1", "a": "<"}, Time: time.Unix(0, 1)})
	d, err := (dag.DAG{}).Append(a)
	if err != nil {
		t.Fatal(err)
	}
	d = join(t, d, build(t, d, "x:l"), build(t, d, "y:l"))
	d = d.WithFailure(dag.NewFailure(d, dag.FailureContent{Kind: "k"}, nil, time.Time{}), nil)
	x, y := find(t, d, "x"), find(t, d, "y")
	want := fmt.Sprintf(`{"id":"%[1]s","type":"t","content":{"a":9007199254740993,"b":"<`+"\u2028"+`>"},"meta":{"a":"<","z":"1"},"time":"1970-01-01T00:00:00.000000001Z"}
{"id":"%[2]s","type":"l","parents":["%[1]s"],"content":"x","base":"%[1]s"}
{"id":"%[3]s","type":"l","parents":["%[1]s"],"content":"y","base":"%[1]s"}
`, a.ID(), x.ID(), y.ID())
	if got := write(t, d); got != want { // without the failure in flight
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	back, err := dag.Read(strings.NewReader(want))
	if err != nil || back.Failed() {
		t.Fatal(back.Failed(), err)
	}
	wantShape(t, "read", back, d)
	if got := write(t, dag.DAG{}); got != "" {
		t.Errorf("an empty DAG: %q", got)
	}
}

func TestWriteReportsTheWriter(t *testing.T) {
	d := build(t, dag.DAG{}, "a:t b:t")
	for _, room := range []int{0, 10, 150} {
		if err := dag.Write(&full{room}, d); !errors.Is(err, errFull) {
			t.Errorf("a writer with room for %d bytes: %v", room, err)
		}
	}
	big, err := dag.NewType[string]("t").Append(d, strings.Repeat("x", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if err := dag.Write(&full{1000}, big); !errors.Is(err, errFull) {
		t.Errorf("a writer that is full in the middle: %v", err)
	}
}

var errFull = errors.New("full")

type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if n := f.room; n < len(p) {
		f.room = 0
		return n, errFull
	}
	f.room -= len(p)
	return len(p), nil
}

func TestReadTolerates(t *testing.T) {
	d := fan(t, dag.DAG{}, "a:t b:u | x:l | y:l")
	text := write(t, d)
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	for name, in := range map[string]string{
		"as it was written":   text,
		"CRLF":                strings.ReplaceAll(text, "\n", "\r\n"),
		"empty lines":         "\n \t\n" + strings.ReplaceAll(text, "\n", "\n\n"),
		"no newline at end":   strings.TrimSuffix(text, "\n"),
		"duplicate lines":     lines[0] + lines[0] + lines[1] + lines[0] + strings.Join(lines[2:], ""),
		"other key order":     strings.Replace(text, `"type":"t","content":"a"`, `"content":"a","type":"t"`, 1),
		"content not as such": strings.Replace(text, `"content":"a"`, ` "content" : "\u0061"`, 1),
	} {
		got, err := dag.Read(iotest.OneByteReader(strings.NewReader(in)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantShape(t, name, got, d)
	}
	for _, in := range []string{"", "\n", "\r\n \n"} {
		if d, err := dag.Read(strings.NewReader(in)); err != nil || d.Len() != 0 {
			t.Errorf("%q: %d nodes, %v", in, d.Len(), err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	d := fan(t, dag.DAG{}, "a:t b:u | x:l | y:l")
	text := write(t, d)
	lines := strings.SplitAfter(text, "\n")
	a, b, x := find(t, d, "a").ID().String(), find(t, d, "b").ID().String(), find(t, d, "x").ID().String()
	replace := func(old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %s in\n%s", old, text)
		}
		return strings.Replace(text, old, new, 1)
	}
	for _, c := range []struct {
		name, in string
		line     int
		want     string
	}{
		{"forged content", replace(`"content":"x"`, `"content":"z"`), 3, "forged or damaged node: its id is " + x[:12]},
		{"forged type", replace(`"type":"u"`, `"type":"v"`), 2, "forged"},
		{"forged id", strings.ReplaceAll(text, x, strings.Repeat("0", 64)), 3, "forged"},
		{"forged parents", replace(`"parents":["`+a+`"]`, `"parents":[]`), 2, "forged"},
		{"cut", text[:len(text)-10], 4, "JSON"},
		{"cut in the middle", lines[0] + lines[1][:20] + "\n" + lines[2], 2, "JSON"},
		{"not JSON", text + "hello\n", 5, "JSON object"},
		{"an array", "[]\n" + text, 1, "JSON object"},
		{"a byte order mark", "\ufeff" + text, 1, "JSON"},
		{"two on one line", strings.TrimSuffix(lines[0], "\n") + lines[1], 1, "JSON"},
		{"something after it", strings.TrimSuffix(lines[0], "\n") + " x\n", 1, "JSON"},
		{"children first", lines[1] + lines[0], 1, "parent " + a[:12] + ", which is not on an earlier line"},
		{"unknown field", replace(`"type":"t"`, `"type":"t","extra":1`), 1, "extra"},
		{"field in capitals", replace(`"type":"t"`, `"Type":"t"`), 1, "Type"},
		{"field twice", replace(`"type":"t"`, `"type":"t","type":"t"`), 1, "duplicate"},
		{"no id", replace(`"id":"`+a+`",`, ""), 1, `"id"`},
		{"no type", replace(`"type":"t",`, ""), 1, `"type"`},
		{"no content", replace(`,"content":"a"`, ""), 1, `"content"`},
		{"null", "null\n", 1, `"content"`},
		{"id in capitals", replace(a, strings.ToUpper(a)), 1, "lower-case"},
		{"id too short", replace(a, a[1:]), 1, "64"},
		{"number beyond float64", replace(`"content":"a"`, `"content":{"n":1e400}`), 1, "n: "},
		{"invalid UTF-8", replace(`"content":"a"`, "\"content\":\"\xff\""), 1, "UTF-8"},
		{"meta no strings", replace(`"content":"a"`, `"content":"a","meta":{"k":1}`), 1, "meta"},
		{"time no time", replace(`"content":"a"`, `"content":"a","time":"noon"`), 1, "time"},
		{"time out of range", replace(`"content":"a"`, `"content":"a","time":"3000-01-01T00:00:00Z"`), 1, "1678"},
		{"unknown base", replace(`"base":"`+b+`"`, `"base":"`+strings.Repeat("0", 64)+`"`), 3, "base 000000000000"},
		{"base below", replace(`"content":"a"`, `"content":"a","base":"`+x+`"`), 1, "base " + x[:12]},
		{"base of a node that is followed", replace(`"content":"b"`, `"content":"b","base":"`+a+`"`), 2, "head of a lane"},
	} {
		got, err := dag.Read(strings.NewReader(c.in))
		var format *dag.FormatError
		if !errors.As(err, &format) {
			t.Errorf("%s: error %v, want a FormatError", c.name, err)
			continue
		}
		if format.Line != c.line || !strings.Contains(format.Reason, c.want) {
			t.Errorf("%s: %v, want line %d and %q", c.name, err, c.line, c.want)
		}
		if got.Len() != 0 || strings.ContainsAny(err.Error(), "\n") || len(err.Error()) > 400 {
			t.Errorf("%s: %d nodes and error %q", c.name, got.Len(), err)
		}
	}
}

func TestReadReportsTheReader(t *testing.T) {
	broken := errors.New("broken")
	text := write(t, build(t, dag.DAG{}, "a:t b:t"))
	_, err := dag.Read(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("error %v, want one around %v at line 3", err, broken)
	}
}

func TestLargeContent(t *testing.T) {
	need.Time(t)
	large := strings.Repeat("größer \"than\" <most> \u2028 ", 2_000_000) // 50 MB
	d, err := dag.NewType[string]("t").Append(dag.DAG{}, large)
	if err != nil {
		t.Fatal(err)
	}
	back, err := dag.Read(strings.NewReader(write(t, d)))
	if err != nil {
		t.Fatal(err)
	}
	wantShape(t, "read", back, d)
	if back.Latest().Text() != large {
		t.Error("the content is another one")
	}
}

// Whatever is read can be written, and is then the same.
func FuzzRead(f *testing.F) {
	for _, sketch := range []string{"", "a:t b:u", "a:t b:t< c:t<a,b", "a:t | x:l y:u | z:l", "a:t | x:l y:u | z:l then b:t"} {
		f.Add(write(f, fan(f, dag.DAG{}, sketch)))
	}
	f.Add(`{"id":"00","type":"t","content":"a"}`)
	f.Fuzz(func(t *testing.T, in string) {
		d, err := dag.Read(strings.NewReader(in))
		if err != nil {
			var format *dag.FormatError
			if !errors.As(err, &format) || format.Line < 1 || format.Line > strings.Count(in, "\n")+1 {
				t.Fatalf("error %v", err)
			}
			return
		}
		out := write(t, d)
		back, err := dag.Read(strings.NewReader(out))
		if err != nil || shape(back) != shape(d) || write(t, back) != out {
			t.Fatalf("not the same when read again: %v\n%s", err, out)
		}
	})
}
