package cel_test

import (
	"testing"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/x/cel"
)

func BenchmarkCheck(b *testing.B) {
	for _, expression := range []string{"size(out.text) <= 6", "size(out.text) <= call.input.max"} {
		b.Run(expression, func(b *testing.B) {
			check, err := cel.Check(expression)
			if err != nil {
				b.Fatal(err)
			}
			s := call.Subject{Request: &call.Request{Intent: "x/y", Input: call.JSON(`{"max":7}`)}, Out: call.JSON(`{"text":"short"}`)}
			b.ReportAllocs()
			for b.Loop() {
				if err := check(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
