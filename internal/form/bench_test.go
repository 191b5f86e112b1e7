package form_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
)

func BenchmarkRead(b *testing.B) {
	const call = `{:as :one :intent :a/b :candidates [:x/y :x/z] :score-min 0.5 :retry {:max 2}}`
	v, err := edn.Read([]byte("["+strings.Repeat(call+"\n", 1000)+"]"), edn.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		faults := form.ReadValue(v, func(v form.Value) {
			v.Each(func(_ int, v form.Value) {
				v.Map(func(m *form.Map) {
					var as string
					m.At("as").Name(&as)
					new(spec).read(m)
				})
			})
		})
		if faults != nil {
			b.Fatal(faults)
		}
	}
}
