package canon

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// appendString appends s as a JSON string. Parts without escapes are copied as a whole.
func appendString(dst []byte, s string) ([]byte, *fault) {
	dst = append(dst, '"')
	wide := false
	for {
		n, w := plainPrefix(s)
		wide = wide || w
		if n == len(s) {
			break
		}
		if wide && !utf8.ValidString(s[:n]) {
			return dst, invalidUTF8()
		}
		dst = append(dst, s[:n]...)
		dst = appendEscaped(dst, s[n])
		s, wide = s[n+1:], false
	}
	if wide && !utf8.ValidString(s) {
		return dst, invalidUTF8()
	}
	dst = append(dst, s...)
	return append(dst, '"'), nil
}

func invalidUTF8() *fault {
	return faultf("the string is not valid UTF-8: put bytes in a []byte, which is written as base64")
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// plainPrefix returns the number of bytes of s before the first byte that must be escaped, and reports whether any examined byte
// is not ASCII. It examines eight bytes at a time, because most text is plain.
func plainPrefix(s string) (n int, wide bool) {
	var seen uint64
	for ; len(s)-n >= 8; n += 8 {
		b := s[n : n+8]
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		quote, slash := x^('"'*ones), x^('\\'*ones)
		// The high bit of an ASCII byte is set if the byte is below 0x20, a quote or a backslash. A borrow can set further bits,
		// but only above a bit that is set correctly.
		found := ((x - 0x20*ones) | (quote - ones) | (slash - ones)) &^ x & highs
		seen |= x
		if found != 0 {
			return n + bits.TrailingZeros64(found)/8, seen&highs != 0
		}
	}
	for ; n < len(s); n++ {
		c := s[n]
		if c < ' ' || c == '"' || c == '\\' {
			break
		}
		seen |= uint64(c)
	}
	return n, seen&highs != 0
}

func appendEscaped(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\t':
		return append(dst, `\t`...)
	case '\n':
		return append(dst, `\n`...)
	case '\f':
		return append(dst, `\f`...)
	case '\r':
		return append(dst, `\r`...)
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
}

var separators = strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`)

// appendQuotedString appends s as a JSON string inside a JSON string, for the tag option "string" on a string. As in
// encoding/json, U+2028 and U+2029 are escaped in the inner string.
func appendQuotedString(dst []byte, s string) ([]byte, *fault) {
	inner, f := appendString(nil, s)
	if f != nil {
		return dst, f
	}
	return appendString(dst, separators.Replace(string(inner)))
}

// compareKeys compares valid UTF-8 strings by their UTF-16 code units, as RFC 8785 requires. This is the same as comparing bytes,
// except for characters beyond U+FFFF (first byte F0 and up). In UTF-16 these begin with a surrogate, so they come before U+E000
// to U+FFFF (first byte EE or EF).
func compareKeys(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			x, y = y, x
		}
		return int(x) - int(y)
	}
	return len(a) - len(b)
}
