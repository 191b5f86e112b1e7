package edn

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// tokenEnd returns the end of the token at the current position.
func (r *reader) tokenEnd() int {
	end := r.at
	for end < len(r.text) && classes[r.text[end]]&endsTok == 0 && r.text[end] != '"' {
		end++
	}
	return end
}

func (r *reader) token() string {
	start := r.at
	r.at = r.tokenEnd()
	return r.text[start:r.at]
}

func (r *reader) numberOrSymbol() (Value, error) {
	start := r.at
	token := r.token()
	if startsWithDigit(unsigned(token)) {
		v, reason := parseNumber(token)
		if reason != "" {
			return Value{}, r.errorf(start, "number %s: %s", quote(token), reason)
		}
		return v, nil
	}
	if v, ok := constant(token); ok {
		return v, nil
	}
	if reason := checkSymbol(token); reason != "" {
		return Value{}, r.errorf(start, "symbol %s: %s", quote(token), reason)
	}
	return Value{kind: KindSymbol, text: token}, nil
}

var charNames = []struct {
	name string
	char rune
}{
	{"newline", '\n'}, {"return", '\r'}, {"space", ' '}, {"tab", '\t'}, {"formfeed", '\f'}, {"backspace", '\b'},
}

// char reads \a, \newline, \u0041 or \o101.
func (r *reader) char() (Value, error) {
	start := r.at
	r.at++
	first, size := utf8.DecodeRuneInString(r.text[r.at:])
	if r.at == len(r.text) || first != ',' && first < 0x80 && classes[first]&blank != 0 {
		return Value{}, r.errorf(start, `expected a character after \, found white space: it is written \space, \newline, \tab, …`)
	}
	r.at += size
	rest := r.token()
	if rest == "" {
		return Char(first), nil
	}
	token := r.text[start+1 : r.at]
	for _, n := range charNames {
		if n.name == token {
			return Char(n.char), nil
		}
	}
	switch {
	case first == 'u' && len(rest) == 4:
		if n, err := strconv.ParseUint(rest, 16, 16); err == nil {
			if utf16.IsSurrogate(rune(n)) {
				return Value{}, r.errorf(start, `character \%s: expected a character, found half of a surrogate pair`, show(token))
			}
			return Char(rune(n)), nil
		}
	case first == 'o' && len(rest) <= 3:
		if n, err := strconv.ParseUint(rest, 8, 8); err == nil {
			return Char(rune(n)), nil
		}
	}
	return Value{}, r.errorf(start, `character \%s: expected one character, \newline, \return, \space, \tab, \formfeed, \backspace, \u and four hexadecimal digits, or \o and at most 377`, show(token))
}

// stringText reads a string. Most strings have no escapes, and are returned as slices of the text.
func (r *reader) stringText() (string, error) {
	start := r.at
	r.at++
	for i := r.at; i < len(r.text); i++ {
		switch r.text[i] {
		case '"':
			text := r.text[r.at:i]
			r.at = i + 1
			return text, nil
		case '\\':
			return r.escapedText(start, i)
		}
	}
	return "", r.unclosed(start)
}

func (r *reader) unclosed(start int) error {
	line, column := r.position(start)
	return r.errorf(len(r.text), `expected ", for the string that begins at %d:%d, found the end of the text`, line, column)
}

// escapedText reads a string with escapes, given the position of its first backslash.
func (r *reader) escapedText(start, backslash int) (string, error) {
	out := []byte(r.text[r.at:backslash])
	r.at = backslash
	for r.at < len(r.text) {
		switch c := r.text[r.at]; c {
		case '"':
			r.at++
			return string(out), nil
		case '\\':
			char, err := r.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, char)
		default:
			out = append(out, c)
			r.at++
		}
	}
	return "", r.unclosed(start)
}

// escape reads one escape of a string.
func (r *reader) escape() (rune, error) {
	start := r.at
	rest := r.text[r.at+1:]
	if rest == "" {
		return 0, r.unclosedEscape()
	}
	if i := strings.IndexByte(`tnrbf\"`, rest[0]); i >= 0 {
		r.at += 2
		return rune("\t\n\r\b\f\\\""[i]), nil
	}
	if rest[0] == 'u' {
		return r.unicodeEscape()
	}
	length := 0
	for length < 3 && length < len(rest) && '0' <= rest[length] && rest[length] <= '7' {
		length++
	}
	if n, err := strconv.ParseUint(rest[:length], 8, 8); err == nil {
		r.at += 1 + length
		return rune(n), nil
	}
	_, size := utf8.DecodeRuneInString(rest)
	return 0, r.errorf(start, `escape \%s: expected \t, \n, \r, \b, \f, \\, \", \u and four hexadecimal digits, or an octal number to \377`, show(rest[:max(size, length)]))
}

func (r *reader) unclosedEscape() error {
	return r.errorf(len(r.text), `expected the rest of an escape and ", found the end of the text`)
}

// unicodeEscape reads \uXXXX, or two of them that form a surrogate pair.
func (r *reader) unicodeEscape() (rune, error) {
	start := r.at
	char, ok := r.hexEscape()
	if !ok {
		return 0, r.errorf(start, `escape \u: expected four hexadecimal digits`)
	}
	if !utf16.IsSurrogate(char) {
		return char, nil
	}
	if second, ok := r.hexEscape(); ok {
		if pair := utf16.DecodeRune(char, second); pair != utf8.RuneError {
			return pair, nil
		}
	}
	return 0, r.errorf(start, `escape \u%04x: expected a surrogate pair, found half of one`, char)
}

// hexEscape reads a single \uXXXX. It returns false if there is none.
func (r *reader) hexEscape() (rune, bool) {
	rest := r.text[r.at:]
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(rest[2:6]) {
		if !isHex(c) {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(rest[2:6], 16, 16)
	r.at += 6
	return rune(n), err == nil
}
