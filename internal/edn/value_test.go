package edn_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone/internal/edn"
)

func read(t testing.TB, text string) edn.Value {
	t.Helper()
	v, err := edn.Read([]byte(text), edn.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEqual(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{`1`, `1N`, true},
		{`1`, `1.0`, false},
		{`1.0`, `1.0M`, false},
		{`1.0M`, `1.00M`, true},
		{`1M`, `10e-1M`, true},
		{`0.0`, `-0.0`, true},
		{`##NaN`, `##NaN`, true},
		{`12345678901234567890`, `+12345678901234567890N`, true},
		{`(1 2)`, `[1 2]`, true},
		{`()`, `[]`, true},
		{`[]`, `#{}`, false},
		{`{}`, `#{}`, false},
		{`{}`, `nil`, false},
		{`[1 2]`, `[2 1]`, false},
		{`#{1 2}`, `#{2 1}`, true},
		{`{:a [1] :b #{2 (3)}}`, `{:b #{[3] 2} :a (1)}`, true},
		{`{:a 1}`, `{:a 2}`, false},
		{`{:a nil}`, `{:b nil}`, false},
		{`:a`, `a`, false},
		{`"a"`, `\a`, false},
		{`#a 1`, `#a 1`, true},
		{`#a 1`, `#b 1`, false},
		{`#a 1`, `[1]`, false},
		{`#{0 1 2 3 4 5 6 7 8 [9]}`, `#{(9) 8 7 6 5 4 3 2 1 0}`, true},
		{`{0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9}`, `{9 9 8 8 7 7 6 6 5 5 4 4 3 3 2 2 1 1 0 1}`, false},
	}
	for _, test := range tests {
		a, b := read(t, test.a), read(t, test.b)
		if a.Equal(b) != test.want || b.Equal(a) != test.want {
			t.Errorf("%s = %s is not %t", test.a, test.b, test.want)
		}
		if !a.Equal(a) || !b.Equal(b) {
			t.Errorf("%s or %s does not equal itself", test.a, test.b)
		}
	}
}

func TestPositions(t *testing.T) {
	v := read(t, "{:a 1\r\n \"é😀\" [x\n #_ y #t z]}")
	var got []string
	var visit func(v edn.Value)
	visit = func(v edn.Value) {
		line, column := v.Position()
		got = append(got, fmt.Sprintf("%d:%d %s", line, column, v.Kind()))
		for _, item := range v.Elements() {
			visit(item)
		}
		for key, value := range v.Entries() {
			visit(key)
			visit(value)
		}
		if _, inner, ok := v.Tagged(); ok {
			visit(inner)
		}
	}
	visit(v)
	want := "1:1 map, 1:2 keyword, 1:5 integer, 2:2 string, 2:7 vector, 2:8 symbol, 3:7 tagged value, 3:10 symbol"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	a, _ := v.Field("a")
	if got := a.Errorf("expected a %s", edn.KindString).Error(); got != "1:5: expected a string" {
		t.Error(got)
	}
	if got := edn.Int(1).Errorf("expected 2").Error(); got != "expected 2" {
		t.Error(got)
	}
}

// TestLookup finds every key of small and large maps and sets, and no other.
func TestLookup(t *testing.T) {
	for _, size := range []int{0, 1, 8, 9, 1000} {
		var entries, elements []edn.Value
		for i := range size {
			key := edn.Vector(edn.Int(int64(i)), edn.String("k"))
			entries = append(entries, key, edn.Int(int64(i)))
			elements = append(elements, key)
		}
		m, errMap := edn.Map(entries...)
		s, errSet := edn.Set(elements...)
		if errMap != nil || errSet != nil {
			t.Fatal(errMap, errSet)
		}
		for i := range size + 1 {
			key := edn.List(edn.Int(int64(i)), edn.String("k"))
			value, inMap := m.Get(key)
			element, inSet := s.Get(key)
			if inMap != (i < size) || inSet != inMap || inMap && (!value.Equal(edn.Int(int64(i))) || element.Kind() != edn.KindVector) {
				t.Errorf("%d of %d: %v %t %v %t", i, size, value, inMap, element, inSet)
			}
		}
	}
}

func TestNames(t *testing.T) {
	inEDN := read(t, `{:cap/id :x/y, "cap/id" "s", id nil}`)
	inJSON, err := edn.FromJSON([]byte(`{"cap/id": ":x/y", ":as": "a b"}`), edn.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		in    edn.Value
		field string
		want  string
	}{
		{inEDN, "cap/id", "x/y true"},
		{inEDN, "id", "no field"},
		{inJSON, "cap/id", "x/y true"},
		{inJSON, "as", "a b false"},
		{inJSON, "id", "no field"},
	}
	for _, test := range tests {
		got := "no field"
		if v, ok := test.in.Field(test.field); ok {
			name, isName := v.Name()
			got = fmt.Sprint(name, " ", isName)
		}
		if got != test.want {
			t.Errorf("field %s of %v: %s, want %s", test.field, test.in, got, test.want)
		}
	}
	if name, ok := edn.String("a").Name(); ok {
		t.Errorf("a string is the name %q", name)
	}
}

// TestMake compares the constructors with the reader.
func TestMake(t *testing.T) {
	large, _ := new(big.Int).SetString("-123456789012345678901234567890", 10)
	one := func(v edn.Value, err error) edn.Value {
		if err != nil {
			t.Error(err)
		}
		return v
	}
	tests := []struct {
		made edn.Value
		text string
	}{
		{edn.Value{}, `nil`},
		{edn.Bool(true), `true`},
		{edn.Int(math.MinInt64), `-9223372036854775808`},
		{edn.BigInt(large), `-123456789012345678901234567890N`},
		{edn.BigInt(big.NewInt(5)), `5`},
		{edn.BigInt(nil), `0`},
		{edn.Float(1e100), `1e100`},
		{edn.Decimal(big.NewInt(-1500), -3), `-1.5M`},
		{edn.Decimal(nil, 7), `0M`},
		{edn.Char('x'), `\x`},
		{edn.Char(0xD800), "\\\uFFFD"},
		{edn.String("a\xffb\x01\x7f"), `"a` + "\uFFFD" + `b\u0001\u007f"`},
		{one(edn.Symbol("a/b")), `a/b`},
		{one(edn.Keyword("a/b")), `:a/b`},
		{edn.List(edn.Int(1)), `(1)`},
		{one(edn.Tagged("inst", edn.String("2000-01-01T01:00:00+01:00"))), `#inst "2000-01-01T00:00:00Z"`},
	}
	for _, test := range tests {
		if got := test.made.String(); got != test.text {
			t.Errorf("got %s, want %s", got, test.text)
		}
		if v := read(t, test.text); !v.Equal(test.made) {
			t.Errorf("%s is read as %v", test.text, v)
		}
	}
	refused := map[string]func() (edn.Value, error){
		`symbol "true": expected a name other than nil, true and false`: func() (edn.Value, error) { return edn.Symbol("true") },
		`symbol ":a": expected a name that does not begin with :`:       func() (edn.Value, error) { return edn.Symbol(":a") },
		`keyword ":": expected a name`:                                  func() (edn.Value, error) { return edn.Keyword("") },
		`tag "#": expected a tag to begin with a letter`:                func() (edn.Value, error) { return edn.Tagged("", edn.Int(1)) },
		`expected a value for the key 1`:                                func() (edn.Value, error) { return edn.Map(edn.Int(1)) },
		`duplicate element 1 in a set`:                                  func() (edn.Value, error) { return edn.Set(edn.Int(1), edn.Int(1)) },
	}
	for want, make := range refused {
		if _, err := make(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAccessors(t *testing.T) {
	decimal, exponent, ok := read(t, `-12.50M`).Decimal()
	if decimal.String() != "-125" || exponent != -1 || !ok {
		t.Error(decimal, exponent, ok)
	}
	large, ok := read(t, `12345678901234567890`).BigInt()
	if large.String() != "12345678901234567890" || !ok {
		t.Error(large, ok)
	}
	floats := map[string]string{`1`: "1 true", `1.5M`: "1.5 true", `12345678901234567890`: "1.2345678901234567e+19 true", `1e999M`: "+Inf false", `:a`: "0 false"}
	for text, want := range floats {
		f, ok := read(t, text).Float64()
		if got := fmt.Sprint(f, " ", ok); got != want {
			t.Errorf("Float64 of %s: %s, want %s", text, got, want)
		}
	}
	if n, ok := read(t, `9223372036854775808`).Int64(); ok {
		t.Error("Int64 of what needs 65 bits:", n)
	}
	if v := read(t, `{:a 1}`); v.Len() != 1 || !v.At(0).IsNil() {
		t.Error("a map has an element")
	}
	if v := read(t, `[1 2]`); v.Len() != 2 || !v.At(2).IsNil() || !v.At(-1).IsNil() || v.At(1).String() != "2" {
		t.Error("elements of [1 2]")
	}
}

func TestFormat(t *testing.T) {
	long := strings.Repeat("x", 50)
	tests := []struct{ text, want string }{
		{`{:b 1 :a [1 2]}`, `{:a [1 2], :b 1}`},
		{`[` + long + ` ` + long + `]`, "[" + long + "\n " + long + "]"},
		{`{:id "plan" :nodes [{:op :call :intent :text/respond :as :answer :input {:prompt "` + long + `"}} {:op :emit}]}`, `{:id "plan"
 :nodes [{:as :answer
          :input {:prompt "` + long + `"}
          :intent :text/respond
          :op :call}
         {:op :emit}]}`},
		{`#{[` + long + ` 1] #t/é [` + long + ` ` + long + `]}`, "#{[" + long + " 1]\n  #t/é [" + long + "\n        " + long + "]}"},
		{`{[` + long + ` ` + long + `] [` + long + ` ` + long + `]}`, "{[" + long + "\n  " + long + "] [" + long + "\n" + strings.Repeat(" ", 55) + long + "]}"},
		{strings.Repeat("[", 170) + long + ` ` + long + strings.Repeat("]", 170), strings.Repeat("[", 170) + long + " " + long + strings.Repeat("]", 170)},
	}
	for _, test := range tests {
		if got := string(edn.Format(read(t, test.text))); got != test.want+"\n" {
			t.Errorf("Format(%s)\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

// TestShared uses one value from several goroutines, for the race detector: hashes,
// orders and positions are computed on first use.
func TestShared(t *testing.T) {
	const text = `{[1 2] #{3 4} {:a 1 :b 2} [#{5 6} #{7 8}]}`
	v, other := read(t, text), read(t, text)
	want := v.String()
	v = read(t, text)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, ok := v.Get(read(t, `{:b 2 :a 1}`)); !ok || v.String() != want || !v.Equal(other) {
				t.Error("differs when it is shared")
			}
			if line, column := v.Position(); line != 1 || column != 1 {
				t.Error(line, column)
			}
		})
	}
	group.Wait()
}
