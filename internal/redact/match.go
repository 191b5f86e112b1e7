package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An index finds the spellings of secrets in texts. It finds a spelling even if its characters are escaped in any mixture as in
// JSON, JSON within JSON, URLs and HTML.
type index struct {
	all   []string
	first [256][]string // spellings by their first byte
	odd   []string      // spellings whose first character may be preceded by a backslash
}

func newIndex(values []string) *index {
	x := new(index)
	for _, v := range values {
		for _, text := range spellings(v) {
			if !slices.Contains(x.all, text) {
				x.all = append(x.all, text)
				x.first[text[0]] = append(x.first[text[0]], text)
			}
		}
	}
	for _, text := range x.all {
		if !alphanumeric(text[0]) {
			x.odd = append(x.odd, text)
		}
	}
	return x
}

// spellings returns the texts to search for: the value itself, the value with escapes, the base64 of each of these at every offset
// in a longer text, and the value in hexadecimal digits. It does not include base64 of base64, whose 36 spellings begin with so
// many different letters that a stream would hold back the ends of ordinary sentences.
func spellings(value string) []string {
	forms := []string{value, url.QueryEscape(value), url.PathEscape(value), html.EscapeString(value), named(value)}
	for _, text := range []string{value, asJSON(value, true), asJSON(value, false)} {
		forms = append(forms, asJSON(text, true), asJSON(text, false))
	}
	slices.Sort(forms)
	texts := []string{hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	for _, form := range slices.Compact(forms) {
		texts = append(texts, form)
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for offset := range 3 {
				texts = append(texts, within64(encoding, form, offset))
			}
		}
	}
	return texts
}

// named escapes text for HTML with named references for quotes, as languages other than Go do.
func named(text string) string {
	return strings.NewReplacer("&#34;", "&quot;", "&#39;", "&apos;").Replace(html.EscapeString(text))
}

// asJSON returns text as it is written inside a JSON string, with or without HTML escapes. Invalid UTF-8 is replaced, as in any
// JSON.
func asJSON(text string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(text); err != nil {
		return text // cannot happen: a string can always be encoded
	}
	return b.String()[1 : b.Len()-2]
}

// within64 returns the part of a longer text's base64 that encodes only the value. The offset is the number of bytes before the
// value, modulo 3. Digits that also encode adjacent bytes are omitted.
func within64(encoding *base64.Encoding, value string, offset int) string {
	digits := encoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + value))
	first := (offset*8 + 5) / 6
	last := (offset + len(value)) * 8 / 6
	return digits[first:last]
}

// find returns the places of all spellings in the text. The result open is the first place where a spelling may begin that
// continues after the end of the text, or the length of the text if there is no such place.
func (x *index) find(text string) (found []span, open int) {
	open = len(text)
	for at := range len(text) {
		for _, s := range x.candidates(text, at) {
			n, undecided := match(text[at:], s)
			if n > 0 {
				found = append(found, span{at, at + n})
			}
			if undecided {
				open = min(open, at)
			}
		}
	}
	return found, open
}

