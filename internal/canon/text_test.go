package canon

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// TestNumbersOfRFC8785 tests the table of RFC 8785, appendix B.
func TestNumbersOfRFC8785(t *testing.T) {
	for _, c := range []struct {
		bits uint64
		want string // empty: refused
	}{
		{0x0000000000000000, "0"},
		{0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"},
		{0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"},
		{0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"},
		{0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"},
		{0x7fffffffffffffff, ""},
		{0x7ff0000000000000, ""},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"},
		{0x44b52d02c7e14af6, "1e+23"},
		{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"},
		{0x444b1ae4d6e2ef4f, "999999999999999900000"},
		{0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
		{0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"},
		{0x41b3de4355555554, "333333333.33333325"},
		{0x41b3de4355555555, "333333333.3333333"},
		{0x41b3de4355555556, "333333333.3333334"},
		{0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"},
		{0x43143ff3c1cb0959, "1424953923781206.2"},
	} {
		v := math.Float64frombits(c.bits)
		got, err := Append(nil, v)
		if c.want == "" {
			if err == nil {
				t.Errorf("%016x: got %s, want an error", c.bits, got)
			}
			continue
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%016x: got %s, %v, want %s", c.bits, got, err, c.want)
		}
		if again, err := AppendJSON(nil, got); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%016x: %s becomes %s, %v as text", c.bits, got, again, err)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"sample of RFC 8785, section 3.2.2",
			`{
			  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
			  "literals": [null, true, false]
			}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"sorting of RFC 8785, section 3.2.3",
			`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`,
			"{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}"},
		{"nested objects are sorted", `[{"b":{"d":1,"c":2},"a":0}]`, `[{"a":0,"b":{"c":2,"d":1}}]`},
		{"empty", ` { "a" : [ ] , "b" : { } } `, `{"a":[],"b":{}}`},
		{"prefix first", `{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		{"no escapes beyond the needed", `"<>&\u2028\u007f\/"`, "\"<>&\u2028\u007f/\""},
		{"control characters", `"\u0000\u001f\b\t\n\f\r"`, `"\u0000\u001f\b\t\n\f\r"`},
		{"escaped quotes before numbers", `["\\", 1.0, "\\\"", 2.0, "\"1e400"]`, `["\\",1,"\\\"",2,"\"1e400"]`},
		{"2^53", `9007199254740992`, `9007199254740992`},
		{"2^53+1", `9007199254740993`, `9007199254740993`},
		{"2^53+1 with a point is a float", `9007199254740993.0`, `9007199254740992`},
		{"2^63-1", `9223372036854775807`, `9223372036854775807`},
		{"-2^63", `-9223372036854775808`, `-9223372036854775808`},
		{"2^64-1", `18446744073709551615`, `18446744073709551615`},
		{"2^64", `18446744073709551616`, `18446744073709551616`},
		{"2^64 as a float", `1.8446744073709551616e19`, `18446744073709552000`},
		{"many digits", "1" + strings.Repeat("0", 308), "1" + strings.Repeat("0", 308)},
		{"minus zero", `[-0, -0.0, -0e5, 0e-999, 0.0E+999]`, `[0,0,0,0,0]`},
		{"smallest float", `[5e-324, 3e-324, -4.9406564584124654e-324]`, `[5e-324,5e-324,-5e-324]`},
		{"long fraction", "0." + strings.Repeat("0", 310) + "1", "1e-311"},
	} {
		got, err := AppendJSON([]byte("x"), []byte(c.in))
		if err != nil || string(got) != "x"+c.want {
			t.Errorf("%s:\n got %s, %v\nwant x%s", c.name, got, err, c.want)
		}
	}
}

func TestAppendJSONRefuses(t *testing.T) {
	const cannot = "cannot be canonical JSON: "
	for _, c := range []struct{ in, want string }{
		{``, cannot + "unexpected EOF at byte 0"},
		{`1 2`, cannot + "invalid character '2' after top-level value at byte 2"},
		{`{"a":[1,tru]}`, cannot + "a[1]: invalid character ']' in literal true (expecting 'e') at byte 11"},
		{`{"items":[0,{"price":1e400}]}`, cannot + "items[1].price: 1e400 is beyond the range of a float64: write it as a string"},
		{`[-1e309]`, cannot + "[0]: -1e309 is beyond the range of a float64: write it as a string"},
		{`{"a b":{"1":1e-400}}`, cannot + `["a b"]["1"]: 1e-400 is beyond the range of a float64: write it as a string`},
		{"1" + strings.Repeat("0", 309), cannot + "1" + strings.Repeat("0", 59) + "… is beyond the range of a float64: write it as a string"},
		{"0." + strings.Repeat("0", 400) + "1", cannot + "0." + strings.Repeat("0", 58) + "… is beyond the range of a float64: write it as a string"},
		{`{"x":{"a":1,"b":2,"a":3}}`, cannot + `x.a: duplicate object member name at byte 18`},
		{`{"a":1,"\u0061":2}`, cannot + `a: duplicate object member name at byte 7`},
		{`{"s":"\ud800"}`, cannot + "s: invalid surrogate pair `\\ud800\"}` in string at byte 6"},
		{"[\"a\xffb\"]", cannot + "[0]: invalid UTF-8 at byte 3"},
		{`01`, cannot + "invalid character '1' after top-level value at byte 1"},
		{`NaN`, cannot + "invalid character 'N' at start of value at byte 0"},
		{"\ufeff1", cannot + "invalid character '\\ufeff' at start of value at byte 0"},
	} {
		got, err := AppendJSON([]byte("x"), []byte(c.in))
		if err == nil || err.Error() != c.want {
			t.Errorf("%.60s:\n got %v\nwant %s", c.in, err, c.want)
		}
		if string(got) != "x" {
			t.Errorf("%.60s: dst came back as %q", c.in, got)
		}
	}
}

// TestIsCanonical has texts that isCanonical accepts, and others. FuzzAppendJSON checks
// that every text it accepts is canonical.
func TestIsCanonical(t *testing.T) {
	for text, want := range map[string]bool{
		`"a text\n with \"escapes\" and é"`: true,
		`{"a":1,"b":[true,null,-12.5]}`:     true,
		`{"é":1,"😀":2,"ﬀ":3}`:               true,
		`1e+21`:                             true,
		`{"b":1,"a":2}`:                     false,
		`{"a":1,"a":1}`:                     false,
		`{"a": 1}`:                          false,
		`"\u0001"`:                          false,
		`{"\n":1}`:                          false,
		`-0`:                                false,
		`1.50`:                              false,
		``:                                  false,
		"\"\xff\"":                          false,
		strings.Repeat("[", easyDepth) + strings.Repeat("]", easyDepth):     true,
		strings.Repeat("[", easyDepth+1) + strings.Repeat("]", easyDepth+1): false,
	} {
		if got := isCanonical([]byte(text), 0); got != want {
			t.Errorf("%.60s: got %t", text, got)
		}
	}
}

func TestAppendJSONDepth(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(strings.Repeat(`[`, n) + strings.Repeat(`]`, n))
	}
	if _, err := AppendJSON(nil, nested(maxDepth)); err != nil {
		t.Error(err)
	}
	for _, n := range []int{maxDepth + 1, 1_000_000} {
		if _, err := AppendJSON(nil, nested(n)); err == nil {
			t.Errorf("%d levels were accepted", n)
		} else if len(err.Error()) > 300 {
			t.Errorf("%d levels make a message of %d bytes", n, len(err.Error()))
		}
	}
}

func FuzzAppendJSON(f *testing.F) {
	for _, s := range []string{
		`{"b":[1.50,-0,1e21,"\u00e9\/"],"a":{"\ud83d\ude00":1,"\ufb33":2}}`,
		`9007199254740993`, `1e400`, `1e-400`, `"\ud800"`, `{"a":1,"a":2}`, "[\"\xff\"]",
		`{"a":[0,-12,1.5,1e+21,true,false,null,"é\n\\"],"b":{},"é":{"x":[]},"😀":1,"\ufb33":2}`, `[-0]`, `[01]`, `[1,]`, `{"a":1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if isCanonical(src, 0) {
			if out, f := reformat(nil, src, 0); f != nil || !bytes.Equal(out, src) {
				t.Fatalf("%q is taken for canonical: it becomes %q, %v", src, out, f)
			}
		}
		once, err := AppendJSON(nil, src)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") || len(once) > 0 {
				t.Fatalf("error %q with output %q", err, once)
			}
			return
		}
		twice, err := AppendJSON(nil, once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q becomes %q, then %q, %v", src, once, twice, err)
		}
		// The decoded Go value is encoded as the same text.
		v, err := decodeExact(src)
		if err != nil {
			t.Fatalf("%q: %v", src, err)
		}
		if got, err := Append(nil, v); err != nil || !bytes.Equal(got, once) {
			t.Fatalf("%q: as a value %q, %v, as text %q", src, got, err, once)
		}
	})
}

func FuzzFloats(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0x80})
	f.Add([]byte{0xa0, 0xb5, 0x37, 0x86, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 8 {
			return
		}
		bits := binary.LittleEndian.Uint64(b)
		agree(t, math.Float64frombits(bits))
		agree(t, math.Float32frombits(uint32(bits)))
	})
}

func TestFloat32AtTheCutoffs(t *testing.T) {
	for _, near := range []float32{1e-6, 1e21, 1, 1 << 24, math.MaxFloat32, math.SmallestNonzeroFloat32} {
		bits := math.Float32bits(near)
		for d := uint32(0); d < 2000; d++ {
			agree(t, math.Float32frombits(bits+d))
			agree(t, math.Float32frombits(bits-d))
		}
	}
}
