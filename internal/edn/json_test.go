package edn_test

import (
	"testing"

	"github.com/stonelayer/stone/internal/edn"
)

func TestFromJSON(t *testing.T) {
	tests := []struct{ text, want string }{
		{`null`, `nil`},
		{` [true, false] `, `[true false]`},
		{`{"b": 1, "a": {"c": []}}`, `{"a" {"c" []}, "b" 1}`},
		{`"é\u00e9\ud83d\ude00\n"`, `"éé😀\n"`},
		{`[1, -0, 9223372036854775808]`, `[1 0 9223372036854775808N]`},
		{`[1.0, 0.1, -1.5e3, 1e21, 0.0, 5e-324]`, `[1.0 0.1 -1500.0 1e21 0.0 5e-324]`},
		{`[0.1234567890123456789, 1e400, 1e-400]`, `[0.1234567890123456789M 1e400M 1e-400M]`},
		{`1e99999`, `1:1: number "1e99999": expected a decimal that is an integer × 10^n with n from -10000 to 10000`},
		{"{\"a\": 1,\n \"a\": 2}", `2:2: duplicate key "a" in a map, first at 1:2`},
		{`[1, 2`, `1:6: expected more JSON, found the end of the text`},
		{``, `1:1: expected a value, found the end of the text`},
		{`1 2`, `1:3: expected the end of the text after its one value`},
		{`["é", x]`, `1:7: expected JSON: invalid character 'x' at start of value`},
		{`{"a" 1}`, `1:6: expected JSON: invalid character '1' after object name (expecting ':')`},
		{`[1,]`, `1:3: expected JSON: invalid character ',' at start of value`},
		{`"\ud800"`, `1:2: expected JSON: invalid surrogate pair ` + "`\\ud800\"` in string"},
		{"\"\xff\"", `1:2: expected UTF-8, found the byte 0xff`},
		{`[[[1]]]`, `1:3: expected values nested at most 2 deep`},
	}
	for _, test := range tests {
		limits := edn.Limits{}
		if test.text == `[[[1]]]` {
			limits.Depth = 2
		}
		v, err := edn.FromJSON([]byte(test.text), limits)
		got := v.String()
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("FromJSON(%s)\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

func TestToJSON(t *testing.T) {
	tests := []struct{ text, want string }{
		{`{:b [nil true] "a" (1 2) sym #{2 1}}`, `{"a":[1,2],"b":[null,true],"sym":[1,2]}`},
		{`[:a/b c/d "é\n\"" \x \😀]`, `["a/b","c/d","é\n\"","x","😀"]`},
		{`[12345678901234567890 1.0 1e21 0.1234567890123456789M 1e400M 100M]`, `[12345678901234567890,1.0,1e21,0.1234567890123456789,1e400,100]`},
		{`[#inst "2000-01-01T00:00:00Z" #uuid "F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"]`, `["2000-01-01T00:00:00Z","f81d4fae-7dec-11d0-a765-00a0c91e6bf6"]`},
		{`[1 #a/b 2]`, `1:4: expected a value that JSON can represent, found the tag #a/b`},
		{`[##NaN]`, `1:2: expected a number that JSON can represent, found ##NaN`},
		{`{1 2}`, `1:2: expected a string, keyword or symbol as a key in JSON, found 1`},
		{`{:a 1 "a" 2}`, `1:7: expected keys that differ in JSON, found :a and "a"`},
	}
	for _, test := range tests {
		data, err := edn.ToJSON(read(t, test.text))
		got := string(data)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("ToJSON(%s)\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

func TestJSONPositions(t *testing.T) {
	v, err := edn.FromJSON([]byte("{\"a\": [1,\n  {\"é\": true}]}"), edn.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := v.Field("a")
	inner, _ := a.At(1).Field("é")
	if line, column := inner.Position(); line != 2 || column != 9 {
		t.Errorf("true stands at %d:%d, want 2:9", line, column)
	}
	if line, column := a.At(1).Position(); line != 2 || column != 3 {
		t.Errorf("the object stands at %d:%d, want 2:3", line, column)
	}
}