// candidates returns the spellings that may begin at the given place.
func (x *index) candidates(text string, at int) []string {
	switch c := text[at]; c {
	case '\\':
		if at > 0 && text[at-1] == '\\' {
			return nil // a match would include all of the backslashes
		}
		switch rest := strings.TrimLeft(text[at:], `\`); {
		case rest == "" || rest[0] == 'u' || rest[0] == 'x':
			return x.all
		}
		return x.odd
	case '%':
		return x.all
	case '&':
		all, cut := references(text[at:])
		if cut {
			return x.all
		}
		some := x.first['&']
		for _, r := range all {
			some = append(some[:len(some):len(some)], x.first[r.of[0]]...)
		}
		return some
	case '+':
		return append(x.first['+'][:len(x.first['+']):len(x.first['+'])], x.first[' ']...)
	default:
		return x.first[c]
	}
}

// tail returns the number of bytes at the beginning of text that are the end of a spelling. It finds the longest such end, which
// must have at least MinLength bytes.
func (x *index) tail(text string) (longest int) {
	for _, s := range x.all {
		for from := 1; from <= len(s)-MinLength; from++ {
			if n, _ := match(text, s[from:]); n > 0 {
				longest = max(longest, n)
				break
			}
		}
	}
	return longest
}

// match returns the number of bytes at the beginning of text that spell want, or -1. If undecided is true, the text ends too
// early to be certain.
func match(text, want string) (n int, undecided bool) {
	at := 0
	for want != "" {
		if at == len(text) {
			return -1, true
		}
		c := text[at]
		if c == '\\' || c == '%' || c == '&' {
			n, more := matchReference(text[at:], want)
			if n >= 0 {
				return n + at, more
			}
			undecided = undecided || more
		}
		switch {
		case c == '\\' || want[0] == '\\':
			n, more := matchBackslash(text[at:], want)
			return plus(n, at), undecided || more
		case c == '%':
			n, more := matchPercent(text[at:], want)
			return plus(n, at), undecided || more
		case c == want[0] || c == '+' && want[0] == ' ':
			at, want = at+1, want[1:]
		default:
			return -1, undecided
		}
	}
	return at, undecided
}

func plus(n, at int) int {
	if n < 0 {
		return n
	}
	return n + at
}

// matchPercent matches text that begins with a percent sign. The sign begins an escape, which may be escaped itself, or stands
// for itself.
func matchPercent(text, want string) (n int, undecided bool) {
	digits := 1
	for {
		if len(text) < digits+2 {
			undecided = true // the digits may still follow
			break
		}
		code, err := strconv.ParseUint(text[digits:digits+2], 16, 8)
		if err != nil {
			break
		}
		if byte(code) == want[0] {
			n, more := match(text[digits+2:], want[1:])
			if n >= 0 {
				return n + digits + 2, more
			}
			undecided = undecided || more
		}
		if code != '%' {
			break
		}
		digits += 2
	}
	if want[0] == '%' {
		n, more := match(text[1:], want[1:])
		return plus(n, 1), undecided || more
	}
	return -1, undecided
}

// mostReference is the maximum number of characters in a reference whose characters may be escaped themselves. References to ASCII
// characters are shorter than that.
const mostReference = 24

// matchReference matches text that begins with an HTML character reference, which may be escaped itself.
func matchReference(text, want string) (n int, undecided bool) {
	all, undecided := references(text)
	for _, r := range all {
		if !strings.HasPrefix(want, r.of) {
			continue
		}
		n, more := match(text[r.size:], want[len(r.of):])
		if n >= 0 {
			return n + r.size, more
		}
		undecided = undecided || more
	}
	return -1, undecided
}

// A reference is an escape at the beginning of some text.
type reference struct {
	of   string
	size int // number of bytes in the text
}

// references parses the reference at the beginning of text. The reference's characters may be escaped as in JSON and URLs. It
// returns all possible meanings: "&amp;lt;" may stand for an ampersand or for "<". If cut is true, the reference may continue
// after the end of the text.
func references(text string) (all []reference, cut bool) {
	if text[0] != '&' && !strings.HasPrefix(strings.ReplaceAll(text[:min(len(text), mostReference)], "25", ""), "%26") &&
		!strings.HasPrefix(strings.TrimLeft(text, `\`), "u0026") {
		return nil, false
	}
	plain, ends, cut := unescaped(text)
	if plain == "" || plain[0] != '&' {
		return nil, false
	}
	for at := 1; ; { // start of the name or number
		end := at
		for end < len(plain) && (plain[end] == '#' || plain[end] < utf8.RuneSelf && alphanumeric(plain[end])) {
			end++
		}
		switch {
		case end == len(plain):
			return all, cut
		case end == at:
			return all, false
		}
		of := "&" + plain[at:end]
		switch {
		case plain[end] == ';':
			end++
			of = html.UnescapeString(of + ";")
		case plain[at] == '#': // the semicolon is optional after a number
			of = html.UnescapeString(of + ";")
		}
		if of[0] == '&' && of != "&" {
			return all, false
		}
		all = append(all, reference{of, ends[end-1]})
		if of != "&" {
			return all, false
		}
		at = end
	}
}

// unescaped returns up to mostReference characters of text, without URL and JSON escapes, and the offset at which each ends. If
// cut is true, more may follow.
func unescaped(text string) (plain string, ends []int, cut bool) {
	var b strings.Builder
	for at := 0; at < len(text) && b.Len() < mostReference; {
		c, size := text[at], 1
		rest := strings.TrimLeft(text[at:min(len(text), at+mostReference)], `\`)
		switch run := min(len(text), at+mostReference) - at - len(rest); {
		case c == '%':
			for strings.HasPrefix(text[at+size:], "25") {
				size += 2
			}
			code, ok := hexDigits(text[at+size:], 2)
			switch {
			case ok:
				c, size = byte(code), size+2
			case len(text) < at+size+2:
				return b.String(), ends, true
			default:
				size = 1
			}
		case run > 0 && at+run+5 > len(text) && (rest == "" || rest[0] == 'u'):
			return b.String(), ends, true
		case run > 0 && len(rest) >= 5 && rest[0] == 'u':
			if code, ok := hexDigits(rest[1:], 4); ok && code < utf8.RuneSelf {
				c, size = byte(code), run+5
			}
		}
		at += size
		b.WriteByte(c)
		ends = append(ends, at)
	}
	return b.String(), ends, b.Len() < mostReference
}

// matchBackslash matches if text or want begins with backslashes. Each time text is encoded as JSON, its backslashes are doubled,
// and a backslash is put before some other characters.
func matchBackslash(text, want string) (n int, undecided bool) {
	wanted := len(want) - len(strings.TrimLeft(want, `\`))
	run := len(text) - len(strings.TrimLeft(text, `\`))
	if run == 0 {
		if text[0] == '%' {
			return matchPercent(text, want)
		}
		return -1, false
	}
	if text = text[run:]; text != "" && wanted > 0 {
		if size, short := escaped(text, want); size.text > 0 {
			if n, more := match(text[size.text:], want[size.want:]); n >= 0 {
				return n + run + size.text, more
			} else {
				undecided = more
			}
		} else {
			undecided = short
		}
	}
	want = want[wanted:]
	switch {
	case text == "" && (want != "" || run < wanted):
		return -1, true
	case run < wanted:
		return -1, undecided
	case want == "":
		return run, false
	}
	if run > wanted {
		size, short := escaped(text, want)
		undecided = undecided || short
		if size.text > 0 {
			n, more := match(text[size.text:], want[size.want:])
			if n >= 0 {
				return n + run + size.text, more
			}
			undecided = undecided || more
		}
	}
	if text[0] == '%' || text[0] == '&' && text[0] != want[0] { // escaped once more, for example for a web page
		n, more := match(text, want)
		if n >= 0 {
			return n + run, more
		}
		undecided = undecided || more
	}
	if text[0] == want[0] && (wanted > 0 || !alphanumeric(text[0])) {
		n, more := match(text[1:], want[1:])
		return plus(n, run+1), undecided || more
	}
	return -1, undecided
}

// sizes are the size of an escape in the text, and the size of the part of want that it stands for.
type sizes struct{ text, want int }

// escaped parses the escape that follows a backslash in text, if it stands for the beginning of want.
func escaped(text, want string) (size sizes, undecided bool) {
	digits := map[byte]int{'u': 4, 'x': 2}[text[0]]
	if digits == 0 {
		if i := strings.IndexByte("ntrbf", text[0]); i >= 0 && "\n\t\r\b\f"[i] == want[0] {
			return sizes{1, 1}, false
		}
		return sizes{}, false
	}
	code, ok := hexDigits(text[1:], digits)
	if !ok {
		return sizes{}, len(text) < 1+digits
	}
	r, taken := rune(code), 1+digits
	if utf16.IsSurrogate(r) {
		rest := strings.TrimLeft(text[taken:], `\`)
		if len(rest) < 5 {
			return sizes{}, true
		}
		low, ok := hexDigits(rest[1:], 4)
		if !ok || rest[0] != 'u' {
			return sizes{}, false
		}
		r, taken = utf16.DecodeRune(r, rune(low)), len(text)-len(rest)+5
	}
	if have, n := utf8.DecodeRuneInString(want); have == r && have != utf8.RuneError {
		return sizes{taken, n}, false
	}
	return sizes{}, false
}

func hexDigits(text string, n int) (uint64, bool) {
	if len(text) < n {
		return 0, false
	}
	code, err := strconv.ParseUint(text[:n], 16, 32)
	return code, err == nil
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= utf8.RuneSelf
}
