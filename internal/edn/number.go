package edn

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxDigits limits the digits and exponents of numbers, so that a short text cannot exhaust the memory of a program that computes
// with its numbers.
const maxDigits = 10_000

// number is a number's text, split into parts.
type number struct {
	sign, whole, fraction, exponent string // the sign is "" or "-"
	hasFraction, hasExponent        bool
	rest                            string // the remaining text: a suffix or invalid characters
}

func splitNumber(text string) (n number) {
	n.sign, _ = splitSign(text)
	whole, rest := digits(unsigned(text))
	n.whole = whole
	if after, ok := strings.CutPrefix(rest, "."); ok && startsWithDigit(after) {
		n.hasFraction = true
		n.fraction, rest = digits(after)
	}
	if len(rest) > 1 && (rest[0] == 'e' || rest[0] == 'E') {
		if after := unsigned(rest[1:]); startsWithDigit(after) {
			n.hasExponent = true
			sign, _ := splitSign(rest[1:])
			n.exponent, rest = digits(after)
			n.exponent = sign + n.exponent
		}
	}
	n.rest = rest
	return n
}

// digits returns the leading decimal digits of s, and the rest of s.
func digits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// unsigned returns the text without its sign.
func unsigned(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func startsWithDigit(s string) bool { return s != "" && '0' <= s[0] && s[0] <= '9' }

// parseNumber parses a token that begins like a number. If it is not a number, the reason says why.
func parseNumber(text string) (v Value, reason string) {
	if v, ok := smallInt(text); ok {
		return v, ""
	}
	n := splitNumber(text)
	if reason := n.check(); reason != "" {
		return Value{}, reason
	}
	plain := !n.hasFraction && !n.hasExponent
	switch {
	case plain && n.rest != "M":
		return bigInt(n.sign, n.whole), ""
	case n.rest == "M":
		return parseDecimal(n)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f == 0 && strings.Trim(n.whole+n.fraction, "0") != "" {
		return Value{}, "expected a float within the range of 64 bits; with M at its end the number is an exact decimal"
	}
	return Float(f), ""
}

// smallInt is a fast path for small integers, which are the most common numbers in plans.
func smallInt(text string) (v Value, ok bool) {
	s := strings.TrimPrefix(text, "-")
	if len(s) == 0 || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return Value{}, false
	}
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return Value{}, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	if len(s) < len(text) {
		n = -n
	}
	return Int(n), true
}

// check returns the reason why a number is invalid, or "" if it is valid.
func (n number) check() string {
	plain := !n.hasFraction && !n.hasExponent
	switch {
	case strings.HasPrefix(n.rest, "/"):
		return "expected a float or a decimal: EDN has no ratios"
	case len(n.whole) > 1 && n.whole[0] == '0', n.whole == "0" && (strings.HasPrefix(n.rest, "x") || strings.HasPrefix(n.rest, "X")):
		return "expected an integer in decimal digits that does not begin with 0"
	case strings.HasPrefix(n.rest, "."):
		return "expected a digit after the point"
	case n.rest == "" || n.rest == "M" || n.rest == "N" && plain:
	case n.rest == "N":
		return "expected M, for an exact decimal, or nothing: N is for integers"
	default:
		return "expected a number like 1, -1, 1N, 1.5, 1e10 or 1.5M, or white space before " + quote(n.rest)
	}
	if len(strings.TrimLeft(n.whole+n.fraction, "0")) > maxDigits {
		return fmt.Sprintf("expected a number of at most %d digits", maxDigits)
	}
	return ""
}

func bigInt(sign, whole string) Value {
	if i, err := strconv.ParseInt(sign+whole, 10, 64); err == nil {
		return Int(i)
	}
	return Value{kind: KindInt, text: sign + whole}
}

func parseDecimal(n number) (v Value, reason string) {
	exponent := 0
	if n.hasExponent {
		var err error
		if exponent, err = strconv.Atoi(n.exponent); err != nil || exponent > math.MaxInt32 || exponent < math.MinInt32 {
			return Value{}, exponentRange
		}
	}
	v = decimal(n.sign+n.whole+n.fraction, exponent-len(n.fraction))
	if v.exponent() > maxDigits || v.exponent() < -maxDigits {
		return Value{}, exponentRange
	}
	return v, ""
}

var exponentRange = fmt.Sprintf("expected a decimal that is an integer × 10^n with n from -%d to %d", maxDigits, maxDigits)

// decimal returns a decimal in a form that is the same for equal decimals: its digits have no zeros at either end, and 0 has
// neither sign nor exponent.
func decimal(text string, exponent int) Value {
	sign, text := splitSign(text)
	text = strings.TrimLeft(text, "0")
	if text == "" {
		return Value{kind: KindDecimal, text: "0"}
	}
	short := strings.TrimRight(text, "0")
	exponent += len(text) - len(short)
	return Value{kind: KindDecimal, text: sign + short, num: uint64(int64(exponent))}
}

// appendInt appends an integer, with the suffix if it does not fit into 64 bits.
func appendInt(dst []byte, v Value, suffix string) []byte {
	if v.text == "" {
		return strconv.AppendInt(dst, int64(v.num), 10)
	}
	return append(append(dst, v.text...), suffix...)
}

// appendFloat appends the shortest text that is read as the same float, and not as another kind of number.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "##NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "##Inf"...)
	case math.IsInf(f, -1):
		return append(dst, "##-Inf"...)
	}
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		// Go pads exponents: 1e+21, 1e-07.
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		sign, figures := splitSign(strings.TrimPrefix(exponent, "+"))
		dst = append(append(dst, mantissa...), 'e')
		return append(append(dst, sign...), strings.TrimLeft(figures, "0")...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[start:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// appendDecimal appends a decimal without its M.
func appendDecimal(dst []byte, v Value) []byte {
	sign, figures := splitSign(v.text)
	dst = append(dst, sign...)
	exponent := v.exponent()
	point := len(figures) + exponent // number of digits before the point
	switch {
	case exponent >= 0 && point <= 21:
		dst = append(dst, figures...)
		return append(dst, strings.Repeat("0", exponent)...)
	case exponent < 0 && point > 0:
		dst = append(dst, figures[:point]...)
		return append(append(dst, '.'), figures[point:]...)
	case exponent < 0 && point > -6:
		dst = append(dst, "0."...)
		dst = append(dst, strings.Repeat("0", -point)...)
		return append(dst, figures...)
	}
	// The digits are written without added zeros, so that a number that was read stays within maxDigits.
	dst = append(append(dst, figures...), 'e')
	return strconv.AppendInt(dst, int64(exponent), 10)
}

// splitSign returns the sign of a number, "-" or "", and the rest of the number.
func splitSign(text string) (sign, figures string) {
	if strings.HasPrefix(text, "-") {
		return "-", text[1:]
	}
	return "", text
}

// compareNumbers orders two numbers of the same kind by size.
func compareNumbers(a, b Value) int {
	switch {
	case a.kind == KindFloat:
		return cmp.Compare(math.Float64frombits(a.num), math.Float64frombits(b.num))
	case a.kind == KindInt && a.text == "" && b.text == "":
		return cmp.Compare(int64(a.num), int64(b.num))
	}
	signA, figuresA, pointA := a.figures()
	signB, figuresB, pointB := b.figures()
	if signA != signB {
		return signA - signB
	}
	// If the point is at the same place in both, digits without zeros at their ends can be compared as text.
	return signA * cmp.Or(cmp.Compare(pointA, pointB), strings.Compare(figuresA, figuresB))
}

// figures splits an integer or decimal, so that its value is sign × 0.figures × 10^point.
func (v Value) figures() (sign int, figures string, point int) {
	if v.kind == KindInt {
		v = decimal(string(appendInt(nil, v, "")), 0)
	}
	minus, figures := splitSign(v.text)
	switch {
	case figures == "0":
		return 0, "", 0
	case minus == "-":
		sign = -1
	default:
		sign = 1
	}
	return sign, figures, len(figures) + v.exponent()
}
