package schema

import (
	"reflect"
	"strings"
	"testing"
)

// FuzzQuick checks that quick returns the decoder's value, and accepts no text that the
// decoder rejects.
func FuzzQuick(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `null`, ` true `, `"x"`, `"ż"`, `"\n"`, "\"\xff\"", `-0`, `01`, `1.`, `1.5`, `1e5`, `-`, `{"a":1,"a":[{"b":null}]}`,
		`[1,]`, `{"a"}`, `{"a":1}x`, `"`, `tru`, strings.Repeat("[", 100) + strings.Repeat("]", 100), `99999999999999999999`, "\"\t\"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fast, ok := decodeQuick(data)
		if !ok {
			return
		}
		slow, err := decodeSlow(data)
		if err != nil || !reflect.DeepEqual(fast, slow) {
			t.Errorf("%q: quick reads %#v, the decoder %#v, %v", data, fast, slow, err)
		}
	})
}
