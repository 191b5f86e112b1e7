package canon

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

// appendFloat64 appends a float as ECMAScript prints it. Negative zero is written as 0.
func appendFloat64(dst []byte, v float64) ([]byte, *fault) {
	const exact = 1 << 53 // below this, the digits of an integer are the shortest text
	if i := int64(v); -exact < i && i < exact && float64(i) == v {
		return strconv.AppendInt(dst, i, 10), nil
	}
	return appendSignedFloat(dst, v, 64)
}

// appendFloat32 appends the shortest text that decodes to the same float32.
func appendFloat32(dst []byte, v float32) ([]byte, *fault) {
	if v == 0 {
		return append(dst, '0'), nil
	}
	return appendSignedFloat(dst, float64(v), 32)
}

// appendSignedFloat appends the shortest text that decodes to the same value with the given number of bits. It keeps the sign of
// zero.
func appendSignedFloat(dst []byte, v float64, bits int) ([]byte, *fault) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return dst, faultf("%v is not a JSON number", v)
	}
	format := byte('f')
	abs := math.Abs(v)
	tiny, huge := abs < 1e-6, abs >= 1e21
	if bits == 32 { // the float32 nearest to 1e-6 is less than 1e-6
		tiny, huge = float32(abs) < 1e-6, float32(abs) >= 1e21
	}
	if abs != 0 && (tiny || huge) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, v, format, -1, bits)
	if n := len(dst); format == 'e' && dst[n-2] == '0' && dst[n-3] == '-' { // Go pads 1e-7 to 1e-07
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst, nil
}

// appendNumber appends a number given as a literal.
func appendNumber(dst []byte, n json.Number) ([]byte, *fault) {
	s, f := numberLiteral(n)
	if f != nil {
		return dst, f
	}
	return appendText(dst, []byte(s), 0)
}

// numberLiteral returns the text of n if it is exactly one number literal. For an empty text it returns 0, as encoding/json does.
func numberLiteral(n json.Number) (string, *fault) {
	if n == "" {
		return "0", nil
	}
	first, last := n[0], n[len(n)-1]
	if (first != '-' && !isDigit(first)) || !isDigit(last) {
		return "", faultf("%q is not a JSON number", shorten(string(n)))
	}
	return string(n), nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// fitsFloat64 reports whether a valid number literal is within the range of float64: it neither overflows nor, unless it is zero,
// becomes zero.
func fitsFloat64(literal string) bool {
	const safe = 300 // without an exponent, this many digits are always within the range
	exponent := strings.IndexAny(literal, "eE")
	if exponent < 0 {
		if len(literal) < safe {
			return true
		}
		exponent = len(literal)
	}
	v, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return false
	}
	return v != 0 || !strings.ContainsAny(literal[:exponent], "123456789")
}
