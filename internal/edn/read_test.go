package edn_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/test/need"
)

// reads has texts with the canonical text of their value, or the reader's error.
var reads = []struct{ text, want string }{
	// Words and numbers.
	{`nil`, `nil`},
	{` , true,`, `true`},
	{`false`, `false`},
	{`0`, `0`},
	{`-0`, `0`},
	{`+42`, `42`},
	{`42N`, `42`},
	{`9223372036854775807`, `9223372036854775807`},
	{`9223372036854775808`, `9223372036854775808N`},
	{`-9223372036854775808`, `-9223372036854775808`},
	{`-9223372036854775809N`, `-9223372036854775809N`},
	{`+9223372036854775809`, `9223372036854775809N`},
	{`1.5`, `1.5`},
	{`-0.0`, `-0.0`},
	{`+1.50e3`, `1500.0`},
	{`1E-9`, `1e-9`},
	{`1e21`, `1e21`},
	{`0.1`, `0.1`},
	{`5e-324`, `5e-324`},
	{`##Inf`, `##Inf`},
	{`##-Inf`, `##-Inf`},
	{`##NaN`, `##NaN`},
	{`1M`, `1M`},
	{`-1.50M`, `-1.5M`},
	{`0.000M`, `0M`},
	{`-0M`, `0M`},
	{`12.5e-3M`, `0.0125M`},
	{`1e30M`, `1e30M`},
	{`1.25e-30M`, `125e-32M`},
	{`0.1234567890123456789012345678901234567890M`, `0.123456789012345678901234567890123456789M`},
	{`1/2`, `1:1: number "1/2": expected a float or a decimal: EDN has no ratios`},
	{`012`, `1:1: number "012": expected an integer in decimal digits that does not begin with 0`},
	{`0x1F`, `1:1: number "0x1F": expected an integer in decimal digits that does not begin with 0`},
	{`01.5`, `1:1: number "01.5": expected an integer in decimal digits that does not begin with 0`},
	{`1.`, `1:1: number "1.": expected a digit after the point`},
	{`1.e5`, `1:1: number "1.e5": expected a digit after the point`},
	{`1.5N`, `1:1: number "1.5N": expected M, for an exact decimal, or nothing: N is for integers`},
	{`1e`, `1:1: number "1e": expected a number like 1, -1, 1N, 1.5, 1e10 or 1.5M, or white space before "e"`},
	{`-1a`, `1:1: number "-1a": expected a number like 1, -1, 1N, 1.5, 1e10 or 1.5M, or white space before "a"`},
	{`2r101`, `1:1: number "2r101": expected a number like 1, -1, 1N, 1.5, 1e10 or 1.5M, or white space before "r101"`},
	{`1e400`, `1:1: number "1e400": expected a float within the range of 64 bits; with M at its end the number is an exact decimal`},
	{`1e-400`, `1:1: number "1e-400": expected a float within the range of 64 bits; with M at its end the number is an exact decimal`},
	{`1e10000M`, `1e10000M`},
	{`1e10001M`, `1:1: number "1e10001M": expected a decimal that is an integer × 10^n with n from -10000 to 10000`},
	{`##Infinity`, `1:1: expected ##Inf, ##-Inf or ##NaN, found ##Infinity`},

	// Characters and strings.
	{`\a`, `\a`},
	{`\u0041`, `\A`},
	{`\o101`, `\A`},
	{`\u`, `\u`},
	{`\o`, `\o`},
	{`[\newline \return \space \tab \formfeed \backspace]`, `[\newline \return \space \tab \formfeed \backspace]`},
	{`\u000a`, `\newline`},
	{`\u0000`, `\u0000`},
	{`\u00a0`, `\u00a0`},
	{`[\(\)\,\"\;\\]`, `[\( \) \, \" \; \\]`},
	{`\é`, `\é`},
	{`\😀`, `\😀`},
	{`\ a`, `1:1: expected a character after \, found white space: it is written \space, \newline, \tab, …`},
	{`\`, `1:1: expected a character after \, found white space: it is written \space, \newline, \tab, …`},
	{`\ab`, `1:1: character \ab: expected one character, \newline, \return, \space, \tab, \formfeed, \backspace, \u and four hexadecimal digits, or \o and at most 377`},
	{`\ud800`, `1:1: character \ud800: expected a character, found half of a surrogate pair`},
	{`\o400`, `1:1: character \o400: expected one character, \newline, \return, \space, \tab, \formfeed, \backspace, \u and four hexadecimal digits, or \o and at most 377`},
	{`""`, `""`},
	{`"a\t\n\r\b\f\\\"z"`, `"a\t\n\r\b\f\\\"z"`},
	{"\"two\nlines\"", `"two\nlines"`},
	{`"\u00e9\u0041\101\0"`, `"éAA\u0000"`},
	{`"\ud83d\ude00"`, `"😀"`},
	{`"\377"`, `"ÿ"`},
	{`"\ud83d"`, `1:2: escape \ud83d: expected a surrogate pair, found half of one`},
	{`"\ude00\ud83d"`, `1:2: escape \ude00: expected a surrogate pair, found half of one`},
	{`"\u00g0"`, `1:2: escape \u: expected four hexadecimal digits`},
	{`"a\q"`, `1:3: escape \q: expected \t, \n, \r, \b, \f, \\, \", \u and four hexadecimal digits, or an octal number to \377`},
	{`"\400"`, `1:2: escape \400: expected \t, \n, \r, \b, \f, \\, \", \u and four hexadecimal digits, or an octal number to \377`},
	{"\n \"ab", `2:5: expected ", for the string that begins at 2:2, found the end of the text`},
	{`"a\n`, `1:5: expected ", for the string that begins at 1:1, found the end of the text`},
	{`"\`, `1:3: expected the rest of an escape and ", found the end of the text`},

	// Names.
	{`[a a/b a.b/c-d * + - . -a .a +.5 / a#b a:b <= x' ]`, `1:47: symbol "x'": expected a name of letters, digits and . * + ! - _ ? $ % & = < > : #, found "'"`},
	{`[a a/b a.b/c-d * + - . -a .a +.5 / a#b a:b <= nil? éa]`, `[a a/b a.b/c-d * + - . -a .a +.5 / a#b a:b <= nil? éa]`},
	{`[:a :a/b :nil :allow-failure? :a1 :-]`, `[:a :a/b :nil :allow-failure? :a1 :-]`},
	{`:`, `1:1: keyword ":": expected a name`},
	{`::a`, `1:1: keyword "::a": expected a name that does not begin with :`},
	{`:1`, `1:1: keyword ":1": expected a name that does not begin with a digit`},
	{`:a/1`, `1:1: keyword ":a/1": expected a name that does not begin with a digit`},
	{`:/`, `1:1: keyword ":/": expected a name on both sides of /`},
	{`:a/`, `1:1: keyword ":a/": expected a name on both sides of /`},
	{`/a`, `1:1: symbol "/a": expected a name on both sides of /`},
	{`a/b/c`, `1:1: symbol "a/b/c": expected one / at most`},
	{`.5`, `1:1: symbol ".5": expected no digit after the . that begins a name`},
	{`:a/-1`, `1:1: keyword ":a/-1": expected no digit after the - that begins a name`},
	{"a\u00a0b", `1:1: symbol "a` + "\\u00a0" + `b": expected a name of letters, digits and . * + ! - _ ? $ % & = < > : #, found "\u00a0"`},

	// Collections.
	{`()`, `()`},
	{`(1 [2 {:a #{}}])`, `(1 [2 {:a #{}}])`},
	{`[1[2]"3"(4)5]`, `[1 [2] "3" (4) 5]`},
	{`{:b 1 :a 2, "c" 3, 4 5}`, `{4 5, "c" 3, :a 2, :b 1}`},
	{`#{10 9 1.5 nil [2] (1) true false \a "s" sym :k #t 1 #{} {}}`, `#{nil false true 9 10 1.5 \a "s" sym :k (1) [2] {} #{} #t 1}`},
	{`#{-1 -10 0 12345678901234567890 -12345678901234567890 2}`, `#{-12345678901234567890N -10 -1 0 2 12345678901234567890N}`},
	{`#{1.5M -1.5M 0M 1.25M 10M 2e50M -3M 1e-7M}`, `#{-3M -1.5M 0M 1e-7M 1.25M 1.5M 10M 2e50M}`},
	{`#{##NaN ##Inf 1.0 -2.0 ##-Inf}`, `#{##NaN ##-Inf -2.0 1.0 ##Inf}`},
	{`#{#{2 1} #{1} #{} {1 2} {}}`, `#{{} {1 2} #{} #{1} #{1 2}}`},
	{`[1`, `1:3: expected ], for the vector that begins at 1:1, found the end of the text`},
	{"{:a\n (1 ]}", `2:5: expected ), for the list that begins at 2:2, found ]`},
	{`)`, `1:1: expected a value, found )`},
	{``, `1:1: expected a value, found the end of the text`},
	{"; nothing\n", `2:1: expected a value, found the end of the text`},
	{`1 2`, `1:3: expected the end of the text after its one value, found 2`},
	{`{:a 1 :b}`, `1:7: expected a value for the key :b`},
	{"{:a 1\n :b 2 :a 3}", `2:7: duplicate key :a in a map, first at 1:2`},
	{`#{1 1N}`, `1:5: duplicate element 1 in a set, first at 1:3`},
	{`#{(1 2) [1 2]}`, `1:9: duplicate element [1 2] in a set, first at 1:3`},
	{`#{1.0M 1.00M}`, `1:8: duplicate element 1M in a set, first at 1:3`},
	{`#{0.0 -0.0}`, `1:7: duplicate element -0.0 in a set, first at 1:3`},
	{`#{{:a 1 :b 2} {:b 2 :a 1}}`, `1:15: duplicate element {:a 1, :b 2} in a set, first at 1:3`},
	{`#{0 1 2 3 4 5 6 7 8 9 5}`, `1:23: duplicate element 5 in a set, first at 1:13`},
	{`#{1 1.0 1M "1" \1}`, `#{1 1.0 1M \1 "1"}`},

	// Forms that begin with #.
	{`[1 #_ 2 #_#_ 3 4 5 #_(a)]`, `[1 5]`},
	{`#_ 1 2 #_ 3`, `2`},
	{`[1 #_]`, `1:6: expected a value to discard after #_, found ]`},
	{`#_ {:a 1 :a 2} 3`, `1:10: duplicate key :a in a map, first at 1:5`},
	{`#a/b {:x 1}`, `#a/b {:x 1}`},
	{`#a #b #_ c 1`, `#a #b 1`},
	{`[#a]`, `1:4: expected a value after #a, found ]`},
	{`#-a 1`, `1:1: expected a tag, {, _, # or : after #, found -a`},
	{`# a 1`, `1:1: expected a tag, {, _, # or : after #, found white space`},
	{`#a/b/c 1`, `1:1: expected one / at most, found a/b/c`},
	{`#"regex"`, `1:1: expected a tag, {, _, # or : after #, found "`},
	{`#inst "1985-04-12T23:20:50.52Z"`, `#inst "1985-04-12T23:20:50.52Z"`},
	{`#inst "1985-04-12T23:20:50.520-01:30"`, `#inst "1985-04-13T00:50:50.52Z"`},
	{`#inst "1985-04-12T23:20:50-00:00"`, `#inst "1985-04-12T23:20:50Z"`},
	{`#inst "1985-04-12"`, `1:7: #inst: expected a string like "2006-01-02T15:04:05.999Z" (RFC 3339), found "1985-04-12"`},
	{`#inst "1985-02-30T00:00:00Z"`, `1:7: #inst: expected a string like "2006-01-02T15:04:05.999Z" (RFC 3339), found "1985-02-30T00:00:00Z"`},
	{`#inst "1985-02-03T00:00:00+24:00"`, `1:7: #inst: expected a string like "2006-01-02T15:04:05.999Z" (RFC 3339), found "1985-02-03T00:00:00+24:00"`},
	{`#inst "1985-02-03T00:00:00.1234567890Z"`, `1:7: #inst: expected at most nine digits of a second, found "1985-02-03T00:00:00.1234567890Z"`},
	{`#inst "0000-01-01T00:00:00+01:00"`, `1:7: #inst: expected a year from 0000 to 9999 in UTC, found "0000-01-01T00:00:00+01:00"`},
	{`#inst 5`, `1:7: #inst: expected a string like "2006-01-02T15:04:05.999Z" (RFC 3339), found 5`},
	{`#{#inst "2000-01-01T00:00:00Z" #inst "2000-01-01T01:00:00+01:00"}`, `1:32: duplicate element #inst "2000-01-01T00:00:00Z" in a set, first at 1:3`},
	{`#uuid "F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"`, `#uuid "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"`},
	{`#uuid "f81d4fae"`, `1:7: #uuid: expected a string like "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", found "f81d4fae"`},
	{`#:a{:b 1 :c/d 2 :_/e 3 f 4 "g" 5}`, `{"g" 5, a/f 4, :a/b 1, :c/d 2, :e 3}`},
	{`#:a.b {:c #:d{:e 1}}`, `{:a.b/c {:d/e 1}}`},
	{`#:a{:b 1 :a/b 2}`, `1:10: duplicate key :a/b in a map, first at 1:5`},
	{`#:a{_/nil 1}`, `1:5: expected a symbol other than nil, true and false in the namespace _, found _/nil`},
	{`#:a{:_/nil 1 / 2 nil 3}`, `{nil 3, / 2, :nil 1}`},
	{`#:` + strings.Repeat("a", 256) + `{}`, `1:1: expected a namespace of at most 255 bytes before a map, found 256`},
	{`#:a/b{}`, `1:1: namespace "a/b" of a map: expected a name of letters, digits and . * + ! - _ ? $ % & = < > : #, found "/"`},
	{`#::a{}`, `1:1: expected #:name{…}: EDN has no current namespace, which #:: asks for`},
	{`#:a [1]`, `1:5: expected { after #:a, found [`},

	// Texts that are not EDN.
	{`^:m []`, `1:1: expected a value, found ^: EDN has no metadata`},
	{`'a`, `1:1: expected a value, found ': texts have double quotes, and EDN has no code`},
	{`@a`, `1:1: expected a value, found @: EDN has no code, only data`},
	{"\x1b[31m", `1:1: symbol "\x1b": expected a name of letters, digits and . * + ! - _ ? $ % & = < > : #, found "\x1b"`},
	{"\"\\\x1b\"", `1:2: escape \"\x1b": expected \t, \n, \r, \b, \f, \\, \", \u and four hexadecimal digits, or an octal number to \377`},
	{"##\x07", `1:1: expected ##Inf, ##-Inf or ##NaN, found ##"\a"`},
	{"\xEF\xBB\xBF1", `1:1: expected no byte order mark: store the text as UTF-8 without one`},
	{"[1\n \"é\xff\"]", `2:4: expected UTF-8, found the byte 0xff`},
	{"\"日本\" x", `1:6: expected the end of the text after its one value, found x`},
	{"[1 ; to the end\r\n 2]", `[1 2]`},
	{"1 ; end", `1`},
}

func TestRead(t *testing.T) {
	for _, test := range reads {
		v, err := edn.Read([]byte(test.text), edn.Limits{})
		got := fmt.Sprint(v)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("Read(%q)\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

func TestReadAll(t *testing.T) {
	tests := []struct{ text, want string }{
		{``, `[]`},
		{"1 ;c\n#_ 2 [3]:a", `[1 [3] :a]`},
		{"1\n}", `2:1: expected a value, found }`},
	}
	for _, test := range tests {
		all, err := edn.ReadAll([]byte(test.text), edn.Limits{})
		got := edn.Vector(all...).String()
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("ReadAll(%q) = %s, want %s", test.text, got, test.want)
		}
	}
}

func TestLimits(t *testing.T) {
	nested := func(open string, n int) string { return strings.Repeat(open, n) }
	tests := []struct {
		name, text string
		limits     edn.Limits
		want       string
	}{
		{"depth", "[[[]]]", edn.Limits{Depth: 3}, ""},
		{"too deep", "[[[]]]", edn.Limits{Depth: 2}, "1:3: expected values nested at most 2 deep"},
		{"default", nested("[", 512) + nested("]", 512), edn.Limits{}, ""},
		{"too deep by default", nested("(", 1e6), edn.Limits{}, "1:513: expected values nested at most 512 deep"},
		{"tags", nested("#a ", 1e6), edn.Limits{}, "1:1537: expected values nested at most 512 deep"},
		{"discards", nested("#_", 1e6), edn.Limits{}, "1:1025: expected values nested at most 512 deep"},
		{"discards side by side", nested("#_ 1 ", 1000) + "2", edn.Limits{Depth: 1}, ""},
		{"bytes", "12345", edn.Limits{Bytes: 5}, ""},
		{"too large", "123456", edn.Limits{Bytes: 5}, "1:1: expected a text of at most 5 bytes, found 6"},
		{"digits", nested("1", 10_000), edn.Limits{}, ""},
		{"too many digits", nested("1", 10_001), edn.Limits{}, `1:1: number "` + nested("1", 40) + `…": expected a number of at most 10000 digits`},
	}
	for _, test := range tests {
		got := ""
		if _, err := edn.Read([]byte(test.text), test.limits); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestCases reads the case files of calls, which are the largest EDN around.
func TestCases(t *testing.T) {
	for name, data := range caseFiles(t) {
		v, err := edn.Read(data, edn.Limits{})
		if err != nil {
			t.Errorf("%s:%v", name, err)
			continue
		}
		again, err := edn.Read(edn.Format(v), edn.Limits{})
		if err != nil || !again.Equal(v) {
			t.Errorf("%s: what Format writes reads otherwise: %v", name, err)
		}
		for _, c := range v.Elements() {
			if id, ok := c.Field("id"); !ok || id.Kind() != edn.KindString {
				line, _ := c.Position()
				t.Errorf("%s:%d: a case without :id", name, line)
			}
		}
	}
}

func caseFiles(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	for _, path := range need.Recorded(t, "spec/cases/calls/*.edn") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = data
	}
	return files
}
