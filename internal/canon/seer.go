package canon

import (
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// easyDepth is the maximum depth that isCanonical checks.
const easyDepth = 64

// isCanonical reports whether src, which is depth levels deep in a value, is certainly one canonical JSON value. It may return
// false for unusual canonical texts. Most texts were written by this package, and checking a text costs only a fifth of writing it
// again.
func isCanonical(src []byte, depth int) bool {
	c := seer{text: unsafe.String(unsafe.SliceData(src), len(src))}
	return c.value(min(easyDepth, maxDepth-depth)) && c.at == len(src)
}

// A seer scans text. Each method skips the kind of text it is named after. It returns false if the text is of another kind, is not
// canonical, or is too unusual to check.
type seer struct {
	text string
	at   int
}

// peek returns the next byte without skipping it, or 0 at the end of the text.
func (c *seer) peek() byte {
	if c.at < len(c.text) {
		return c.text[c.at]
	}
	return 0
}

func (c *seer) next(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.at++
	return true
}

func (c *seer) value(depth int) bool {
	switch c.peek() {
	case '"':
		_, ok := c.string()
		return ok
	case '{':
		return depth > 0 && c.object(depth-1)
	case '[':
		return depth > 0 && c.array(depth-1)
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	return c.number()
}

func (c *seer) word(w string) bool {
	if !strings.HasPrefix(c.text[c.at:], w) {
		return false
	}
	c.at += len(w)
	return true
}

// string skips a string, and returns the text between the quotes.
func (c *seer) string() (inner string, ok bool) {
	if !c.next('"') {
		return "", false
	}
	start, wide := c.at, false
	for {
		n, w := plainPrefix(c.text[c.at:])
		c.at, wide = c.at+n, wide || w
		switch c.peek() {
		case '"':
			inner = c.text[start:c.at]
			c.at++
			return inner, !wide || utf8.ValidString(inner)
		case '\\':
			c.at++
			if strings.IndexByte(`"\bfnrt`, c.peek()) < 0 {
				return "", false
			}
			c.at++
		default:
			return "", false
		}
	}
}

func (c *seer) number() bool {
	n := 0
	for n < len(c.text)-c.at && isNumeric(c.text[c.at+n]) {
		n++
	}
	literal := c.text[c.at : c.at+n]
	c.at += n
	if strings.ContainsAny(literal, ".eE") {
		v, err := strconv.ParseFloat(literal, 64)
		var room [32]byte
		written, f := appendFloat64(room[:0], v)
		return err == nil && f == nil && string(written) == literal
	}
	const most = 300 // digits; see fitsFloat64
	digits := strings.TrimPrefix(literal, "-")
	return literal == "0" || digits != "" && digits[0] != '0' && len(digits) < most && !strings.ContainsAny(digits, "+-")
}

// object skips an object. It checks that the keys are sorted, which requires that no key contains an escape.
func (c *seer) object(depth int) bool {
	c.at++
	if c.next('}') {
		return true
	}
	for before, first := "", true; ; first = false {
		key, ok := c.string()
		if !ok || strings.IndexByte(key, '\\') >= 0 || !first && compareKeys(before, key) >= 0 {
			return false
		}
		if !c.next(':') || !c.value(depth) {
			return false
		}
		if before = key; !c.next(',') {
			return c.next('}')
		}
	}
}

func (c *seer) array(depth int) bool {
	c.at++
	if c.next(']') {
		return true
	}
	for c.value(depth) {
		if !c.next(',') {
			return c.next(']')
		}
	}
	return false
}
