package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrefix(t *testing.T) {
	for _, c := range []struct{ text, want, without string }{
		{``, ``, ``},
		{`  `, ``, ``},
		{`{`, `{}`, `{}`},
		{`{"na`, `{}`, `{}`},
		{`{"name"`, `{}`, `{}`},
		{`{"name":`, `{}`, `{}`},
		{`{"name":"`, `{"name":""}`, `{}`},
		{`{"name":"sl\n`, `{"name":"sl\n"}`, `{}`},
		{`{"name":"sl\`, `{"name":"sl"}`, `{}`},
		{`{"name":"\ud83d`, `{"name":""}`, `{}`},
		{`{"name":"\ud83d\ude0`, `{"name":""}`, `{}`},
		{`{"name":"\ud83d\ude00`, `{"name":"\ud83d\ude00"}`, `{}`},
		{`{"name":"\ud83dx`, `{"name":"\ud83dx"}`, `{}`},
		{"{\"name\":\"\xe2\x82", `{"name":""}`, `{}`},
		{"{\"name\":\"\xe2\x82\xac", `{"name":"€"}`, `{}`},
		{`{"name":"slate","n":1`, `{"name":"slate"}`, `{"name":"slate"}`},
		{`{"name":"slate","n":12,`, `{"name":"slate","n":12}`, `{"name":"slate","n":12}`},
		{`{"ok":tru`, `{}`, `{}`},
		{`{"ok":true}`, `{"ok":true}`, `{"ok":true}`},
		{`[[1,2],[3`, `[[1,2],[]]`, `[[1,2],[]]`},
		{`[{"a":[]},{`, `[{"a":[]},{}]`, `[{"a":[]},{}]`},
		{"Here it is:\n```json\n {\"a\":1}\n```", `{"a":1}`, `{"a":1}`},
		{`No JSON [1] here`, ``, ``},
		{"```\nno", ``, ``},
		{`{"a":1,}`, `{"a":1}`, `{"a":1}`},
		{`[1}`, `[1]`, `[1]`},
		{`{"a":01,"b":2}`, `{}`, `{}`},
		{`{"a" 1}`, `{}`, `{}`},
		{`{"a":1} and more`, `{"a":1}`, `{"a":1}`},
	} {
		var p prefix
		for i := range len(c.text) {
			p.add(c.text[i : i+1])
		}
		var whole prefix
		whole.add(c.text)
		if got := string(p.value(true)); got != c.want || got != string(whole.value(true)) {
			t.Errorf("%q: got %s and %s, want %s", c.text, got, whole.value(true), c.want)
		}
		if got := string(p.value(false)); got != c.without {
			t.Errorf("%q without strings: got %s, want %s", c.text, got, c.without)
		}
	}
}

// extends reports whether a value is another one, or that with more of it.
func extends(long, short any) bool {
	switch short := short.(type) {
	case nil:
		return true
	case string:
		s, ok := long.(string)
		return ok && strings.HasPrefix(s, short)
	case []any:
		l, ok := long.([]any)
		if !ok || len(l) < len(short) {
			return false
		}
		for i := range short {
			if !extends(l[i], short[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		l, ok := long.(map[string]any)
		for k := range short {
			if !ok || !extends(l[k], short[k]) {
				return false
			}
		}
		return ok
	}
	return reflect.DeepEqual(long, short)
}

// FuzzPrefix checks that every prefix of a valid document has a value that the next one extends,
// that the last one is the document, and that no text has a value that is not JSON.
func FuzzPrefix(f *testing.F) {
	for _, s := range []string{`{"a":"b\u00e9\ud83d\ude00 \\ € 😀","c":[1,-2.5e3,{"d":null}],"e":true,"f":{}}`, ` [ "x" , false ] `, "{\"\xff\":\"\xe2\x28\"}", `{"a":[}`, `["\ud800\ud800","\udc00"]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var p prefix
		var last any
		valid := json.Valid([]byte(s)) && !namesTwice(s)
		for i := range len(s) {
			p.add(s[i : i+1])
			for _, text := range [][]byte{p.value(false), p.value(true)} {
				if text == nil {
					continue
				}
				var now any
				if err := json.Unmarshal(text, &now); err != nil {
					t.Fatalf("%q: the value of %q is %q: %v", s, s[:i+1], text, err)
				}
				if valid && string(text) == string(p.value(true)) {
					if !extends(now, last) {
						t.Fatalf("%q: %v is no extension of %v", s[:i+1], now, last)
					}
					last = now
				}
			}
		}
		if first := strings.TrimLeft(s, " \t\r\n"); valid && (first[0] == '{' || first[0] == '[') {
			var want any
			if err := json.Unmarshal([]byte(s), &want); err != nil || !reflect.DeepEqual(last, want) || p.state != complete {
				t.Fatalf("%q: got %v", s, last)
			}
		}
	})
}

// namesTwice reports whether an object may have a name twice: then a value can change.
func namesTwice(s string) bool {
	var v any
	dec := json.NewDecoder(strings.NewReader(s))
	if dec.Decode(&v) != nil || !utf8.ValidString(s) {
		return true
	}
	names := 0
	for tokens := json.NewDecoder(strings.NewReader(s)); ; {
		token, err := tokens.Token()
		if err != nil {
			break
		}
		if _, ok := token.(json.Delim); !ok {
			names++
		}
	}
	return names != leaves(v)
}

// leaves counts names and scalars.
func leaves(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += 1 + leaves(e)
		}
		return n
	case []any:
		for _, e := range v {
			n += leaves(e)
		}
		return n
	}
	return 1
}

// BenchmarkPrefix reads an answer in pieces of a token. The cost of a byte must not depend on
// the length.
func BenchmarkPrefix(b *testing.B) {
	for _, items := range []int{10, 1000, 10_000} {
		var text strings.Builder
		for i := range items {
			fmt.Fprintf(&text, `,{"name":"item %d","text":"some text of the item","n":%d}`, i, i)
		}
		s := `{"items":[` + text.String()[1:] + `]}`
		b.Run(fmt.Sprint(len(s)), func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				var p prefix
				for rest := s; rest != ""; {
					n := min(4, len(rest))
					p.add(rest[:n])
					rest = rest[n:]
				}
				if p.state != complete {
					b.Fatal("incomplete")
				}
			}
		})
	}
}
