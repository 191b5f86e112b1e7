package edn

import (
	"strings"
	"testing"
)

func TestReadEither(t *testing.T) {
	for _, tc := range []struct {
		text string
		json bool
		fail string // part of the error
	}{
		{`{"op": "call"}`, true, ""},
		{" \n{ \"a\\\"b\" :1}", true, ""},
		{`[{"op": "call"}, 1]`, true, ""},
		{`{:op :call}`, false, ""},
		{`{}`, false, ""},
		{`{"a" 1}`, false, ""},
		{"; {\"a\": 1}\n[1 2]", false, ""},
		{`{"a": 1,}`, true, "1:8: expected JSON"},
		{`{"a": :b}`, true, "1:7: expected JSON"},
		{`{"a" :b`, true, "1:7: expected JSON"},
		{`{:a "b": 1}`, false, "1:8"},
		{`{"a`, false, "1:2"},
		{`{"a\`, false, "expected the rest"},
		{``, false, "1:1"},
	} {
		v, err := ReadEither([]byte(tc.text), Limits{})
		switch {
		case tc.fail != "":
			if err == nil || !strings.Contains(err.Error(), tc.fail) {
				t.Errorf("%s: error %v, want %s", tc.text, err, tc.fail)
			}
		case err != nil || v.IsJSON() != tc.json:
			t.Errorf("%s: JSON %v, error %v; want %v", tc.text, v.IsJSON(), err, tc.json)
		}
	}
}
