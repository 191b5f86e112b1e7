package edn_test

import (
	"testing"

	"github.com/stonelayer/stone/internal/edn"
)

// FuzzRead checks that the reader returns a value, or an error at a place in the text,
// for any bytes, and that values survive being written.
func FuzzRead(f *testing.F) {
	for _, test := range reads {
		f.Add([]byte(test.text))
	}
	for _, test := range peerTexts {
		f.Add([]byte(test.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := edn.Read(data, edn.Limits{})
		if err != nil {
			checkError(t, err, data)
			return
		}
		text := v.String()
		for _, written := range [][]byte{[]byte(text), edn.Format(v)} {
			again, err := edn.Read(written, edn.Limits{Bytes: len(written)})
			if err != nil {
				t.Fatalf("%q is written as %q: %v", data, written, err)
			}
			if !again.Equal(v) || again.String() != text {
				t.Fatalf("%q is written as %q", data, written)
			}
		}
		all, err := edn.ReadAll(data, edn.Limits{})
		if err != nil || len(all) != 1 || !all[0].Equal(v) {
			t.Fatalf("ReadAll of %q gives %v, %v", data, all, err)
		}
	})
}

// FuzzFromJSON does the same for JSON.
func FuzzFromJSON(f *testing.F) {
	for _, text := range []string{`{"a": [1, 1.5, null, true, "é\u00e9\n"]}`, `1e400`, `-0.0`, `70000000000000001.0`, `"\ud83d\ude00"`, `[[`, `{"a":1,"a":2}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := edn.FromJSON(data, edn.Limits{})
		if err != nil {
			checkError(t, err, data)
			return
		}
		written, err := edn.ToJSON(v)
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		again, err := edn.FromJSON(written, edn.Limits{Bytes: len(written)})
		if err != nil || !again.Equal(v) {
			t.Fatalf("%q is written as %q: %v", data, written, err)
		}
	})
}

func checkError(t *testing.T, err error, data []byte) {
	e, ok := err.(*edn.Error)
	if !ok || e.Line < 1 || e.Column < 1 || e.Column > len(data)+1 || e.Reason == "" {
		t.Fatalf("%q: %#v", data, err)
	}
}
