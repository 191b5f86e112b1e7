package jsonv2

import "testing"

func TestReason(t *testing.T) {
	type inner struct {
		Text string `json:"text"`
	}
	type value struct {
		Number int      `json:"number"`
		Inner  *inner   `json:"inner"`
		List   []string `json:"list"`
		Flag   bool     `json:"flag"`
	}
	for text, want := range map[string]string{
		`{"nubmer": 1}`:             `unknown member /nubmer: known are number, inner, list, flag`,
		`{"inner": {"txt": ""}}`:    `unknown member /inner/txt: known are text`,
		`{"number": "1"}`:           `want an integer, not a string at /number`,
		`{"number": 1.5}`:           `invalid syntax at /number`,
		`{"inner": {"text": [1]}}`:  `want a string, not an array at /inner/text`,
		`{"list": {}}`:              `want an array, not an object at /list`,
		`{"flag": 1}`:               `want true or false, not a number at /flag`,
		`[]`:                        `want an object, not an array`,
		`{"number": 1`:              `unexpected EOF after offset 12`,
		`{"flag": true, "flag": 1}`: `duplicate object member name "flag"`,
	} {
		err := Unmarshal([]byte(text), new(value), RejectUnknownMembers(true))
		if err == nil {
			t.Errorf("%s: no error", text)
		} else if got := Reason(err); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
