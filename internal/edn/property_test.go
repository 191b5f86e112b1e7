package edn_test

import (
	"bytes"
	"math/big"
	"slices"
	"testing"

	"github.com/stonelayer/stone/internal/edn"
	"pgregory.net/rapid"
)

// values draws values of all kinds, nested up to a depth. If plain is true, it omits
// values that Clojure reads differently.
func values(depth int, plain bool) *rapid.Generator[edn.Value] {
	name := rapid.StringMatching(`[a-z*!_?$%&=<>.+-][a-z*!?.+-]{0,3}(/[a-z<][a-z0-9#-]{0,3})?`)
	chars := rapid.RuneFrom([]rune("aZ1 \n\t\r\f\b\\\"(,;#é\x00\x7f\u00a0\u2028😀"))
	if plain {
		name = rapid.StringMatching(`[a-z*!?=<>][a-z*!?-]{0,3}(/[a-z<][a-z0-9-]{0,3})?`)
		chars = rapid.RuneFrom([]rune("aZ1 \n\t\r\f\b\\\"(,;#é\u2028"))
	}
	scalars := []*rapid.Generator[edn.Value]{
		rapid.Just(edn.Value{}),
		rapid.Map(rapid.Bool(), edn.Bool),
		rapid.Map(rapid.Int64Range(-3, 3), edn.Int),
		rapid.Map(rapid.Int64(), edn.Int),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) edn.Value { return edn.BigInt(new(big.Int).SetBytes(b)) }),
		rapid.Map(rapid.Float64(), edn.Float),
		rapid.Map(rapid.SampledFrom([]float64{0, 1, -1, 1e21, 1e20, 1e-7}), edn.Float),
		rapid.Custom(func(t *rapid.T) edn.Value {
			return edn.Decimal(big.NewInt(rapid.Int64().Draw(t, "coefficient")), rapid.IntRange(-40, 40).Draw(t, "exponent"))
		}),
		rapid.Map(chars, edn.Char),
		rapid.Map(rapid.StringOf(chars), edn.String),
		rapid.Map(name.Filter(legal), func(s string) edn.Value { return must(edn.Symbol(s)) }),
		rapid.Map(name.Filter(legal), func(s string) edn.Value { return must(edn.Keyword(s)) }),
		rapid.Just(must(edn.Tagged("inst", edn.String("2001-02-03T04:05:06.789Z")))),
		rapid.Just(must(edn.Tagged("uuid", edn.String("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")))),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	inner := rapid.Deferred(func() *rapid.Generator[edn.Value] { return values(depth-1, plain) })
	items := rapid.SliceOfN(inner, 0, 12)
	return rapid.OneOf(append(scalars,
		rapid.Map(items, func(items []edn.Value) edn.Value { return edn.List(items...) }),
		rapid.Map(items, func(items []edn.Value) edn.Value { return edn.Vector(items...) }),
		rapid.Map(items, func(items []edn.Value) edn.Value { return must(edn.Set(distinct(items)...)) }),
		rapid.Custom(func(t *rapid.T) edn.Value {
			var entries []edn.Value
			for _, key := range distinct(items.Draw(t, "keys")) {
				entries = append(entries, key, inner.Draw(t, "value"))
			}
			return must(edn.Map(entries...))
		}),
		rapid.Map(inner, func(v edn.Value) edn.Value { return must(edn.Tagged("my/tag", v)) }),
	)...)
}

func legal(name string) bool {
	_, err := edn.Symbol(name)
	return err == nil
}

func distinct(items []edn.Value) []edn.Value {
	var out []edn.Value
	for _, item := range items {
		if !slices.ContainsFunc(out, item.Equal) {
			out = append(out, item)
		}
	}
	return out
}

func must(v edn.Value, err error) edn.Value {
	if err != nil {
		panic(err)
	}
	return v
}

// TestRoundTrip checks that the text of a value, on one line or on many, reads as an
// equal value with the same text.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3, false).Draw(t, "value")
		text := v.String()
		for _, written := range [][]byte{[]byte(text), edn.Format(v)} {
			again, err := edn.Read(written, edn.Limits{})
			if err != nil {
				t.Fatalf("%q: %v", written, err)
			}
			if !again.Equal(v) || !v.Equal(again) {
				t.Fatalf("%q reads as %q", written, again)
			}
			if got := again.String(); got != text {
				t.Fatalf("%q is written again as %q", text, got)
			}
		}
	})
}

// TestOrderOfEntries checks that the order in which a set or map was made affects only
// the order of iteration.
func TestOrderOfEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := distinct(rapid.SliceOfN(values(2, false), 0, 12).Draw(t, "items"))
		shuffled := rapid.Permutation(items).Draw(t, "shuffled")
		a, b := must(edn.Set(items...)), must(edn.Set(shuffled...))
		if !a.Equal(b) || a.String() != b.String() {
			t.Fatalf("%v and %v differ", a, b)
		}
		outer := must(edn.Set(a, edn.Int(1)))
		if _, ok := outer.Get(b); !ok {
			t.Fatalf("%v is not found in %v", b, outer)
		}
	})
}

// TestJSONRoundTrip checks that a value read from JSON is read again from the JSON that
// is written for it.
func TestJSONRoundTrip(t *testing.T) {
	inJSON := values(3, false).Filter(func(v edn.Value) bool { _, err := edn.ToJSON(v); return err == nil })
	rapid.Check(t, func(t *rapid.T) {
		data, err := edn.ToJSON(inJSON.Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		v, err := edn.FromJSON(data, edn.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		written, err := edn.ToJSON(v)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		again, err := edn.FromJSON(written, edn.Limits{})
		if err != nil || !again.Equal(v) || !bytes.Equal(again.Append(nil), v.Append(nil)) {
			t.Fatalf("%s became %s: %v", data, written, err)
		}
	})
}
