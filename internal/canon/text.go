package canon

import (
	"bytes"
	"errors"
	"io"

	"github.com/stonelayer/stone/internal/jsonv2"
)

// AppendJSON appends the canonical form of the JSON text src, which must be one value, to dst. Integer literals (no point, no
// exponent) keep all their digits. The error is an *Error; dst is then returned unchanged.
func AppendJSON(dst, src []byte) ([]byte, error) {
	out, f := appendText(dst, src, 0)
	if f != nil {
		return dst, f.err()
	}
	return out, nil
}

// Canonical returns the canonical form of the JSON text src, which must be one value. If src is already canonical, it returns src
// itself.
func Canonical(src []byte) ([]byte, error) {
	if isCanonical(src, 0) {
		return src, nil
	}
	return AppendJSON(nil, src)
}

// appendText is like AppendJSON, for text that is depth levels deep in a value.
func appendText(dst, src []byte, depth int) ([]byte, *fault) {
	if isCanonical(src, depth) {
		return append(dst, src...), nil
	}
	return reformat(dst, src, depth)
}

// reformat is like appendText, without first checking whether the text is canonical.
func reformat(dst, src []byte, depth int) ([]byte, *fault) {
	out, err := jsonv2.AppendFormat(dst, src,
		jsonv2.CanonicalizeRawFloats(true),
		jsonv2.CanonicalizeRawInts(false),
		jsonv2.ReorderRawObjects(true))
	if err == nil && !withinBounds(src, depth) {
		err = errOutOfBounds
	}
	if err != nil {
		return dst, explain(src, depth, err)
	}
	return out, nil
}

// withinBounds checks valid JSON text for what jsontext does not refuse: numbers that are too large or too small, which jsontext
// would convert to the largest float64 or to zero, and nesting that is too deep, because jsontext does not know the depth of the
// text.
func withinBounds(src []byte, depth int) bool {
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '"':
			i += stringLen(src[i:]) - 1
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return false
			}
		case c == ']' || c == '}':
			depth--
		case c == '-' || isDigit(c):
			n := numberLen(src[i:])
			if !fitsFloat64(string(src[i : i+n])) {
				return false
			}
			i += n - 1
		}
	}
	return true
}

// stringLen returns the length of the valid JSON string at the start of b.
func stringLen(b []byte) int {
	for i := 1; ; i++ {
		i += bytes.IndexByte(b[i:], '"')
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// numberLen returns the length of the valid JSON number at the start of b.
func numberLen(b []byte) int {
	for i, c := range b {
		if !isNumeric(c) {
			return i
		}
	}
	return len(b)
}

// isNumeric reports whether the byte can occur in a number.
func isNumeric(c byte) bool {
	return isDigit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

var errOutOfBounds = errors.New("a number or the nesting is out of bounds")

// explain returns an error that says where and why a text was refused. It reads the text again, token by token. Only refused
// texts incur this cost. If the tokens alone do not show the error, such as a second value after the first, explain uses cause.
func explain(src []byte, depth int, cause error) *fault {
	d := jsonv2.NewDecoder(bytes.NewReader(src))
	for {
		token, err := d.ReadToken()
		switch {
		case err == io.EOF && d.StackDepth() == 0:
			return syntaxFault(d, cause)
		case err != nil:
			return syntaxFault(d, err)
		case depth+d.StackDepth() > maxDepth:
			return faultf("nested deeper than %d levels", maxDepth).inPointer(d, d.StackPointer())
		case token.Kind() == '0' && !fitsFloat64(token.String()):
			return faultf("%s is beyond the range of a float64: write it as a string", shorten(token.String())).
				inPointer(d, d.StackPointer())
		}
	}
}

func syntaxFault(d *jsonv2.Decoder, err error) *fault {
	syntax, ok := errors.AsType[*jsonv2.SyntacticError](err)
	if !ok {
		return faultf("%v", err)
	}
	return faultf("%v at byte %d", syntax.Err, syntax.ByteOffset).inPointer(d, syntax.JSONPointer)
}

// inPointer adds the segments of a JSON pointer to the path. A pointer does not distinguish indexes from keys, so inPointer
// consults the decoder's stack.
func (f *fault) inPointer(d *jsonv2.Decoder, p jsonv2.Pointer) *fault {
	var segments []string
	level := 0
	for token := range p.Tokens() {
		level++
		kind := jsonv2.Kind('{')
		if level <= d.StackDepth() {
			kind, _ = d.StackIndex(level)
		}
		if kind == '[' {
			segments = append(segments, "["+token+"]")
		} else {
			segments = append(segments, keySegment(token))
		}
	}
	for i := range segments {
		f.segments = append(f.segments, segments[len(segments)-1-i])
	}
	return f
}
