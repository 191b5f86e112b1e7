package scan

import (
	"encoding/json"
	"testing"
)

// read takes the text apart as far as a Cursor knows it: an object of strings, whole
// numbers and literals.
func read(text []byte) (map[string]any, bool) {
	var c Cursor
	c.Reset(text)
	c.Open('{')
	got := map[string]any{}
	for first := true; c.More('}', first); first = false {
		name := string(c.Key())
		if _, twice := got[name]; twice {
			c.Fail()
		}
		switch {
		case c.Null():
			got[name] = nil
		case c.peek() == '"':
			got[name] = string(c.String())
		case c.peek() >= '0' && c.peek() <= '9':
			got[name] = float64(c.Int())
		default:
			got[name] = c.peek() == 't'
			c.Skip()
		}
	}
	return got, c.End()
}

func TestCursor(t *testing.T) {
	for text, ok := range map[string]bool{
		`{}`:                           true,
		` { "a" : 1 , "b":"x" } `:      true,
		`{"a":"\n\"\\\/\u00e9\t"}`:     true,
		`{"a":"ä🌟","b":true,"c":null}`: true,
		`{"a":0,"b":123456789}`:        true,
		``:                             false,
		`{`:                            false,
		`{"a"}`:                        false,
		`{"a":1,}`:                     false,
		`{"a":1 "b":2}`:                false,
		`{,"a":1}`:                     false,
		`{"a":01}`:                     false,
		`{"a":1.5}`:                    false, // JSON, but of no shape that is known
		`{"a":-1}`:                     false,
		`{"a":"\ud83d\ude00"}`:         false,
		`{"a":"\x"}`:                   false,
		`{"a":"` + "\xff" + `"}`:       false,
		`{"a":"` + "\n" + `"}`:         false,
		`{"a":nul}`:                    false,
		`{"a":1}x`:                     false,
		`{"a":[]}`:                     false,
	} {
		if _, got := read([]byte(text)); got != ok {
			t.Errorf("%s: taken %v, want %v", text, got, ok)
		}
	}
}

// FuzzCursor holds what is taken to the general decoder.
func FuzzCursor(f *testing.F) {
	f.Add([]byte(`{"a":"\n\u00e9ä","b":17,"c":null,"d":true}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := read(text)
		if !ok {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%q is taken, but: %v", text, err)
		}
		for name, v := range want {
			if got[name] != v {
				t.Errorf("%q: %s is %v, want %v", text, name, got[name], v)
			}
		}
	})
}
