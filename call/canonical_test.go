package call

import (
	"bytes"
	"testing"

	"github.com/stonelayer/stone/internal/canon"
)

func FuzzCanonical(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"b":[true,null,"x"]}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"":1,"a":2}`, `[]`, `{}`, ` 1`, `-0`, `01`, `1.0`, `12345678901234567890`, `"é"`, `"\u0041"`, `{"a":1,}`, `[1,]`, ``, `tru`, `1 `,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := canonical(data)
		want, wrong := canon.AppendJSON(nil, data)
		if (err == nil) != (wrong == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%q: got %s, %v; want %s, %v", data, got, err, want, wrong)
		}
	})
}
